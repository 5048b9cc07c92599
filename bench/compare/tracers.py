#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One question to several tracers (`./run bench tracers`): what a hit costs the traced program, how many hits arrived,
how long one takes from start to end, its memory, and which values are right. With --write the tables go into
docs/comparison.md."""

import itertools
import math
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "attach"))
import paired  # noqa: E402 (makes the tests' modules importable)
import peers  # noqa: E402
import values  # noqa: E402
from harness import Run  # noqa: E402

PAGE = paired.ROOT / "docs/comparison.md"
BEGIN, END = "<!-- ./run bench tracers --write writes from here -->", "<!-- to here -->"
TEXT = "a-text"


def most_resident(pid):
    """Megabytes that a process has had at once since it is this program; 0: it has gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) / 1024 if found else 0


class Answer:
    """What a tracer did with one question: the program's time a hit, the share of hits that it has, its own time and memory."""

    def __init__(self, tracer, question, program, hits, log):
        argv = [str(word) for word in tracer.command(question, program, [str(hits), TEXT])]
        began = time.monotonic()
        with open(log, "wb") as out:
            started = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=peers.environment())
            self.megabytes = 0
            while started.poll() is None:
                self.megabytes = max(self.megabytes, most_resident(started.pid))
                time.sleep(0.005)
        self.seconds = time.monotonic() - began
        said = log.read_text(errors="replace")
        took = re.search(r"took (\d+)", said)
        if started.returncode or not took:
            raise RuntimeError(f"{tracer.name}, {question}: exit {started.returncode}: {said[-400:]}")
        self.ns = int(took[1]) / hits
        self.share = tracer.found(question, said) / hits


def measure(run, tracers, program, rounds, hits):
    """(tracer, question) -> its answers. In each round a question goes to one tracer after the other, in an order that rotates:
    what else the machine does meets all of them. "one": a single hit."""
    answers = {}
    for number, question in itertools.product(range(rounds), [*peers.QUESTIONS, "one"]):
        asked = "count" if question == "one" else question
        shift = number % len(tracers)
        for tracer in tracers[shift:] + tracers[:shift]:
            if not tracer.unable and tracer.command(asked, program, []) is not None:
                answer = Answer(tracer, asked, program, 1 if question == "one" else hits, run.dir / "log")
                answers.setdefault((tracer.name, question), []).append(answer)
    return answers


def spread(values, digits=0):
    middle, low, high = (f"{each:,.{digits}f}" for each in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low}..{high})"


def share(answers):
    least = min(each.share for each in answers)
    return "all" if least == 1 else f"{math.floor(10_000 * least) / 100:.2f} %"


def tables(tracers, answers, untraced):
    lines = ["| ns a hit, for the program | count | count by a text | print number and text | arrived, in the worst round |",
             "|---|---|---|---|---|"]
    for tracer in tracers:
        if tracer.unable:
            continue
        cells = [spread([each.ns for each in answers[tracer.name, question]]) if (tracer.name, question) in answers else "-"
                 for question in peers.QUESTIONS]
        arrived = share(answers[tracer.name, "print"])
        lines.append(f"| {tracer.name} {tracer.version()} | {' | '.join(cells)} | {arrived} |")
        for question in ("count", "by text"):
            if (tracer.name, question) in answers and share(answers[tracer.name, question]) != "all":
                raise RuntimeError(f"{tracer.name}, {question}: it has {share(answers[tracer.name, question])} of the hits")
    lines += ["", "| | one hit, from start to end, s | memory while counting, MB |", "|---|---|---|"]
    for tracer in tracers:
        if not tracer.unable:
            lines.append(f"| {tracer.name} | {spread([each.seconds for each in answers[tracer.name, 'one']], 2)} | "
                         f"{spread([each.megabytes for each in answers[tracer.name, 'count']])} |")
    lines += ["", f"Without a tracer a round of the loop takes {untraced:.1f} ns."]
    lines += [f"{' '.join(filter(None, (tracer.name, tracer.version())))} was not measured: {tracer.unable}."
              for tracer in tracers if tracer.unable]
    return "\n".join(lines)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"Linux {re.match(r'[0-9]+.[0-9]+', platform.release())[0]}, {platform.machine()}, {os.cpu_count()} processors" + \
        (f" ({model[1]})" if model else "")


def write(text):
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


def main():
    wanted = "--write" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--write"]
    given = paired.options(__doc__, rounds=9, hits=100_000, root="")
    run, tracers = Run(given.tool), []
    try:
        program = run.build("compare", [HERE / "compare.c"], ["-O1"])
        alone = subprocess.run([program, "100000000", TEXT], capture_output=True, text=True, check=True).stdout
        tracers = peers.all_tracers(given.tool, given.root, program)
        answers = measure(run, tracers, program, given.rounds, given.hits)
        text = (f"{machine()}; {given.rounds} rounds of {given.hits:,} hits: medians, in brackets the lowest and the highest.\n\n"
                f"{tables(tracers, answers, int(alone.split()[1]) / 1e8)}\n\n"
                f"{values.table(tracers, run.build('values', [HERE / 'values.c'], ['-O2']))}")
        print(text)
        if wanted:
            write(text)
    finally:
        for tracer in tracers:
            tracer.close()
        run.close()


if __name__ == "__main__":
    main()
