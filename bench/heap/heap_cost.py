#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What libusdt-heap.so costs a program: while nobody traces it, at an allocation that is not chosen, and at one that is.
Each is measured beside the same program without the library, in turns, and beside what two traced functions cost it."""

import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attach"))

import paired  # noqa: E402 (makes the tests' modules importable)
from harness import Run, wait_line, wait_until  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PAIRED_BY = ["--pair-by", "pid, user_ptr ~~ pid, ptr"]
SPAN = ["otel_memory:alloc ~~ otel_memory:free", *PAIRED_BY, "--in-flight", "--sum", "weighted_bytes"]


class Heap:
    def __init__(self, run, tool):
        self.run, self.tool = run, tool
        self.library = pathlib.Path(tool).parents[1] / "provider/heap/libusdt-heap.so"
        self.program = run.build("loop", [HERE / "loop.c"], ["-O2", "-fno-builtin"])

    def pair(self, pairs, mean=None, traced=None, size=64):
        """Nanoseconds of malloc() and free(). `mean`: with the library; `traced`: the options of a trace of it."""
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "USDT_HEAP_MEAN": mean} if mean else None
        loop = self.run.start(self.program, pairs, size, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment)
        wait_line(loop)
        tracer = None
        if traced:
            log = self.run.dir / "log"
            with open(log, "wb") as out:
                tracer = self.run.start(self.tool, *traced, "-p", loop.pid, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            wait_until(lambda: "attached " in log.read_text(errors="replace"), "attached")
        loop.stdin.write(b"x\n")
        took = float(wait_line(loop, 120))
        loop.wait(20)
        if tracer:
            tracer.send_signal(2)
            tracer.wait(60)
        return took


def difference(results, name, against):
    return statistics.median(mine - base for mine, base in zip(results[name], results[against]))


def main():
    given = paired.options(__doc__, rounds=7)
    run = Run(given.tool)
    try:
        heap = Heap(run, given.tool)
        many, few = 3_000_000, 40_000
        results = paired.measure(given.rounds, {
            "without": lambda: heap.pair(many),
            "nobody traces": lambda: heap.pair(many, "512K"),
            "functions, counted": lambda: heap.pair(few, traced=["uprobe:libc.so.6:malloc", "uprobe:libc.so.6:free", "--count"]),
            "traced, none chosen": lambda: heap.pair(many, "1024G", SPAN),
            "each chosen, counted": lambda: heap.pair(few, "0", ["otel_memory:alloc", "otel_memory:free", "--count"]),
            "each chosen, spans": lambda: heap.pair(few, "0", SPAN),
            "each chosen, stacks": lambda: heap.pair(few, "0", [*SPAN, "--by", "ustack", "--ustack-size", "8"]),
        })
        paired.report(results, "ns a pair", "without")
        paired.report({name: results[name] for name in list(results) if "counted" in name}, "ns a pair", "functions, counted")
        for name in list(results)[1:]:
            print(f"{name}: {difference(results, name, 'without') / 2:.2f} ns more for each call")
    finally:
        run.close()


if __name__ == "__main__":
    main()
