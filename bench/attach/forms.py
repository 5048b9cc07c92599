#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a count costs the traced program in the forms people type: `-- COMMAND`, `-p PID`, `-p PID --children`, beside
`bpftrace -c` and `bpftrace -p`. The program times its own loop."""

import pathlib
import re
import subprocess
import time

import paired  # first: it makes the tests' modules importable
from harness import Run, wait_until

HERE = pathlib.Path(__file__).resolve().parent


class Forms:
    def __init__(self, run, tool, hits, bpftrace):
        self.run, self.tool, self.hits, self.bpftrace = run, tool, hits, bpftrace
        self.program = run.build("forms", [HERE / "forms.c"], ["-O1"])
        self.probe = f"uprobe:{self.program}:tick"
        self.asked = f"{self.probe} {{ @ = count(); }}"

    def per_hit(self, text):
        return int(re.search(r"took (\d+)", text)[1]) / self.hits

    def of_command(self, argv):
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300)
        return self.per_hit(done.stdout)

    def of_process(self, argv, ready):
        """`ready`: what the tracer says, or where the breakpoint is, once it has attached."""
        target = self.run.start(self.program, self.hits, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        log = self.run.dir / "log"
        with open(log, "wb") as out:
            tracer = self.run.start(*argv, target.pid, *ready[1:], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        wait_until(lambda: ready[0] in log.read_text(errors="replace"), f"{argv[0]}: {ready[0]}")
        time.sleep(0.3)
        said, _ = target.communicate("\n", timeout=300)
        tracer.send_signal(2)
        tracer.wait(60)
        return self.per_hit(said)

    def untraced(self):
        return self.of_command([self.program, str(self.hits)])

    def command(self):
        return self.of_command([self.tool, self.probe, "--count", "--", self.program, str(self.hits)])

    def command_of_bpftrace(self):
        return self.of_command([self.bpftrace, "-c", f"{self.program} {self.hits}", "-e", self.asked])

    def process(self):
        return self.of_process([self.tool, self.probe, "--count", "-p"], ["attached "])

    def process_and_children(self):
        return self.of_process([self.tool, self.probe, "--count", "-p"], ["attached ", "--children"])

    def process_of_bpftrace(self):
        return self.of_process([self.bpftrace, "-e", self.asked, "-p"], ["Attach"])


def main():
    given = paired.options(__doc__, rounds=5, hits=1_000_000, bpftrace="bpftrace")
    run = Run(given.tool)
    try:
        forms = Forms(run, given.tool, given.hits, given.bpftrace)
        print(f"untraced: {forms.untraced():.1f} ns a call")
        candidates = {"-- COMMAND": forms.command, "bpftrace -c": forms.command_of_bpftrace}
        paired.report(paired.measure(given.rounds, candidates), "ns a hit", "bpftrace -c")
        candidates = {"-p PID": forms.process, "-p PID --children": forms.process_and_children,
                      "bpftrace -p": forms.process_of_bpftrace}
        paired.report(paired.measure(given.rounds, candidates), "ns a hit", "bpftrace -p")
    finally:
        run.close()


if __name__ == "__main__":
    main()
