# SPDX-License-Identifier: BSD-2-Clause
"""Compares a trace with the program's own log (truth_log.h): per thread, hit by hit, value by value."""

import dataclasses
import json
import math
import struct

from harness import check, check_equal

# Operands whose value a tracer cannot know, with the reason; anything else unreadable is a failure.
EXPLAINED = {".L": "a local label of the constant pool, which no symbol table keeps",
             "%xmm": "vector register, not saved by the kernel's breakpoint"}
UNREADABLE_LIMIT = 0.05


@dataclasses.dataclass
class Tally:
    """Argument values compared."""

    hits: int = 0
    readable: int = 0
    unreadable: int = 0
    reasons: dict = dataclasses.field(default_factory=dict)

    def error(self, why):
        self.unreadable += 1
        self.reasons[why] = self.reasons.get(why, 0) + 1

    def __str__(self):
        reasons = "".join(f"; {count} x {why}" for why, count in self.reasons.items())
        return f"{self.hits} hits, {self.readable} values right, 0 wrong, {self.unreadable} unreadable{reasons}"


def read_log(path):
    """tid -> [(probe, [value, ...]), ...] in the order of the hits; absent file: nothing was logged."""
    threads = {}
    if path.exists():
        for line in path.read_text().splitlines():
            record = json.loads(line)
            threads.setdefault(record["tid"], []).append((record["probe"], record["args"]))
    return threads


def events_by_thread(events):
    threads = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        threads.setdefault(event["tid"], []).append(event)
    return threads


def is_error(value):
    return isinstance(value, dict) and isinstance(value.get("error"), str) and value["error"] != ""


def _float_matches(code, text, value):
    expected = float.fromhex(text)
    if math.isnan(expected) or math.isinf(expected):  # JSON has no such numbers: strings
        return isinstance(value, str) and str(float(value)) == str(expected)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return struct.pack(code, value) == struct.pack(code, expected) and (value != 0 or _same_zero(value, expected))
    except OverflowError:
        return False


def _same_zero(value, expected):
    return math.copysign(1.0, value) == math.copysign(1.0, expected)


def matches(expected, value):
    """Whether a traced value is the logged one."""
    if isinstance(expected, str):
        kind, text = expected.split(":", 1)
        if kind == "s":
            return value == bytes.fromhex(text).decode("utf-8", "replace")
        return _float_matches("f" if kind == "f4" else "d", text, value)
    if isinstance(value, str) and value.startswith("0x"):  # hex()
        return int(value, 16) == expected
    return isinstance(value, int) and not isinstance(value, bool) and value == expected


def _compare_value(expected, value, where, operands, tally, explained):
    if expected == "error":
        check(is_error(value), f"{where}: got {value!r} where only an error is true")
        return
    optional = isinstance(expected, dict)
    wanted = expected["maybe"] if optional else expected
    if not is_error(value):
        check(matches(wanted, value), f"WRONG VALUE {where}: got {value!r}, the program passed {wanted!r}")
        tally.readable += 1
        return
    why = next((why for mark, why in explained.items() if any(mark in operand for operand in operands)), None)
    check(optional or why is not None, f"{where}: unreadable without need: {value['error']} (operand {operands})")
    tally.error(why or value["error"])


def _operands(notes, name, index):
    """What the sites of a probe say about one argument."""
    texts = [note.args.split() for note in notes if note.name == name]
    return sorted({words[index] for words in texts if index < len(words)})


def compare(result, log, notes, limit=UNREADABLE_LIMIT, only=None, explained=None):
    """Fails on the first wrong, missing or surplus value; returns the tally. `limit`: unreadable share allowed.
    `only`: the probes that were traced, where it was not all of them. `explained`: operands beside EXPLAINED."""
    explained = EXPLAINED | (explained or {})
    logged, traced = read_log(log), events_by_thread(result.events)
    if only is not None:
        chosen = {tid: [line for line in lines if line[0] in only] for tid, lines in logged.items()}
        logged = {tid: lines for tid, lines in chosen.items() if lines}
    hits = sum(len(lines) for lines in logged.values())
    check(hits > 0, f"the program logged nothing\n{result.describe()}")
    result.check_accounted(hits, lost=0)
    check_equal(sorted(traced), sorted(logged), "threads")
    tally = Tally(hits=hits)
    for tid, lines in logged.items():
        check_equal(len(traced[tid]), len(lines), f"hits of thread {tid}")
        for number, ((probe, values), event) in enumerate(zip(lines, traced[tid])):
            where = f"hit {number} of thread {tid}, probe {probe} at {event['pc']}"
            check_equal(event["probe"].rsplit(":", 1)[1], probe, f"hit {number} of thread {tid}: probe")
            check_equal(len(event["args"]), len(values), f"{where}: number of arguments")
            for index, (expected, value) in enumerate(zip(values, event["args"])):
                place = f"{where}, arg{index}"
                _compare_value(expected, value, place, _operands(notes, probe, index), tally, explained)
    share = tally.unreadable / max(1, tally.readable + tally.unreadable)
    check(share <= limit, f"{share:.1%} of the values are unreadable: {tally}")
    return tally
