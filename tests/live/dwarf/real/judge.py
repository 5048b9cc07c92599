# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside GDB (gdb -batch -x): starts the program, waits until it is traced, then stops at entries and returns of functions
that are traced at the same time, and writes down what GDB has for their arguments and results.

GDB's breakpoints are the processor's own: one of these is hit before the instruction that the tracer has replaced there, so that
both see the same hit. There are four. A breakpoint is taken away when it is hit and set again when the call returns, since
stepping over it would step over the tracer's instruction as well.

Environment: JUDGE_PLACES: a list of {"pc", "function", "inlined", "values": [[expression, base name]...]}; "pc" as in the file JUDGE_FILE;
JUDGE_HITS: so many stops of each; JUDGE_ALL: so many seconds at most; JUDGE_ENVIRONMENT: the program's, besides GDB's; JUDGE_DIRECTORY: "pid" is written there, "go" awaited, "result" written:
a list of {"pc", "after", "until", "values", "ended", "result"}: the tracer's hit was between the two, by the monotonic clock, in nanoseconds, and was
the first there, or the last one if "behind", where GDB stops behind it; neither where the program did not go on; ended: the call was seen to return
"""

import json
import os
import pathlib
import re
import signal
import threading
import time

import gdb

DIRECTORY = pathlib.Path(os.environ["JUDGE_DIRECTORY"])
FILE = os.path.realpath(os.environ["JUDGE_FILE"])
HITS = int(os.environ["JUDGE_HITS"])
DEPTH = 1
STRING_BYTES = 200
MOST_ELEMENTS = 8
SLOTS = 4
STRUCTS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY)
REST = 10  # seconds that a program may go on when all is known
RESULT = []


def text_of(data):
    """As JSON has it: up to the first NUL."""
    return bytes(data).split(b"\0")[0].decode("utf-8", "replace")


def is_character(kind):
    kind = kind.strip_typedefs()
    return kind.code == gdb.TYPE_CODE_INT and kind.sizeof == 1 and "char" in str(kind.unqualified()) and "unsigned" not in str(kind)


def of_struct(value, kind, depth):
    """By the names of members; those of members without one, and of base classes, are the struct's own."""
    members = {}
    for field in kind.fields():
        if not hasattr(field, "bitpos"):
            continue  # static
        if field.is_base_class or not field.name:
            inner = value[field]
            members.update(of_struct(inner, inner.type.strip_typedefs(), depth))
        elif not field.artificial:
            members[field.name] = plain(value[field], depth - 1)
    return members


def plain(value, depth):
    """As the tracer's JSON has it; None: not there, or no value that has a form of its own."""
    try:
        if value.is_optimized_out:
            return None
        kind = value.type.strip_typedefs()
        if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            meant = value.referenced_value()
            return plain(meant, depth) if meant.type.strip_typedefs().code in STRUCTS else int(meant.address) & 2**64 - 1
        if kind.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM):
            return int(value)
        if kind.code == gdb.TYPE_CODE_PTR:
            return int(value) & 2**64 - 1
        if kind.code == gdb.TYPE_CODE_FLT:
            return float(value) if kind.sizeof <= 8 else None
        if kind.code == gdb.TYPE_CODE_ARRAY:
            first, last = kind.range()
            if is_character(kind.target()):
                return text_of(int(value[i]) & 255 for i in range(first, min(last + 1, STRING_BYTES)))
            return [plain(value[i], depth) for i in range(first, min(last + 1, MOST_ELEMENTS))] if depth > 0 else None
        if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            name = str(kind.unqualified())
            if re.fullmatch(r"std::(__cxx11::)?basic_string<char, .*>", name):
                size = int(value["_M_string_length"])
                return bytes(gdb.selected_inferior().read_memory(int(value["_M_dataplus"]["_M_p"]), size)).decode("utf-8", "replace")[:STRING_BYTES] if size else ""
            if name.startswith("std::basic_string_view<char,"):
                size = int(value["_M_len"])
                return bytes(gdb.selected_inferior().read_memory(int(value["_M_str"]), size)).decode("utf-8", "replace")[:STRING_BYTES] if size else ""
            return of_struct(value, kind, depth) if depth > 0 else None
    except (gdb.error, UnicodeError, RuntimeError):
        pass
    return None


def text_behind(value):
    """What a pointer to characters points to."""
    try:
        memory, data = gdb.selected_inferior(), b""
        address = int(value)
        while len(data) < STRING_BYTES:
            data += bytes(memory.read_memory(address + len(data), 1))
            if data.endswith(b"\0"):
                break
        return text_of(data)
    except (gdb.error, OverflowError):
        return None


def block_of(place, pc):
    """The function that the place is in; of an inlined copy the copy."""
    block, outermost = gdb.block_for_pc(pc), None
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            if place["inlined"] and block.function.name.split("(")[0] == place["function"]:
                return block
            outermost = block
        block = block.superblock
    return None if place["inlined"] else outermost


def values_at(place, pc, frame):
    block = block_of(place, pc)
    symbols = {symbol.name: symbol for symbol in block if symbol.is_argument} if block is not None else {}
    values = {}
    for expression, name in place["values"]:
        if name not in symbols:
            continue
        try:
            value = symbols[name].value(frame)
            if value.is_optimized_out:
                continue
            if expression.startswith("str("):
                values[expression] = text_behind(value)
            else:
                values[expression] = plain(value.dereference() if expression.startswith("*") else value, DEPTH)
        except (gdb.error, RuntimeError):
            continue
    return values


def is_unoptimised(pc):
    symtab = gdb.find_pc_line(pc).symtab
    levels = re.findall(r" -O(\w*)", symtab.producer or "") if symtab is not None and symtab.is_valid() else ["?"]
    return levels == [] or levels[-1] == "0"


