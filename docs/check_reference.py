#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads what doxygen found, prints what is a mistake, and ends with 1 if there is any.

Usage: check_reference.py WARNINGS

Everything public has a comment: classes, functions, enumerations and their values, types, constants. Two kinds of things
need none, since their names say all: what the compiler would have written (moves, copies, comparisons), and fields of
structs, which are explained where there is something to explain.
"""

import re
import sys

NEEDS_NONE = [
    re.compile(r"Member \w+\((const )?\w+ ?&&?\) noexcept \(function\)"),  # move and copy
    re.compile(r"Member operator(=|==|<=>)\("),
    re.compile(r"\(variable\) of struct usdt::"),
]


def main():
    mistakes = []
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            undocumented = "is not documented." in line
            if line.strip() and not (undocumented and any(each.search(line) for each in NEEDS_NONE)):
                mistakes.append(line.rstrip())
    print("\n".join(mistakes) or "docs: everything public is documented")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
