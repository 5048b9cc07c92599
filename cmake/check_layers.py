#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks every #include against the stages of docs/architecture.md: a later stage includes earlier ones, never back.

Usage: check_layers.py     exit code 0: every edge is allowed, 1: some are not, each printed
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each stage may include besides itself. Written out rather than derived from an order, so that a new edge is a
# decision someone reads.
MAY_INCLUDE = {
    "base": [],
    "abi": [],  # bpf/include: C headers shared with BPF programs
    "sys": ["base"],
    "arch": ["base"],
    "parsers": ["base"],
    "elf": ["base", "sys", "arch", "parsers"],
    "dwarf": ["base", "sys", "arch", "elf"],
    "proc": ["base", "sys", "parsers", "elf"],
    "btf": ["base", "sys"],
    "kernel": ["base", "sys", "btf", "parsers"],
    "resolve": ["base", "abi", "arch", "parsers", "elf", "btf"],
    "expr": ["base", "abi", "parsers"],
    "find": ["base", "arch", "parsers", "elf", "dwarf", "proc", "kernel", "resolve"],
    "plan": ["base", "abi", "sys", "arch", "elf", "dwarf", "proc", "btf", "kernel", "resolve", "find", "expr"],
    "carry": ["base", "abi", "plan"],
    "features": ["base", "abi", "plan", "sys", "kernel", "btf"],
    "attach": ["base", "abi", "arch", "proc", "find", "resolve", "plan", "carry", "elf", "sys", "btf", "kernel", "features", "expr"],
    "event": ["base", "abi", "proc", "resolve", "plan", "carry", "elf", "sys", "btf", "kernel", "features", "attach"],
    "stack": ["base", "abi", "sys", "arch", "elf", "dwarf", "proc", "kernel", "plan", "event"],
    "public": ["base", "abi", "arch", "parsers", "elf", "proc", "kernel", "resolve", "find", "expr", "plan", "carry", "sys",
               "features", "attach", "event", "stack"],
    "tools": ["public"],
    "examples": ["public"],
    "bindings": ["public"],
}

# The stage that implements a public header; whatever is not named here is a plain value of the base.
PUBLIC_STAGE = {
    "usdt/pattern.hpp": "parsers",
    "usdt/elf_file.hpp": "elf",
    "usdt/discover.hpp": "proc",
    "usdt/kernel.hpp": "kernel",
    "usdt/kernel_symbols.hpp": "kernel",
    "usdt/backend.hpp": "plan",
    "usdt/carrier.hpp": "carry",
    "usdt/cookie.hpp": "carry",
    "usdt/decode.hpp": "resolve",
    "usdt/plan.hpp": "plan",
    "usdt/probe_file.hpp": "find",
    "usdt/select.hpp": "find",
    "usdt/cost.hpp": "plan",
    "usdt/features.hpp": "features",
    "usdt/red_zone.hpp": "features",
    "usdt/privilege.hpp": "attach",
    "usdt/bpf_object.hpp": "attach",
    "usdt/link.hpp": "attach",
    "usdt/event.hpp": "event",
    "usdt/symbolizer.hpp": "stack",
    "usdt/consumer.hpp": "event",
    "usdt/tracer.hpp": "event",
    "usdt/testing/event_builder.hpp": "event",
    "usdt/usdt.hpp": "public",
}

# Libraries that stay behind a wall: header pattern -> stages that may include it, though never in a public header.
WALLS = [
    (re.compile(r"(libelf|gelf|dwarf|elfutils/.*)\.h"), {"dwarf"}),
    (re.compile(r"libiberty/.*|lzma\.h"), {"elf"}),
    (re.compile(r"Zydis/.*"), {"arch"}),
    (re.compile(r"boost/spirit/.*"), {"parsers", "tools"}),
    (re.compile(r"bpf/(libbpf|bpf|btf)\.h"), {"btf", "features", "attach", "event"}),
    (re.compile(r"CLI/.*"), {"tools"}),
]

# Slow to compile: only in .cpp files, one grammar each.
NOT_IN_HEADERS = re.compile(r"boost/spirit/.*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def stage_of_path(path):
    """The stage a source file belongs to, or None for directories without stages (tests, bench)."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("sdk", "src"):
        return parts[2]
    if parts[:2] == ("sdk", "include"):
        return PUBLIC_STAGE.get("/".join(parts[2:]), "base")
    if parts[0] == "bpf":
        return "abi"
    return parts[0] if parts[0] in MAY_INCLUDE else None


def stage_of_include(name, source):
    """The stage of what `source` includes as `name`; None for the system's headers and generated ones."""
    for directory in (source.parent, ROOT / "sdk/include", ROOT / "sdk/src", ROOT, ROOT / "bpf/include"):
        if (directory / name).is_file():
            return stage_of_path((directory / name).resolve())
    return None


def edge_allowed(source, source_stage, target_stage, name):
    if source_stage == target_stage or target_stage in MAY_INCLUDE[source_stage]:
        return True
    # Tools and examples see the whole public surface, whichever stage implements it, and nothing else.
    return "public" in MAY_INCLUDE[source_stage] and name.startswith("usdt/")


def complaints(source):
    stage = stage_of_path(source)
    if stage not in MAY_INCLUDE:
        yield f"{source.relative_to(ROOT)}: '{stage}' is not a stage: add it to cmake/check_layers.py"
        return
    in_public = (ROOT / "sdk/include") in source.parents
    for _, name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        target = stage_of_include(name, source)
        if target is not None and not edge_allowed(source, stage, target, name):
            yield f"{source.relative_to(ROOT)}: stage '{stage}' may not include {name} (stage '{target}')"
        for wall, inside in WALLS:
            if wall.fullmatch(name) and (stage not in inside or in_public):
                yield f"{source.relative_to(ROOT)}: {name} stays inside {', '.join(sorted(inside))}"
        if NOT_IN_HEADERS.fullmatch(name) and source.suffix != ".cpp":
            yield f"{source.relative_to(ROOT)}: {name} belongs in a .cpp file"


def main():
    sources = [path for directory in ("arch", "parsers", "sdk", "tools", "examples", "bindings")
               for path in sorted((ROOT / directory).rglob("*")) if path.suffix in (".cpp", ".hpp", ".h")]
    found = [complaint for source in sources if stage_of_path(source) for complaint in complaints(source)]
    print("\n".join(found) if found else f"{len(sources)} files, every include goes to an earlier stage")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
