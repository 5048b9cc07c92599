#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What one hit of a 3-argument probe with a string costs the traced program, by its own clock: untraced, under
usdt-trace, under bpftrace. Both tools print every event as text to /dev/null; how many they delivered and lost is
taken from one more run of each, into a counter. With `--what count` they count hits only."""

import re
import subprocess

import paired  # first: it makes the tests' modules importable
import puppet
from harness import Run

FORMAT = "arg0, str(arg1), arg2"


def usdt_trace(tool, program, what):
    shown = ["--count"] if what == "count" else ["--format", "text", "--print", FORMAT]
    return [tool, puppet.probe_of(program), *shown]


def bpftrace(program, what):
    action = "@ = count();" if what == "count" else 'printf("%d %s %d\\n", arg0, str(arg1), arg2);'
    return ["bpftrace", "-e", f"usdt:{program}:puppet:beat {{ {action} }}"]


def ns_per_hit(run, program, argv, hits):
    """Runs the program's loop while `argv` traces it."""
    target = puppet.Puppet(run, program)
    tracer = None
    if argv:
        tracer = run.start(*argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        target.wait_attached()
    target.order(f"fire:{hits // 20}")
    spent = target.order(f"fire:{hits}")
    if tracer:
        tracer.send_signal(2)
        tracer.wait(120)
    target.process.kill()
    target.process.wait()
    return spent / hits


def delivered(run, program, argv, hits):
    """(lines of events, what the tool says about lost ones)."""
    target = puppet.Puppet(run, program)
    out, err = run.dir / "out", run.dir / "err"
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        tracer = run.start(*argv, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
        target.wait_attached()
        target.order(f"fire:{hits}")
        tracer.send_signal(2)
        tracer.wait(120)
    target.process.kill()
    text = out.read_text(errors="replace")
    said = re.findall(r"(?i)^.*\blost\b.*$", text + err.read_text(errors="replace"), re.MULTILINE)
    return sum("beat text" in line for line in text.splitlines()), said


def main():
    given = paired.options(__doc__, rounds=7, hits=200_000, what="print")
    run = Run(given.tool)
    try:
        program = puppet.build(run)
        tracers = {"untraced": None, "usdt-trace": usdt_trace(given.tool, program, given.what)}
        if paired.have_bpftrace():
            tracers["bpftrace"] = bpftrace(program, given.what)
        results = paired.measure(given.rounds, {
            name: lambda argv=argv: ns_per_hit(run, program, argv, given.hits) for name, argv in tracers.items()})
        paired.report(results, "ns per hit", list(tracers)[-1])
        for name, argv in tracers.items():
            if argv and given.what == "print":
                lines, said = delivered(run, program, argv, given.hits)
                print(f"{name}: delivered {lines} of {given.hits} hits; says {said[-3:] or 'nothing of lost events'}")
    finally:
        run.close()


if __name__ == "__main__":
    main()
