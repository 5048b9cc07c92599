#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that libraries which stay within a stage are included nowhere else, and that no place outside arch/ asks which
machine it is. (Which stage sees which, the compiler says:
usdt_module() gives each the include roots of those before it.)

Usage: check_layers.py     exit code 0: they stay there, 1: some do not, each printed
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Libraries that stay behind a wall: header pattern -> stages that may include it, though never in a public header.
WALLS = [
    (re.compile(r"(libelf|gelf|dwarf|elfutils/.*)\.h"), {"dwarf", "locate"}),
    (re.compile(r"libiberty/.*|lzma\.h"), {"elf"}),
    (re.compile(r"zlib\.h"), {"elf", "export", "http"}),
    (re.compile(r"protozero/.*"), {"export", "proc"}),
    (re.compile(r"Zydis/.*"), {"arch"}),
    (re.compile(r"zstd\.h"), {"dwarf", "record"}),
    (re.compile(r"boost/spirit/.*"), {"parsers", "tools"}),
    (re.compile(r"bpf/(libbpf|bpf|btf)\.h"), {"btf", "features", "attach", "event"}),
    (re.compile(r"CLI/.*"), {"tools"}),
    (re.compile(r"boost/(asio|beast)/.*"), {"http"}),
]

# Slow to compile: only in .cpp files, one grammar each.
NOT_IN_HEADERS = re.compile(r"boost/(spirit|asio|beast)/.*")

# Traits of one machine are fields of arch::Arch: outside arch/ a file that names a machine would treat a new one as if
# it were another. Some have to, each for its reason.
MACHINE = re.compile(r"\bMachine::\w+|^\s*#\s*(?:el)?if(?:def)?\b.*__(?:x86_64|i386|aarch64|arm|riscv|TARGET_ARCH)\w*",
                     re.MULTILINE)
MAY_NAME_MACHINES = {
    "parsers/args.cpp": "the grammar of each machine: a switch that does not compile without a new one",
    "sdk/src/features/measured_code.cpp": "assembly whose probes are measured, on the host",
    "sdk/src/sys/direct_call.hpp": "assembly of system calls, on the host",
    "bpf/include/usdt/bpf/regs.h": "the choice among the tables of pt_regs.h: what has none does not compile",
    "provider/include/usdt/probe.h": "assembly of probes, in the users' programs",
    "provider/src/image.c": "the ELF file of runtime probes, which is C and stands alone",
    "sdk/include/usdt/testing/event_builder.hpp": "an example, whose operands are of one machine",
    "examples/05_test_your_consumer.cpp": "an example, whose operands are of one machine",
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
    """Says of a source outside arch/ that it names machines without a reason, or has a reason and names none."""
    name = str(source.relative_to(ROOT))
    found = [] if name.startswith("arch/") else MACHINE.findall(source.read_text(encoding="utf-8"))
    if found and name not in MAY_NAME_MACHINES:
        yield f"{name}: {found[0].strip()}: make what is asked a field of arch::Arch"
    if not found and name in MAY_NAME_MACHINES:
        yield f"{name}: names no machine: take it out of MAY_NAME_MACHINES"


def main():
    sources = [path for directory in ("arch", "bpf", "parsers", "sdk", "provider", "tools", "examples", "bindings")
               for path in sorted((ROOT / directory).rglob("*")) if path.suffix in (".cpp", ".hpp", ".h", ".c")]
    found = [complaint for source in sources for complaint in (*complaints(source), *complaints_of_machines(source))]
    print("\n".join(found) if found else f"{len(sources)} files, each library stays in its stages")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
