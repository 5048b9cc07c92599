# SPDX-License-Identifier: BSD-2-Clause
"""Paired measurement: in every round each candidate is measured once, in an order that rotates, so that a slow spell
of a shared machine hits all of them. Ratios are taken within a round and their median is reported."""

import argparse
import os
import pathlib
import shutil
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/live"), str(ROOT / "tests/programs")]  # puppet and the harness


def options(description, **defaults):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tool", default=os.environ.get("USDT_TRACE", str(ROOT / "build/bin/usdt-trace")))
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = parser.parse_args()
    given.tool = shutil.which(given.tool)
    if given.tool is None:
        parser.error("usdt-trace not found: give --tool PATH")
    if os.geteuid() != 0:
        parser.error("needs root (attaching uprobes)")
    return given


def have_bpftrace():
    found = shutil.which("bpftrace")
    if found is None:
        print("bpftrace is not installed: measured without it")
    return found


def measure(rounds, candidates):
    """candidates: name -> function() -> number. Returns name -> [number per round]."""
    names = list(candidates)
    results = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(candidates[name]())
    return results


def report(results, unit, against):
    """Median, range, and the median of the per-round ratios to one candidate."""
    print(f"{'':22} {'median':>12} {'min':>12} {'max':>12}   ratio to {against}")
    for name, values in results.items():
        ratio = statistics.median(mine / base for mine, base in zip(values, results[against]))
        numbers = " ".join(f"{value:>12.2f}" for value in (statistics.median(values), min(values), max(values)))
        print(f"{name:22} {numbers}   {ratio:.3f}    {unit}")
