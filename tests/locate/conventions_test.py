#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is the calling convention we take parameters from the one the compiler follows, on all machines?

Of unoptimised code, debug information says only which slots parameters are copied to, and we work out by the convention
where they came in. Of the same functions, optimised, the compiler itself says where each is at the first instruction. Both
must be the same place.

Usage: conventions_test.py LOCATIONS     LOCATIONS: the program built from locations.cpp
$RISCV64_GCC: GCC for riscv64, if it has another name; Debian 12 has none beside gcc-multilib
Exit code 0: all the same, and enough of them; 1: else; 77: nothing could be built
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SCALARS = ("char", "unsigned short", "int", "unsigned long", "long long", "void *", "const char *", "float", "double",
           "_Bool", "enum color", "__int128", "long double")
VECTORS = ("v4i", "v2f")
FUNCTIONS = 300
BUILDS = {
    "arm64 clang": (["clang", "--target=aarch64-linux-gnu", "-fuse-ld=lld"], SCALARS),
    "riscv64 clang": (["clang", "--target=riscv64-linux-gnu", "-fuse-ld=lld"], SCALARS),
    "riscv64 gcc": ([os.environ.get("RISCV64_GCC", "riscv64-linux-gnu-gcc")], SCALARS),
    "x86-64 clang": (["clang"], SCALARS + VECTORS),
    "x86-64 gcc": (["gcc"], SCALARS + VECTORS),
    "i386 gcc": (["gcc", "-m32", "-fno-pie", "-no-pie"], tuple(kind for kind in SCALARS if kind != "__int128")),
}
LINK = ["-g", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-w", "-Wl,-e,start"]


def source(kinds):
    """Functions that use each parameter at once, so that it lives where it came in."""
    choose = random.Random(7)
    lines = ["enum color { red };", "typedef int v4i __attribute__((vector_size(16)));",
             "typedef float v2f __attribute__((vector_size(8)));", "struct empty {};"]
    structs = []
    for number in range(16):
        members = [choose.choice([kind for kind in kinds if kind not in ("__int128", "long double")])
                   for _ in range(choose.choice((1, 2, 2, 3, 4, 6)))]
        if number % 4 == 0:  # what arm64 passes in vector registers
            members = [choose.choice(("float", "double"))] * choose.choice((2, 3, 4))
        structs.append(f"struct s{number}")
        lines.append(f"struct s{number} {{ {' '.join(f'{kind} m{i};' for i, kind in enumerate(members))} }};")
    # Each of these is returned in a way of its own.
    special = ["struct empty", "struct one_real", "union real_or_number", "union reals"]
    lines += ["struct one_real { long double m0; };", "union real_or_number { long double m0; int m1; };",
              "union reals { long double m0; long double m1; };"]
    if "v4i" in kinds:
        special += ["struct one_vector", "union vector_or_number"]
        lines += ["struct one_vector { v4i m0; };", "union vector_or_number { v4i m0; int m1; };"]
    for number in range(FUNCTIONS):
        parameters = [choose.choice(kinds if choose.random() < 0.8 else structs) for _ in range(choose.randrange(1, 13))]
        uses = " ".join(f'asm volatile("" :: "g"(p{i}));' for i, kind in enumerate(parameters) if kind not in structs)
        result = choose.choice([kind for kind in kinds if kind != "__int128"] + structs[:3] + special + ["void"])
        body = "" if result == "void" else f"static volatile {result} kept; return kept;"
        if result in structs + special:
            body = f"static {result} kept; return kept;"
        lines.append(f"__attribute__((noinline)) {result} fn{number}("
                     f"{', '.join(f'{kind} p{i}' for i, kind in enumerate(parameters))}) {{ {uses} {body} }}")
    lines.append("void start(void) {}")
    return "\n".join(lines) + "\n"


def locations(program, argv, kinds, level, directory):
    """By function the list of its arguments; None: it cannot be built here."""
    (directory / "prog.c").write_text(source(kinds))
    if shutil.which(argv[0]) is None:
        return None
    built = subprocess.run([*argv, *LINK, level, "prog.c", "-o", "prog"], cwd=directory, capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stderr[:500])
        return None
    told = subprocess.run([program, str(directory / "prog"), "fn"], capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(told.stderr)
    return {name: instances[0]["args"] for name, instances in json.loads(told.stdout).items()}


def compare(plain, optimised):
    same, different = 0, []
    for name, args in plain.items():
        for one, other in zip(args, optimised.get(name, [])):
            here, there = one["location"], other["location"]
            in_vector = "vector register" in there.get("reason", "")
            if there["kind"] == "unreadable" and not in_vector or one["pieces"] or other["pieces"]:
                continue  # nothing the compiler says
            if here == there:
                same += 1
            elif here["kind"] != "unreadable" or "vector register" in here["reason"]:
                different.append((name, one, other))
    return same, different


def main():
    failed, built = False, 0
    for name, (argv, kinds) in BUILDS.items():
        with tempfile.TemporaryDirectory() as temporary:
            directory = pathlib.Path(temporary)
            levels = [locations(sys.argv[1], argv, kinds, level, directory) for level in ("-O0", "-O2")]
        if None in levels:
            print(f"{name}: not built here")
            continue
        built += 1
        same, different = compare(*levels)
        unplaced = sum(arg["location"]["kind"] == "unreadable" and "vector" not in arg["location"]["reason"] and not arg["pieces"]
                       for args in levels[0].values() for arg in args)
        print(f"{name:14} {same} parameters in the same place, {len(different)} in others, {unplaced} without a place at -O0")
        for each in different[:5]:
            print("   ", json.dumps(each))
        failed = failed or bool(different) or same < FUNCTIONS
    sys.exit(1 if failed else 77 if built == 0 else 0)


if __name__ == "__main__":
    main()
