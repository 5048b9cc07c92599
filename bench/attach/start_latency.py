#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""From starting a tool until the program it traces sees its own semaphore rise: the same clock (CLOCK_MONOTONIC) and
the same witness for both tools."""

import subprocess
import time

import paired  # first: it makes the tests' modules importable
import puppet
from harness import Run, wait_line


def attach_ms(run, program, argv):
    target = puppet.Puppet(run, program)
    target.send("watch:0")
    time.sleep(0.02)
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    tracer = run.start(*[str(word).replace("PID", str(target.pid)) for word in argv], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    seen = int(wait_line(target.process))
    tracer.kill()  # bpftrace 0.17 does not answer Ctrl-C while it is still attaching
    tracer.wait()
    target.process.kill()
    target.process.wait()
    return (seen - start) / 1e6


def main():
    given = paired.options(__doc__, rounds=11)
    run = Run(given.tool)
    try:
        program = puppet.build(run)
        probe = puppet.probe_of(program)
        tracers = {"usdt-trace": [given.tool, probe, "-p", "PID"]}
        if paired.have_bpftrace():
            tracers["bpftrace"] = ["bpftrace", "-p", "PID", "-e", f'{probe} {{ printf("%d\\n", arg0); }}']
        results = paired.measure(given.rounds, {
            name: lambda argv=argv: attach_ms(run, program, argv) for name, argv in tracers.items()})
        paired.report(results, "ms, start to attached", list(tracers)[-1])
    finally:
        run.close()


if __name__ == "__main__":
    main()
