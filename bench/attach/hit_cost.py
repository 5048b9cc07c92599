#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a hit costs by what is asked of it, under usdt-trace and under bpftrace: the traced program's own time, the run
time of the BPF programs by the kernel's statistics, and what the tracer has in memory. Of what prints, how many
events were delivered."""

import dataclasses
import json
import re
import statistics
import subprocess
import time

import paired  # first: it makes the tests' modules importable
import puppet
from elf_view import Note
from harness import Run, wait_until

MANY_TERMS = " && ".join(["arg0 >= 0"] + [f"arg2 != {number}" for number in range(-8, 0)])  # eight more; all are true


@dataclasses.dataclass
class Question:
    asked: list      # of usdt-trace, with PROGRAM for the traced one
    bpftrace: str    # the same of bpftrace
    order: str = "fire"
    prints: bool = False


PROBE = "usdt:PROGRAM:puppet:beat"
TAKE = "struct parcel { long long number; }; "
ALL = {
    "count": Question([PROBE, "--count"], PROBE + " { @ = count(); }"),
    "one filter term": Question([PROBE, "--count", "--where", "arg0 >= 0"], PROBE + " /arg0 >= 0/ { @ = count(); }"),
    "nine filter terms": Question([PROBE, "--count", "--where", MANY_TERMS], PROBE + f" /{MANY_TERMS}/ {{ @ = count(); }}"),
    "sum of an argument": Question([PROBE, "--sum", "arg2"], PROBE + " { @ = sum(arg2); }"),
    "histogram": Question([PROBE, "--hist", "arg2"], PROBE + " { @ = hist(arg2); }"),
    "by text": Question([PROBE, "--by", "str(arg1)"], PROBE + " { @[str(arg1)] = count(); }"),
    "print": Question([PROBE, "--format", "text", "--print", "arg0, str(arg1), arg2"],
                      PROBE + r' { printf("%d %s %d\n", arg0, str(arg1), arg2); }', prints=True),
    "sum of a parameter": Question(["uprobe:PROGRAM:take", "--sum", "weight"], "uprobe:PROGRAM:take { @ = sum(arg1); }", "take"),
    "sum of a member": Question(["uprobe:PROGRAM:take", "--sum", "parcel->number"],
                                TAKE + "uprobe:PROGRAM:take { @ = sum(((struct parcel *)arg0)->number); }", "take"),
    "time of calls": Question(["ucall:PROGRAM:take", "--hist", "duration"],
                              "uprobe:PROGRAM:take { @began[tid] = nsecs; } uretprobe:PROGRAM:take /@began[tid]/ "
                              "{ @ = hist(nsecs - @began[tid]); delete(@began[tid]); }", "take"),
}


def programs():
    """The kernel's statistics of each BPF program: id -> (run time in ns, runs)."""
    listed = subprocess.run(["bpftool", "--json", "prog", "show"], capture_output=True, text=True, check=True).stdout
    return {each["id"]: (each.get("run_time_ns", 0), each.get("run_cnt", 0)) for each in json.loads(listed)}


def keep_statistics(wanted):
    with open("/proc/sys/kernel/bpf_stats_enabled", "w", encoding="ascii") as setting:
        setting.write("1" if wanted else "0")


def program_ns(target, order, hits):
    """Run time of all programs for one hit."""
    keep_statistics(True)
    try:
        before = programs()
        target.order(f"{order}:{hits}")
        after = programs()
    finally:
        keep_statistics(False)
    return sum(spent - before.get(number, (0, 0))[0] for number, (spent, _) in after.items()) / hits


def resident_mb(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) / 1024


