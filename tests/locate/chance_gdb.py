# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside GDB (gdb -batch -x): what GDB prints of the parameters at each place where usdt-trace had a hit, as events of
chance_judge.py. Environment: CHANCE_POINTS (JSON: function by place as linked), CHANCE_ARGUMENTS, CHANCE_RESULT (written).
"""

import json
import os

import gdb

POINTS = {int(pc, 16): function for pc, function in json.load(open(os.environ["CHANCE_POINTS"])).items()}
EVENTS = []


def shown(value, depth=0):
    """As usdt-trace has it in JSON."""
    kind = value.type.strip_typedefs()
    if value.is_optimized_out or depth > 6:
        return {"error": "optimised out"}
    if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return shown(value.referenced_value(), depth)
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        members = {}
        for field in kind.fields():
            if field.is_base_class:
                members.update(shown(value[field], depth + 1))
            elif field.name and not field.name.startswith("_vptr"):
                members[field.name] = part(value, field, depth)
        return members
    if kind.code == gdb.TYPE_CODE_ARRAY:
        first, last = kind.range()
        if kind.target().strip_typedefs().name == "char":
            return "".join(chr(int(value[i]) & 255) for i in range(first, last + 1)).split("\0")[0]
        return [shown(value[i], depth + 1) for i in range(first, last + 1)]
    if kind.code == gdb.TYPE_CODE_FLT:
        return float(value)
    if kind.code == gdb.TYPE_CODE_COMPLEX:
        return {"error": "complex"}
    return int(value)


def part(value, field, depth):
    try:
        return shown(value[field], depth + 1)
    except (gdb.error, ValueError, TypeError) as error:
        return {"error": str(error)}


def parameters(frame, function):
    block = frame.block()
    while block is not None and not (block.function is not None and block.function.name.split("(")[0].endswith(function)):
        block = block.superblock
    for symbol in block or ():
        if not symbol.is_argument:
            continue
        try:
            yield shown(symbol.value(frame))
        except (gdb.error, ValueError, TypeError, UnicodeError) as error:
            yield {"error": str(error)}


class At(gdb.Breakpoint):
    def __init__(self, pc, function, base):
        super().__init__(f"*{base + pc:#x}", internal=True)
        self.pc, self.function = pc, function

    def stop(self):
        args = list(parameters(gdb.newest_frame(), self.function))
        EVENTS.append({"ts": len(EVENTS), "probe": f"uprobe:program:{self.function}", "pc": hex(self.pc), "args": args})
        return False


gdb.execute("set pagination off")
gdb.execute("set print frame-arguments none")
gdb.execute("break main")
gdb.execute("run " + os.environ["CHANCE_ARGUMENTS"], to_string=True)
BASE = int(gdb.parse_and_eval("(unsigned long)&main")) - int(os.environ["CHANCE_MAIN"], 16)
for pc, function in POINTS.items():
    At(pc, function, BASE)
gdb.execute("continue", to_string=True)
json.dump(EVENTS, open(os.environ["CHANCE_RESULT"], "w"))
