#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs bench_kernel in a guest (docs/kernel-lab.md) and prints its tables.

  lab.py [KERNEL[:ARCH]] [--write] [ARGS of bench_kernel]    default: 7.2:amd64; --write: into the page of results, with
                                                             --only PART that part alone
"""

import argparse
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests" / "vm"))
import debian
import guest
import vm

PAGE = PROJECT / "docs" / "results" / "kernel-functions.md"
PARTS = ["hits", "attach"]
BEGIN, END = "<!-- ./run bench kernel writes {} from here -->", "<!-- to here -->"
LIMIT = 3600  # seconds


def chosen(words):
    """The kernel the first word names, and the other words."""
    if not words or words[0].startswith("-"):
        words = ["7.2:amd64", *words]
    found = [kernel for kernel in vm.KERNELS if words[0] in (str(kernel), kernel.version)]
    if not found:
        sys.exit(f"bench kernel: no kernel {words[0]}; there are: {' '.join(map(str, vm.KERNELS))}")
    return found[0], words[1:]


def tables(kernel, words):
    """What bench_kernel printed; what it said on stderr is shown, and no part of it."""
    debian.CACHE.mkdir(parents=True, exist_ok=True)
    image = debian.kernel(kernel.version, kernel.arch, kernel.suite, kernel.flavour)
    bin_dir, _ = vm.build(kernel.arch, "bench_kernel")
    out = vm.BUILD / "results" / f"bench-{kernel.version}-{kernel.arch}"
    command = f"bench_kernel {' '.join(words)} 2>/tmp/said; status=$?; sed 's/^/# /' /tmp/said; exit $status"
    boot = guest.run(image / "vmlinuz", kernel.arch, {"lab/bench_kernel": bin_dir / "bench_kernel"},
                     [(LIMIT, command)], out)
    [outcome] = boot.outcomes
    lines = outcome.output.splitlines()
    for line in [*(line for line in lines if line.startswith("# ")), *boot.complaints, *outcome.complaints]:
        print(line, file=sys.stderr)
    text = "\n".join(line for line in lines if not line.startswith("# ")).strip()
    version = (image / "version").read_text().strip()
    if boot.death or outcome.status != 0 or outcome.complaints:
        print(text)
        sys.exit(f"bench kernel: {kernel}: status {outcome.status} {boot.death}\n" + "\n".join(boot.last_words))
    line = f"./run bench kernel {kernel} {' '.join(words)}".rstrip()
    return f"Linux {version}, {kernel.arch}, emulated:\n`{line}`\n\n{text}"


def unpadded(text):
    """The tables as a page has them: what lines up on a terminal makes lines too long."""
    return "\n".join(re.sub(r" {2,}(?=\|)", " ", re.sub(r"-{3,}", "---", line)) if line.startswith("|") else line
                     for line in text.splitlines())


def write_part(part, text):
    begin = BEGIN.format(part)
    before, page = PAGE.read_text().split(begin)
    after = page.split(END, 1)[1]
    PAGE.write_text(f"{before}{begin}\n\n{unpadded(text)}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(prog="bench kernel", allow_abbrev=False, usage=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=PARTS)
    options, words = parser.parse_known_args()
    kernel, rest = chosen(words)
    for part in [options.only] if options.only else PARTS:
        text = tables(kernel, [*rest, "--only", part])
        print(text)
        if options.write:
            write_part(part, text)


if __name__ == "__main__":
    main()
