#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Are parameters and results where locate/ says, at the first instruction of every function and inlined copy?

Generated programs, whose functions are called with values known beforehand, run under GDB, which stops at each instance and
gives registers and memory. Prints a table by compiler and level. "vector" are values in vector registers, which no BPF
program is given; "only GDB" are others that GDB prints rightly there and we call unreadable. GDB believes some places by
which it also prints what is wrong: a slot that is not filled yet may hold the value by chance, or from an earlier call.
The rest of them is told by the caller's call site, or behind a pointer in memory (classes passed by reference on the
stack).

Usage: truth_test.py LOCATIONS [--seeds N] ["COMPILER FLAGS"...]     LOCATIONS: the program built from locations.cpp
JUDGE_SHOW=N: so many values of each build that are wrong, or only GDB has, are shown as JSON
Exit code 0: nothing is wrong, and at least as much is right as GDB prints rightly; 1: else; 77: no GDB
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import programs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from harness import why_no_m32  # noqa: E402

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og")
BUILDS = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}
HERE = pathlib.Path(__file__).resolve().parent


def run(argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, **options)


def outcomes(locations, language, compiler, flags, seed, keep=None):
    """What the judge says of one program, or None where it cannot be built here."""
    if "-m32" in flags and why_no_m32():
        return None
    program = programs.Program(seed, language, "-m32" in flags)
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(keep or temporary)
        source = directory / ("prog.c" if language == "c" else "prog.cpp")
        source.write_text(program.source())
        (directory / "use.c").write_text(programs.HELPERS)
        c_compiler = {"g++": "gcc", "clang++": "clang"}.get(compiler, compiler)
        machine = [flag for flag in flags if flag == "-m32"]
        built = run([c_compiler, *machine, "-O1", "-c", "use.c", "-o", "use.o"], cwd=directory)
        if built.returncode == 0:
            built = run([compiler, "-w", "-g", *flags, source.name, "use.o", "-o", "prog"], cwd=directory)
        if built.returncode != 0:
            if machine:
                return None
            sys.exit(f"{compiler} {' '.join(flags)}: {built.stderr}")
        told = run([locations, str(directory / "prog")])
        if told.returncode != 0:
            sys.exit(f"{locations}: {told.stderr}")
        (directory / "locations").write_text(told.stdout)
        (directory / "calls").write_text(json.dumps({"calls": program.calls, "results": program.results}))
        environment = {**os.environ, "JUDGE_LOCATIONS": str(directory / "locations"),
                       "JUDGE_CALLS": str(directory / "calls"), "JUDGE_RESULT": str(directory / "result")}
        judged = run(["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-x", str(HERE / "judge.py"), "prog"],
                     cwd=directory, env=environment)
        if not (directory / "result").exists():
            sys.exit(f"gdb: {judged.stdout}{judged.stderr}")
        return json.loads((directory / "result").read_text())


def in_vector(outcome):
    reasons = [outcome["location"].get("reason", "")] + [each["location"].get("reason", "") for each in outcome["pieces"]]
    return any("vector register" in reason or "in st" in reason for reason in reasons)


class Row:
    def __init__(self):
        self.count = dict.fromkeys(("values", "right", "wrong", "vector", "only_gdb", "gdb_right", "gdb_wrong", "results", "unsure", "entries",
                                    "entries_right"), 0)
        self.bad = []

    def add(self, outcome):
        if outcome.get("unexpected"):
            self.count["wrong"] += 1
            self.bad.append(outcome)
            return
        count = self.count
        count["results" if outcome.get("result") else "values"] += 1
        count["right"] += outcome["ours"] == "right"
        if outcome["ours"] == "wrong":
            count["wrong"] += 1
            self.bad.append(outcome)
        vector = outcome["ours"] == "unreadable" and in_vector(outcome)
        count["vector"] += vector
        count["gdb_right"] += outcome["gdb"] == "right"
        count["gdb_wrong"] += outcome["gdb"] == "wrong"
        at_entry = not outcome.get("result") and not outcome["inlined"]
        count["entries"] += at_entry
        count["entries_right"] += at_entry and outcome["ours"] == "right"
        # What may be assigned where Clang and link-time optimisation do not tell, and what callers need not have written.
        unsure = re.search("may have been assigned|left out by some callers", outcome["location"].get("reason", ""))
        count["unsure"] += bool(unsure) and outcome["gdb"] == "right"
        if outcome["ours"] == "unreadable" and outcome["gdb"] == "right" and not vector:
            count["only_gdb"] += 1
            self.bad.append(outcome)


def cases():
    """All of them with USDT_LONG; else a few, in which each compiler, level and form is once or more."""
    every = list(every_case())
    return every if os.environ.get("USDT_LONG") == "1" else every[2::3]


def every_case():
    for language, compilers in BUILDS.items():
        for compiler in compilers:
            for extra in ((), ("-m32",), ("-no-pie", "-gdwarf-4"), ("-fomit-frame-pointer",)):
                for level in LEVELS:
                    if extra in ((), ("-m32",)) or level in ("-O0", "-O2"):
                        yield language, compiler, (level, *extra)
            whole_program = ("-flto", "-fuse-ld=lld") if compiler.startswith("clang") else ("-flto",)
            for flags in (("-O2", *whole_program), ("-O3", *whole_program, "-fomit-frame-pointer"), ("-O2", "-static")):
                yield language, compiler, flags


def main():
    locations, wanted, seeds = sys.argv[1], sys.argv[2:], 2
    if wanted[:1] == ["--seeds"]:
        seeds, wanted = int(wanted[1]), wanted[2:]
    if shutil.which("gdb") is None:
        print("no gdb")
        sys.exit(77)
    header = "values results right wrong vector only-GDB GDB-right GDB-wrong"
    print(f"{'':38}{header}")
    failed = False
    for language, compiler, flags in cases():
        name = f"{compiler} {' '.join(flags)}"
        if wanted and name not in wanted:
            continue
        row = Row()
        for seed in range(1, seeds + 1):
            for outcome in outcomes(locations, language, compiler, flags, seed) or []:
                row.add(outcome)
        count = row.count
        print(f"{name:38}{count['values']:6} {count['results']:7} {count['right']:5} {count['wrong']:5} {count['vector']:6} "
              f"{count['only_gdb']:8} {count['gdb_right']:9} {count['gdb_wrong']:9}", flush=True)
        for bad in row.bad[:int(os.environ.get("JUDGE_SHOW", "2"))]:
            print("    " + json.dumps(bad))
        built = count["values"] != 0 or "-m32" in flags
        # Optimisers that saw the whole program leave arguments out where nobody uses them, and GDB prints what is there.
        fewer = count["right"] + count["unsure"] < count["gdb_right"] and "-flto" not in flags
        # Of i386, where Clang lists arguments only behind the first instruction, and GDB prints what is there by chance.
        unread = "-m32" in flags and count["entries_right"] < 0.4 * count["entries"]
        failed = failed or count["wrong"] != 0 or fewer or unread or not built
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
