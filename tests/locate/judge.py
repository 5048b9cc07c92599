# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside GDB (gdb -batch -x): stops at every instance of every function, before its first instruction, and writes
down what our locations come to with GDB's registers and memory, what GDB itself prints there, and what it has to be.

Environment: JUDGE_LOCATIONS (what tests/locate/locations printed), JUDGE_CALLS (programs.py), JUDGE_RESULT (written)
"""

import collections
import json
import os

import gdb

LOCATIONS = json.load(open(os.environ["JUDGE_LOCATIONS"]))
EXPECTED = json.load(open(os.environ["JUDGE_CALLS"]))
OUTCOMES = []


def register(name, frame):
    value = frame.read_register(name)
    return int(value.cast(gdb.lookup_type("long"))) & (2 ** (8 * value.type.sizeof) - 1)


def memory(address, size):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, size).tobytes(), "little")


def our_bits(location, size, frame, base):
    """The value's bytes as an integer; None: unreadable."""
    kind = location["kind"]
    if kind == "constant":
        return location["value"] & (2 ** (8 * size) - 1)
    if kind == "register":
        bits = register(location["low"], frame)
        if location["high"]:
            bits = bits & 0xffffffff | register(location["high"], frame) << 32
        return bits & (2 ** (8 * size) - 1)
    if kind != "memory":
        return None
    address = location["displacement"] + (base if location["file"] else 0)
    if location["base"]:
        address += register(location["base"], frame)
    if location["index"]:
        address += register(location["index"], frame) << location["shift"]
    address &= 0xffffffff if location["wraps"] else 2 ** 64 - 1
    return address & (2 ** (8 * size) - 1) if location["is_value"] else memory(address, size)


def extended(bits, size, signed, to):
    if signed and bits >> (8 * size - 1) & 1:
        bits -= 2 ** (8 * size)
    return bits & (2 ** (8 * to) - 1)


def expected_bits(value):
    if isinstance(value, dict) and "symbol" in value:
        return int(gdb.parse_and_eval(f"(unsigned long)&{value['symbol']}"))
    return value


def our_outcome(arg, value, size, frame, base):
    """right, wrong, unreadable; of a struct by its pieces."""
    if isinstance(value, dict) and "bytes" in value:
        known = {}
        for piece in arg["pieces"]:
            location = piece["location"]
            if location["kind"] == "memory" and not location["is_value"]:
                for i in range(piece["size"]):
                    known[piece["offset"] + i] = our_bits({**location, "displacement": location["displacement"] + i}, 1,
                                                          frame, base)
            elif location["kind"] != "unreadable":
                bits = our_bits(location, piece["size"], frame, base)
                for i in range(piece["size"]):
                    known[piece["offset"] + i] = bits >> 8 * i & 0xff
        outcome = "right"
        for offset, length, bits in value["bytes"]:
            for i in range(length):
                if offset + i not in known:
                    outcome = "unreadable" if outcome == "right" else outcome
                elif known[offset + i] != bits >> 8 * i & 0xff:
                    outcome = "wrong"
        return outcome, None
    bits = our_bits(arg["location"], arg["size"], frame, base)
    if bits is None:
        return "unreadable", None
    bits = extended(bits, arg["size"], arg["signed"], size)
    return ("right" if bits == expected_bits(value) else "wrong"), bits


def gdb_bits(value):
    """The bytes of a scalar as an integer."""
    code = value.type.strip_typedefs().code
    if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return int(value.referenced_value().address)
    if code == gdb.TYPE_CODE_FLT:
        import struct
        return int.from_bytes(struct.pack("<f" if value.type.sizeof == 4 else "<d", float(value)), "little")
    return int(value) & (2 ** (8 * value.type.sizeof) - 1)


def gdb_outcome(name, value, pc, function, frame):
    block = gdb.block_for_pc(pc)
    while block is not None and not (block.function is not None and block.function.name.split("(")[0].endswith(function)):
        block = block.superblock
    if block is None:
        return "unreadable"
    parameters = [symbol for symbol in block if symbol.is_argument]
    found = [symbol for symbol in parameters if symbol.name == name]
    if not found:
        return "unreadable"
    try:
        shown = found[0].value(frame)
        if shown.is_optimized_out:
            return "unreadable"
        if isinstance(value, dict) and "bytes" in value:
            bits = [gdb_bits(shown[f"m{i}"]) for i in range(len(value["bytes"]))]
            return "right" if bits == [one[2] for one in value["bytes"]] else "wrong"
        return "right" if gdb_bits(shown) == expected_bits(value) else "wrong"
    except (gdb.error, ValueError, TypeError):
        return "unreadable"


