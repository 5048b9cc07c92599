#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that libraries which stay within a stage are included nowhere else. (Which stage sees which, the compiler says:
usdt_module() gives each the include roots of those before it.)

Usage: check_layers.py     exit code 0: they stay there, 1: some do not, each printed
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Libraries that stay behind a wall: header pattern -> stages that may include it, though never in a public header.
WALLS = [
    (re.compile(r"(libelf|gelf|dwarf|elfutils/.*)\.h"), {"dwarf"}),
    (re.compile(r"libiberty/.*|(lzma|zlib)\.h"), {"elf"}),
    (re.compile(r"Zydis/.*"), {"arch"}),
    (re.compile(r"zstd\.h"), {"dwarf", "record"}),
    (re.compile(r"boost/spirit/.*"), {"parsers", "tools"}),
    (re.compile(r"bpf/(libbpf|bpf|btf)\.h"), {"btf", "features", "attach", "event"}),
    (re.compile(r"CLI/.*"), {"tools"}),
]

# Slow to compile: only in .cpp files, one grammar each.
NOT_IN_HEADERS = re.compile(r"boost/spirit/.*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def stage_of_path(path):
    """The stage a source file belongs to: a directory of sdk/src, or a directory of the project."""
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[:2] == ("sdk", "src") else parts[0]


def complaints(source):
    stage = stage_of_path(source)
    in_public = (ROOT / "sdk/include") in source.parents
    for _, name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        for wall, inside in WALLS:
            if wall.fullmatch(name) and (stage not in inside or in_public):
                yield f"{source.relative_to(ROOT)}: {name} stays inside {', '.join(sorted(inside))}"
        if NOT_IN_HEADERS.fullmatch(name) and source.suffix != ".cpp":
            yield f"{source.relative_to(ROOT)}: {name} belongs in a .cpp file"


def main():
    sources = [path for directory in ("arch", "parsers", "sdk", "tools", "examples", "bindings")
               for path in sorted((ROOT / directory).rglob("*")) if path.suffix in (".cpp", ".hpp", ".h")]
    found = [complaint for source in sources for complaint in complaints(source)]
    print("\n".join(found) if found else f"{len(sources)} files, each library stays in its stages")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
