# SPDX-License-Identifier: BSD-2-Clause
"""What the programs of types.c and shapes.cpp say they passed, and what a tracer showed of it; here and in guests of tests/vm."""

import collections
import struct

from harness import check, check_equal

TEXTS = {"some text", "text", "some"}


def said(log):
    """Values of each probe in order."""
    probes = collections.defaultdict(list)
    for line in log.read_text().splitlines():
        name, *values = line.split()
        probes[name].append([] if name.endswith("none") else [int(value) for value in values])
    return probes


def same(shown, passed):
    """What was logged are signed 64-bit numbers, of floats the bits, of texts the address."""
    if isinstance(shown, float):
        return passed in (struct.unpack("<q", struct.pack("<d", shown))[0],
                          struct.unpack("<I", struct.pack("<f", shown))[0])
    return shown in (passed, passed % 2**64) if isinstance(shown, int) else shown in TEXTS


def check_shown(events, log):
    """Of each probe, the lists of arguments that a tracer showed, against what the program says it passed."""
    expected = said(log)
    check(len(expected) > 25, f"only {len(expected)} probes were logged")
    for name, lines in expected.items():
        shown = events.get(name, [])
        check_equal(len(shown), len(lines), f"hits of {name}")
        for args, values in zip(shown, lines):
            check(len(args) == len(values) and all(map(same, args, values)), f"{name}: shown {args}, passed {values}")
