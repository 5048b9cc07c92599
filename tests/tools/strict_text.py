# SPDX-License-Identifier: BSD-2-Clause
"""A strict judge of what the tools write: UTF-8, JSON, and no character that does something to a terminal."""

import json

# Names and texts as an attacker would choose them.
HOSTILE = [
    b"\x1b[2J\x1b]0;title\x07", b"a\nusdt-list: forged line", b"tab\tcr\rdel\x7f", b"\x9b31m raw C1", b"\xc2\x9b31m coded C1",
    "\u202egnp.exe".encode(), "\u2066a\u2069\u200e\u200f\u061c\u2028\u2029".encode(), b"\xff\xfe\xc3", b"\xed\xa0\x80 surrogate",
    b"\xf4\x90\x80\x80 beyond", "caf\u00e9 \u65e5\u672c".encode(), b'quote " and \\ slash',
]

BIDI = {0x61c, 0x200e, 0x200f, *range(0x202a, 0x202f), *range(0x2066, 0x206a)}


def harmful(data):
    """What of `data` may not reach a terminal or a reader of lines; empty: nothing. Line feeds end lines, tabs separate
    columns."""
    text = data.decode("utf-8", "strict")
    return sorted({hex(ord(c)) for c in text if c not in "\n\t" and
                   (ord(c) < 0x20 or 0x7f <= ord(c) <= 0x9f or ord(c) in BIDI or ord(c) in (0x2028, 0x2029))})


def no_constant(text):
    raise ValueError(f"not JSON: {text}")


def json_lines(data):
    """Every line must be one object of strict JSON."""
    assert not harmful(data), harmful(data)
    return [json.loads(line, parse_constant=no_constant) for line in data.decode("utf-8", "strict").split("\n")[:-1]]
