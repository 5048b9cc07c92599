#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a trace costs the traced program in the forms people type: a count by `-- COMMAND`, `-p PID` and `-p PID --children`,
a text printed, a histogram of durations, beside what bpftrace does (`--bpftrace COMMAND`, which may have words). The
program times its own loop."""

import pathlib
import re
import shlex
import subprocess
import time

import paired  # first: it makes the tests' modules importable
from harness import Run, wait_until

HERE = pathlib.Path(__file__).resolve().parent


class Forms:
    def __init__(self, run, tool, hits, bpftrace):
        self.run, self.tool, self.hits, self.bpftrace = run, tool, hits, shlex.split(bpftrace)
        self.program = run.build("forms", [HERE / "forms.c"], ["-O1"])
        self.probe = f"uprobe:{self.program}:tick"
        self.asked = f"{self.probe} {{ @ = count(); }}"
        self.call = f"{self.program}:tick"

    def per_hit(self, text):
        return int(re.search(r"took (\d+)", text)[1]) / self.hits

    def of_command(self, argv):
        """The tracer prints into a file, as does the program."""
        log = self.run.dir / "log"
        with open(log, "wb") as out:
            subprocess.run(argv, stdout=out, stderr=subprocess.DEVNULL, check=True, timeout=300)
        return self.per_hit(log.read_text(errors="replace"))

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

    def command(self, *asked):
        return self.of_command([self.tool, *asked, "--", self.program, str(self.hits)])

    def command_of_bpftrace(self, asked):
        return self.of_command([*self.bpftrace, "-c", f"{self.program} {self.hits}", "-e", asked])

    def count(self):
        return self.command(self.probe, "--count")

    def count_of_bpftrace(self):
        return self.command_of_bpftrace(self.asked)

    def text(self):
        return self.command(self.probe, "--print", "str(arg1)")

    def text_of_bpftrace(self):
        return self.command_of_bpftrace(f'{self.probe} {{ printf("%s\\n", str(arg1)); }}')

    def histogram(self):
        return self.command(f"ucall:{self.call}", "--hist", "duration")

    def histogram_of_bpftrace(self):
        return self.command_of_bpftrace(f"uprobe:{self.call} {{ @began[tid] = nsecs; }} uretprobe:{self.call} "
                                        "{ @ = hist(nsecs - @began[tid]); delete(@began[tid]); }")

    def process(self):
        return self.of_process([self.tool, self.probe, "--count", "-p"], ["attached "])

    def process_and_children(self):
        return self.of_process([self.tool, self.probe, "--count", "-p"], ["attached ", "--children"])

    def process_of_bpftrace(self):
        return self.of_process([*self.bpftrace, "-e", self.asked, "-p"], ["Attach"])


def main():
    given = paired.options(__doc__, rounds=5, hits=1_000_000, bpftrace="bpftrace")
    run = Run(given.tool)
    try:
        forms = Forms(run, given.tool, given.hits, given.bpftrace)
        print(f"untraced: {forms.untraced():.1f} ns a call")
        for what, ours, theirs in (("count", forms.count, forms.count_of_bpftrace),
                                   ("text", forms.text, forms.text_of_bpftrace),
                                   ("histogram", forms.histogram, forms.histogram_of_bpftrace)):
            candidates = {f"{what} -- COMMAND": ours, "bpftrace -c": theirs}
            paired.report(paired.measure(given.rounds, candidates), "ns a hit", "bpftrace -c")
        candidates = {"-p PID": forms.process, "-p PID --children": forms.process_and_children,
                      "bpftrace -p": forms.process_of_bpftrace}
        paired.report(paired.measure(given.rounds, candidates), "ns a hit", "bpftrace -p")
    finally:
        run.close()


if __name__ == "__main__":
    main()
