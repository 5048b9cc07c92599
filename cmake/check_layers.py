#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that libraries which stay within a stage are included nowhere else, and that no more places outside arch/ ask
which machine it is. (Which stage sees which, the compiler says:
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

# Traits of one machine are fields of arch::Arch: outside arch/ a file that names a machine would treat a new one as if
# it were another. These files still do, as often as is written here; a number may fall, and no file may be added.
MACHINE = re.compile(r"\bMachine::\w+")
NAMES_OF_MACHINES = {
    "examples/05_test_your_consumer.cpp": 1,
    "parsers/args.cpp": 1,
    "sdk/include/usdt/kernel_facts.hpp": 1,
    "sdk/include/usdt/plan.hpp": 1,
    "sdk/include/usdt/recording.hpp": 1,
    "sdk/include/usdt/testing/event_builder.hpp": 1,
    "sdk/src/attach/program/load.cpp": 1,
    "sdk/src/base/machine.cpp": 7,
    "sdk/src/carry/cookie.cpp": 1,
    "sdk/src/dwarf/arrival.cpp": 1,
    "sdk/src/dwarf/base_types.cpp": 2,
    "sdk/src/dwarf/call_frames.cpp": 3,
    "sdk/src/dwarf/code_reads.cpp": 1,
    "sdk/src/dwarf/convention.cpp": 5,
    "sdk/src/dwarf/place_checker.cpp": 1,
    "sdk/src/dwarf/results.cpp": 1,
    "sdk/src/dwarf/signature.cpp": 1,
    "sdk/src/dwarf/user_shape.cpp": 5,
    "sdk/src/elf/frame_pieces.cpp": 1,
    "sdk/src/elf/function_flow.cpp": 1,
    "sdk/src/elf/go_program.cpp": 2,
    "sdk/src/elf/led_to.cpp": 2,
    "sdk/src/elf/unwinding.cpp": 2,
    "sdk/src/features/features.cpp": 2,
    "sdk/src/features/kernel_features.cpp": 3,
    "sdk/src/plan/kernel.cpp": 2,
    "sdk/src/plan/placement.cpp": 2,
    "sdk/src/record/read_definitions.cpp": 4,
    "sdk/src/resolve/location_text.cpp": 2,
    "sdk/src/resolve/resolve_memory.cpp": 3,
    "sdk/src/resolve/untyped.cpp": 1,
    "sdk/src/stack/walk.cpp": 2,
    "sdk/src/stack/walk.hpp": 1,
    "tools/usdt-list/lint.cpp": 1,
    "tools/usdt-trace/explanation.cpp": 1,
}

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


def complaints_of_machines(source):
    """Says of a source outside arch/ that it names machines more often, or more seldom, than NAMES_OF_MACHINES has it."""
    name = str(source.relative_to(ROOT))
    if name.startswith("arch/"):
        return
    known, found = NAMES_OF_MACHINES.get(name, 0), len(MACHINE.findall(source.read_text(encoding="utf-8")))
    if found > known:
        yield f"{name}: names machines {found} times, {known} are known: make it a field of arch::Arch"
    if found < known:
        yield f"{name}: names machines {found} times: write that in NAMES_OF_MACHINES in place of {known}"


def main():
    sources = [path for directory in ("arch", "parsers", "sdk", "tools", "examples", "bindings")
               for path in sorted((ROOT / directory).rglob("*")) if path.suffix in (".cpp", ".hpp", ".h")]
    found = [complaint for source in sources for complaint in (*complaints(source), *complaints_of_machines(source))]
    print("\n".join(found) if found else f"{len(sources)} files, each library stays in its stages")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