def body_of(pc):
    """Where code without optimisation has its parameters in the places that debug information has for the whole function:
    GDB, which takes them from there anywhere, prints what was there before at the function's first instruction. Other code: `pc`."""
    block = gdb.block_for_pc(pc)
    if block is None or not is_unoptimised(pc):
        return pc
    return min((row.pc for row in gdb.find_pc_line(pc).symtab.linetable() if pc < row.pc < block.end), default=pc)


class AtReturn(gdb.FinishBreakpoint):
    def __init__(self, frame, stop):
        super().__init__(frame, internal=True)
        self.result = stop

    def stop(self):
        self.result["ended"] = True
        if self.return_value is not None:
            self.result["result"] = plain(self.return_value, DEPTH)
        return True

    def out_of_scope(self):
        pass


def is_moved(path):
    """False for ET_EXEC, which is mapped at the addresses it has."""
    with open(path, "rb") as file:
        return file.read(18)[16] != 2


def go_on():
    """What is hit meanwhile is of the last stop."""
    for stop in RESULT:
        stop.setdefault("after", time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    gdb.execute("continue", to_string=True)
    for stop in RESULT:
        stop.setdefault("until", time.clock_gettime_ns(time.CLOCK_MONOTONIC))


class Judge:
    def __init__(self, base):
        self.base, self.armed, self.hits = base, {}, {}
        self.waiting = json.loads(os.environ["JUDGE_PLACES"])
        self.returning = []  # places whose call is under way
        self.went_on = 0  # the last time

    def arm(self):
        while self.waiting and len(self.armed) + len(self.returning) < SLOTS:
            self.arm_one(self.waiting.pop(0))

    def arm_one(self, place):
        address = body_of(self.base + place["pc"])
        self.armed[address] = place, gdb.Breakpoint(f"*{address:#x}", type=gdb.BP_HARDWARE_BREAKPOINT, internal=True)

    def stopped(self):
        frame = gdb.newest_frame()
        pc = frame.pc()
        if pc in self.armed:
            self.at_entry(pc, frame)
        else:
            self.at_return()

    def at_entry(self, pc, frame):
        place, breakpoint = self.armed.pop(pc)
        breakpoint.delete()
        stop = {"pc": place["pc"], "values": values_at(place, pc, frame)}
        RESULT.append(stop)
        self.hits[place["pc"]] = self.hits.get(place["pc"], 0) + 1
        if pc != self.base + place["pc"]:  # its return address is the kernel's by now, where GDB cannot wait for it
            stop.update(behind=True, after=self.went_on, until=time.clock_gettime_ns(time.CLOCK_MONOTONIC))
            if self.hits[place["pc"]] < HITS:
                self.waiting.insert(0, place)
            return
        if place["inlined"] and self.hits[place["pc"]] >= HITS:
            return
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
        if place["inlined"] and self.hits[place["pc"]] >= HITS:
            return
        try:
            self.returning.append((place, AtReturn(frame, stop)))
        except (gdb.error, ValueError):
            pass  # nobody called it

    def at_return(self):
        still = []
        for place, breakpoint in self.returning:
            if breakpoint.is_valid():
                still.append((place, breakpoint))
            elif self.hits[place["pc"]] < HITS:
                self.waiting.insert(0, place)
        self.returning = still

    def run(self):
        end = time.monotonic() + float(os.environ["JUDGE_ALL"])
        self.arm()
        while (self.armed or self.returning) and time.monotonic() < end:
            self.went_on = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            go_on()
            if gdb.selected_inferior().pid == 0:
                return
            self.stopped()
            self.arm()
        self.let_run()

    def let_run(self):
        """To the program's end, so that calls under way, of which there is no event yet, end too."""
        for _, breakpoint in [*self.armed.values(), *self.returning]:
            if breakpoint.is_valid():
                breakpoint.delete()
        pid = gdb.selected_inferior().pid
        enough = threading.Timer(REST, lambda: os.kill(pid, signal.SIGKILL))
        enough.start()
        go_on()
        enough.cancel()


def main():
    for setting in ("pagination off", "confirm off", "print thread-events off", "debuginfod enabled off"):
        gdb.execute(f"set {setting}")
    for name, value in json.loads(os.environ["JUDGE_ENVIRONMENT"]).items():
        gdb.execute(f"set environment {name} {value}")
    gdb.execute("starti", to_string=True)
    # At the program's own first instruction its libraries are there.
    entry = int(re.search(r"AT_ENTRY.*\s(0x[0-9a-f]+)", gdb.execute("info auxv", to_string=True)).group(1), 16)
    gdb.Breakpoint(f"*{entry:#x}", type=gdb.BP_HARDWARE_BREAKPOINT, temporary=True, internal=True)
    gdb.execute("continue", to_string=True)
    pid = gdb.selected_inferior().pid
    if pid == 0:  # no program gets to its end without its first instruction
        print("the processor does not stop at its breakpoints")
        return
    mapped = [line.split(maxsplit=5) for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()]
    bases = [int(words[0].split("-")[0], 16) for words in mapped if len(words) == 6 and os.path.realpath(words[5]) == FILE]
    (DIRECTORY / "pid.part").write_text(str(pid))
    (DIRECTORY / "pid.part").rename(DIRECTORY / "pid")
    while not (DIRECTORY / "go").exists():
        time.sleep(0.02)
    Judge(min(bases) if is_moved(FILE) else 0).run()
    (DIRECTORY / "result").write_text(json.dumps(RESULT))
    if gdb.selected_inferior().pid != 0:
        gdb.execute("kill", to_string=True)


main()
