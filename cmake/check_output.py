#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the tools and the sinks write through sdk/src/io/stream.hpp alone, which makes foreign text safe and knows
what was written. Anything else that prints is named, with its line."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STREAM = ROOT / "sdk/src/io/stream.cpp"
EARLY = ROOT / "tools/common/guarded.cpp"  # where there is no memory for a stream
PRINTS = re.compile(r"""
    \b(?:fmt|std)::v?print(?:ln)?\b
  | \b(?:f|d|v|vf|vd)?printf\b | \bf?puts\b | \bputc(?:har)?\b | \bfwrite\b | \bperror\b
  | \bstd::(?:cout|cerr|clog)\b | \bstd(?:out|err)\b
  | \bwritev?\s*\(\s*(?:1|2|STDOUT_FILENO|STDERR_FILENO)\b
  | \b(?:app|cli)\.exit\b        # CLI11 prints by itself
""", re.VERBOSE)
NOT_CODE = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"')


def complaints(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if found := PRINTS.search(NOT_CODE.sub('""', line)):
            yield f"{path.relative_to(ROOT)}:{number}: {found.group()}: print through usdt::io::Stream"


def main():
    sources = [path for directory in ("tools", "sdk/src/io", "sdk/src/export") for path in sorted((ROOT / directory).rglob("*"))
               if path.suffix in (".cpp", ".hpp") and path not in (STREAM, EARLY)]
    found = [complaint for path in sources for complaint in complaints(path)]
    print("\n".join(found) if found else f"{len(sources)} files print through the one stream")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