class Traced:
    """The program, and what its places look like while nothing traces it."""

    def __init__(self, run):
        self.run, self.path = run, puppet.build(run, flags=["-g"])
        symbols = subprocess.run(["nm", self.path], capture_output=True, text=True, check=True).stdout
        take = int(re.search(r"^(\w+) t take$", symbols, re.MULTILINE)[1], 16)
        self.places = {"fire": puppet.note(self.path, "beat"), "take": Note("", "take", take, 0, "")}

    def argv(self, words):
        return [word.replace("PROGRAM", str(self.path)) for word in words]

    def begin(self, order, argv, **streams):
        """The program and its tracer, which has attached."""
        target = puppet.Puppet(self.run, self.path)
        place = self.places[order]
        untouched = target.memory.site(place, 16)
        tracer = None
        if argv:
            tracer = self.run.start(*argv, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams,
                                    stdin=subprocess.DEVNULL)
            wait_until(lambda: target.memory.site(place, 16) != untouched, "breakpoint in the program")
            time.sleep(0.1)  # that at the return, and the semaphore
        return target, tracer

    def cost(self, order, argv, hits):
        """(ns of the traced program, ns of BPF programs) a hit, and MB of the tracer."""
        target, tracer = self.begin(order, argv)
        target.order(f"{order}:{hits // 20}")
        loop = target.order(f"{order}:{hits}") / hits
        spent = (program_ns(target, order, hits // 2), resident_mb(tracer)) if tracer else (0.0, 0.0)
        self.end(target, tracer)
        return loop, *spent

    def delivered(self, order, argv, hits):
        """(lines of events, what the tool says about lost ones)."""
        out, err = self.run.dir / "out", self.run.dir / "err"
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            target, tracer = self.begin(order, argv, stdout=stdout, stderr=stderr)
            target.order(f"{order}:{hits}")
            self.end(target, tracer)
        text = out.read_text(errors="replace")
        said = re.findall(r"(?i)^.*\blost\b.*$", text + err.read_text(errors="replace"), re.MULTILINE)
        return sum("beat text" in line for line in text.splitlines()), said

    @staticmethod
    def end(target, tracer):
        if tracer:
            tracer.send_signal(2)
            tracer.wait(120)
        target.process.kill()
        target.process.wait()


def report(question, measured, against):
    """`measured`: tool -> a list of what cost() gave, one a round."""
    def column(tool, number):
        return [round_[number] for round_ in measured[tool]]

    def shown(tool, number):
        values = column(tool, number)
        ratio = statistics.median(mine / base for mine, base in zip(values, column(against, number)))
        return f"{statistics.median(values):9.1f} ({min(values):.0f}..{max(values):.0f})", f"{ratio:.2f}"

    for tool in measured:
        (loop, of_loop), (program, of_program) = shown(tool, 0), shown(tool, 1)
        memory = statistics.median(column(tool, 2))
        print(f"{question:20} {tool:12} {loop:>24} {of_loop:>6} {program:>24} {of_program:>6} {memory:8.1f}", flush=True)


def main():
    given = paired.options(__doc__, rounds=7, hits=200_000, what=", ".join(ALL))
    wanted = [name for name in ALL if name in given.what.split(", ")]
    run = Run(given.tool)
    try:
        traced = Traced(run)
        untraced = statistics.median(traced.cost("fire", None, given.hits)[0] for _ in range(3))
        print(f"untraced: {untraced:.1f} ns")
        print(f"{'':20} {'':12} {'a hit, ns':>24} {'ratio':>6} {'programs, ns a hit':>24} {'ratio':>6} {'MB':>8}")
        for name in wanted:
            question = ALL[name]
            tools = {"usdt-trace": [given.tool, *traced.argv(question.asked)]}
            if paired.have_bpftrace():
                tools["bpftrace"] = ["bpftrace", "-e", *traced.argv([question.bpftrace])]
            measured = paired.measure(given.rounds, {
                tool: lambda argv=argv: traced.cost(question.order, argv, given.hits) for tool, argv in tools.items()})
            report(name, measured, list(tools)[-1])
            for tool, argv in tools.items() if question.prints else ():
                lines, said = traced.delivered(question.order, argv, given.hits)
                print(f"  {tool}: delivered {lines} of {given.hits} hits; says {said[-3:] or 'nothing of lost events'}")
    finally:
        run.close()


if __name__ == "__main__":
    main()
