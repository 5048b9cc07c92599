# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside GDB (gdb -batch -x): stops at the lines of JUDGE_LINES in lines.c and writes the numbers and texts that GDB sees
in the variables there to JUDGE_RESULT: a list of {"pc", "values"}, in the order of the stops.
"""

import json
import os

import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")
STOPS = []


def readable(value):
    """A number or text; None: anything else, and what is not there."""
    try:
        kind = value.type.strip_typedefs()
        if value.is_optimized_out:
            return None
        if kind.code == gdb.TYPE_CODE_PTR and kind.target().unqualified().strip_typedefs().code == gdb.TYPE_CODE_INT:
            return value.string()
        if kind.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL):  # addresses differ from run to run
            return int(value)
    except (gdb.error, UnicodeError):
        pass
    return None


def variables(frame):
    """Those of the function, inlined or not, that the frame is in; an inner one hides outer ones."""
    found = {}
    block = frame.block()
    while block is not None:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and symbol.name not in found:
                found[symbol.name] = readable(symbol.value(frame))
        if block.function is not None:
            break
        block = block.superblock
    return found


lines = json.loads(os.environ["JUDGE_LINES"])
for line in lines:
    gdb.Breakpoint(f"lines.c:{line}")
gdb.execute("run > /dev/null")
while gdb.selected_inferior().pid != 0:
    frame = gdb.selected_frame()
    STOPS.append({"pc": frame.pc(), "values": variables(frame)})
    gdb.execute("continue")
with open(os.environ["JUDGE_RESULT"], "w") as file:
    json.dump(STOPS, file)
