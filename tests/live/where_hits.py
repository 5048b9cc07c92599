# SPDX-License-Identifier: BSD-2-Clause
"""The hits of where.c by its own words, and questions about them."""

import struct

from puppet import HERE
from harness import check_equal, require_root

PROBE = "where:numbers"


class Hit:
    """One line of where.c, its fields by name."""

    def __init__(self, number, line):
        words = line.split()
        self.i = number
        self.short, self.large, self.byte = int(words[0]), int(words[1]), int(words[2])
        self.name = words[3]
        self.real = struct.unpack("<d", struct.pack("<Q", int(words[4])))[0]
        self.port, self.flags, self.size, self.step, self.result = map(int, words[5:10])


def build(run, level="-O2"):
    require_root()
    return run.build(f"where{level}", [HERE / "where.c"], [level, "-g"], libs=["-lm"])


# What is asked, and of which hits it is true by the program's own words; None: there is no answer.
QUESTIONS = [
    ("arg0 < -200 || arg0 >= 248", lambda h: h.short < -200 or h.short >= 248),
    ("arg1 > 0x8000000000000000", lambda h: h.large > 1 << 63),
    ("arg1 > arg0", lambda h: h.large > h.short),
    ("arg2 in {1, 2, 0xff} && arg0 % 2 == 0", lambda h: h.byte in (1, 2, 255) and h.short % 2 == 0),
    ("(arg0 & 7) == 3 ? arg2 > 100 : arg0 == 5", lambda h: h.byte > 100 if h.short & 7 == 3 else h.short == 5),
    ('str(arg3) == "name-3-of-many-that-are-longer"', lambda h: h.name.startswith("name-3")),
    ('arg3 =~ "name-3-of-many-th*" && arg0 > 0', lambda h: h.name.startswith("name-3") and h.short > 0),
    ('arg3 != "name-3-of-many-that-are-longer"', lambda h: not h.name.startswith("name-3")),
    ("arg4 > 0.25 && arg4 <= 0.75", lambda h: 0.25 < h.real <= 0.75),
    ("100 / arg0 > 10", lambda h: None if h.short == 0 else int(100 / h.short) > 10),
    ('comm == "where-O2" && pid == tid && uid == 0', lambda h: True),
    ("cpu > 100000", lambda h: False),
    ('str(arg3) =~ "*-3-*longer"', lambda h: h.name.startswith("name-3")),
    ('arg3 =~ "name-[13]-o?*" && arg0 > 0', lambda h: h.name[5] in "13" and h.short > 0),
    ('arg3 =~ "?ame-[!0-4]*of*" || arg3 =~ "*-4-*"', lambda h: h.name[5] in "456"),
    ('str(arg3) =~ "*-3-*shorter"', lambda h: False),
    ("arg3 != comm && str(arg3) == arg3", lambda h: True),
    ('name == "numbers" && provider =~ "wh?re*" && probe == "where:numbers" && arg0 < 0', lambda h: h.short < 0),
    ('name == "others" || arg0 > 240', lambda h: h.short > 240),
    ("ip != 0 && elapsed > 0 && elapsed < 1h", lambda h: True),
]


def expect(result, hits, holds, shown):
    wanted = [hit for hit in hits if holds(hit)]
    check_equal(len(result.events), len(wanted), "events")
    for event, hit in zip(sorted(result.events, key=lambda event: event["ts"]), wanted):
        check_equal(event["args"][0], shown(hit), f"hit {hit.i}")
    summary = result.summary
    undecided = sum(holds(hit) is None for hit in hits)
    check_equal(summary["hits"], len(hits), "hits")
    check_equal(summary["undecided"], undecided, "undecided")
    check_equal(summary["rejected"], len(hits) - len(wanted) - undecided, "rejected")
