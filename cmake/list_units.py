#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a linter reads to see each source once: the sources that a build compiles as one (USDT_UNITY) as that one file,
which reads their headers once, and every other source by itself.

Usage: list_units.py COMPILE_COMMANDS DIRECTORY...     prints paths, one a line: each .c and .cpp below the directories is
                                                       among them, or is included by one of them
"""

import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def included_by(unity):
    return {(unity.parent / name).resolve() for name in INCLUDE.findall(unity.read_text())}


def list_units(compile_commands, directories):
    roots = [pathlib.Path(directory).resolve() for directory in directories]
    rest = {path for root in roots for pattern in ("*.c", "*.cpp") for path in root.rglob(pattern)}
    compiled = {pathlib.Path(entry["file"]) for entry in json.loads(pathlib.Path(compile_commands).read_text())}
    units = []
    for unity in sorted(path for path in compiled if path.parent.name == "unity"):
        included = included_by(unity)
        if included and included <= rest:
            units.append(unity)
            rest -= included
    return units + sorted(rest)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for path in list_units(sys.argv[1], sys.argv[2:]):
        print(path)


if __name__ == "__main__":
    main()