class At(gdb.Breakpoint):
    def __init__(self, function, instance, calls, base):
        super().__init__(f"*{base + instance['pc']:#x}", internal=True)
        self.function, self.instance, self.calls, self.base, self.hits = function, instance, calls, base, 0

    def stop(self):
        frame = gdb.newest_frame()
        if self.instance["inlined"]:
            calls = [call for call in self.calls if call["line"] == self.instance["line"]]
        else:
            calls = self.calls[self.hits:]
        self.hits += 1
        if not calls:
            OUTCOMES.append({"function": self.function, "unexpected": True})
            return False
        for arg, value in zip(self.instance["args"], calls[0]["values"]):
            size = arg["size"] if not isinstance(value, int) else SIZES.get(arg["type"], arg["size"])
            ours, bits = our_outcome(arg, value, size, frame, self.base)
            OUTCOMES.append({
                "function": self.function, "inlined": self.instance["inlined"], "pc": hex(self.instance["pc"]),
                "name": arg["name"], "type": arg["type"], "struct": isinstance(value, dict) and "bytes" in value,
                "ours": ours, "got": bits, "expected": value, "location": arg["location"], "pieces": arg["pieces"],
                "gdb": gdb_outcome(arg["name"], value, self.base + self.instance["pc"], self.function, frame)})
        if len(self.instance["args"]) != len(calls[0]["values"]):
            OUTCOMES.append({"function": self.function, "unexpected": True, "args": len(self.instance["args"])})
        if self.instance["result"] and not self.instance["inlined"]:
            word = gdb.lookup_type("long").sizeof
            AtReturn(self.function, self.instance["result"], memory(register("rsp" if word == 8 else "esp", frame), word),
                     self.base)
        return False


class AtReturn(gdb.Breakpoint):
    def __init__(self, function, result, address, base):
        super().__init__(f"*{address:#x}", internal=True, temporary=False)
        self.function, self.result, self.base, self.done = function, result, base, False

    def stop(self):
        if self.done:
            return False
        self.done = True
        size = SIZES.get(self.result["type"], self.result["size"])
        value = EXPECTED["results"][self.function]
        ours, bits = our_outcome(self.result, value, size, gdb.newest_frame(), self.base)
        OUTCOMES.append({"function": self.function, "inlined": False, "name": "result", "type": self.result["type"],
                         "struct": False, "ours": ours, "got": bits, "expected": value, "gdb": "unreadable",
                         "location": self.result["location"], "pieces": [], "result": True})
        return False


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set print frame-arguments none")
gdb.execute("break main")
gdb.execute("run", to_string=True)
WORD = gdb.lookup_type("long").sizeof
# What our narrower types are extended to: the sizes of C's types.
SIZES = {"char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "short int": 2, "unsigned short": 2,
         "short unsigned int": 2, "int": 4, "unsigned int": 4, "long": WORD, "long int": WORD, "unsigned long": WORD,
         "long unsigned int": WORD, "long long": 8, "long long int": 8, "unsigned long long": 8, "long long unsigned int": 8}
BASE = int(gdb.parse_and_eval("(unsigned long)&main")) - LOCATIONS["main"][0]["pc"]
POINTS = []
for function, calls in EXPECTED["calls"].items():
    names = [name for name in LOCATIONS if name == function or function in name and name.startswith("_Z")
             and f"{len(function)}{function}" in name]
    for name in names:
        for instance in LOCATIONS[name]:
            POINTS.append(At(function, instance, calls, BASE))
gdb.execute("continue", to_string=True)
if gdb.convenience_variable("_exitcode") is None:
    OUTCOMES.append({"function": "main", "unexpected": True, "ended": "by a signal"})
# A call of an inlined copy is one hit of one of the places that stand for it.
HITS = collections.Counter()
for point in POINTS:
    if point.instance["inlined"]:
        HITS[point.function, point.instance["line"]] += point.hits
for (function, line), hits in HITS.items():
    if hits != 1:
        OUTCOMES.append({"function": function, "unexpected": True, "line": line, "hits": hits})
json.dump(OUTCOMES, open(os.environ["JUDGE_RESULT"], "w"))
