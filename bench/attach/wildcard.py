#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What attaching to and detaching from many sites adds to a run of a program that passes none of them: the run with a
wildcard less the run with one probe, in the same round. bpftrace 0.17 makes one link per site, so it gets fewer sites;
compare by the site."""

import os
import subprocess
import time

import paired  # first: it makes the tests' modules importable
import many_sites
from harness import Run


def build(run, sites):
    source = run.dir / f"many{sites}.s"
    source.write_text(many_sites.assembly(sites))
    return run.build(f"many{sites}", [source])


def seconds(argv, environment=None):
    start = time.monotonic()
    subprocess.run([str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, check=False, timeout=600)
    return time.monotonic() - start


def usdt_added(tool, program):
    one = seconds([tool, f"usdt:{program}:many:p7", "--", program])
    return seconds([tool, f"usdt:{program}:many:*", "--", program]) - one


def bpftrace_added(program, sites):
    limits = {"BPFTRACE_MAX_PROBES": str(sites + 1)}
    one, every = (["bpftrace", "-c", program, "-e", f"usdt:{program}:many:{name} {{ @ = count(); }}"]
                  for name in ("p7", "*"))
    first = seconds(one, limits)
    return seconds(every, limits) - first


def main():
    given = paired.options(__doc__, rounds=5, sites=10_000, bpftrace_sites=50)
    run = Run(given.tool)
    try:
        many, few = build(run, given.sites), build(run, given.bpftrace_sites)
        candidates = {f"usdt-trace, {given.sites}": lambda: usdt_added(given.tool, many) / given.sites * 1e6}
        if paired.have_bpftrace():
            candidates[f"bpftrace, {given.bpftrace_sites}"] = (
                lambda: bpftrace_added(few, given.bpftrace_sites) / given.bpftrace_sites * 1e6)
        results = paired.measure(given.rounds, candidates)
        paired.report(results, "us per site added", list(candidates)[-1])
        whole = sorted(value * given.sites / 1e6 for value in next(iter(results.values())))
        print(f"usdt-trace, {given.sites} sites: {whole[len(whole) // 2]:.3f} s added (median)")
    finally:
        run.close()


if __name__ == "__main__":
    main()
