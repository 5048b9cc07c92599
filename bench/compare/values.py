# SPDX-License-Identifier: BSD-2-Clause
"""Which arguments of values.c each tracer shows as the program prints them."""

import dataclasses
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    type: str      # as BPF programs call it
    operand: str   # as the note has it
    truth: str     # as the program prints it


TYPES = {"int8": "s8", "uint8": "u8", "int16": "s16", "int64": "s64", "uint64": "u64", "constant": "s32", "global": "s32",
         "table": "s16", "thread": "s32", "double": "u64", "float": "u32"}


def cases(program):
    truths = dict(line.split() for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())
    notes = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    operands = dict(re.findall(r"Name: (\w+)\n.*\n +Arguments: (\S+)", notes))
    return [Case(name, its_type, operands[name], truths[name]) for name, its_type in TYPES.items()]


def number(text):
    return float(text) if "." in text else int(text, 0)


def cell(shown, truth):
    if shown is None:
        return "no value"
    return "right" if number(shown) == number(truth) else f"`{shown}`"


def table(tracers, program):
    """A row for each argument; what is shown and wrong is in the cell."""
    able = [tracer for tracer in tracers if not tracer.unable]
    lines = [f"| argument | in the note | it is | {' | '.join(tracer.name for tracer in able)} |", "|---|---|---|" + "---|" * len(able)]
    for case in cases(program):
        shown = (cell(tracer.value(case, program), case.truth) for tracer in able)
        lines.append(f"| {case.name} | `{case.operand}` | `{case.truth}` | {' | '.join(shown)} |")
    return "\n".join(lines)
