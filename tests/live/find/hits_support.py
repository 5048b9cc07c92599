# SPDX-License-Identifier: BSD-2-Clause
"""Programs that count the calls of their functions themselves, where they make them, and print "FUNCTION CALLS".
USDT_COMPILERS="gcc clang gcc-16" names the compilers of C to try (g++ and clang++ with them)."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check  # noqa: E402

COMPILERS = os.environ.get("USDT_COMPILERS", "gcc clang").split()
SEEDS = int(os.environ.get("USDT_SEEDS", "0"))
LINK = os.environ.get("USDT_LINK", "").split()  # "-static": of a compiler whose C library is newer than this machine's

# No -O0: nothing is split or inlined there.
LEVELS = ["-O1", "-O2", "-O3", "-Os"]


def of_cpp(compiler):
    return compiler.replace("clang", "clang++") if "clang" in compiler else compiler.replace("gcc", "g++")


def compilers(language="c"):
    named = COMPILERS if language == "c" else [of_cpp(each) for each in COMPILERS]
    return [each for each in named if shutil.which(each)]


def built(run, name, sources, flags, compiler):
    return run.build(name.replace("/", "_"), sources, ["-w", *flags], compiler, LINK if "/" in compiler else [])


def calls_said(program):
    """What the program says of itself: calls by function."""
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: int(line.split()[1]) for line in out.splitlines()}


def hits_seen(run, program, names, *options, prefix="uprobe"):
    """Hits by the name that was asked for; and the tool's notices."""
    seen = {}
    result = run.trace([f"{prefix}:{program}:{name}" for name in names], "--count", *options,
                       command=["sh", "-c", f"exec {program} > /dev/null"])
    result.check_code(0)
    notices = result.stderr
    for row in result.summary["probes"]:
        name = row["probe"].split(":", 2)[2].strip('"').split("(")[0]
        seen[name] = seen.get(name, 0) + row["hits"]
    return seen, notices


def compare(run, where, program, names=None, said=None, table=None):
    said = said or calls_said(program)
    names = names or list(said)
    seen, notices = hits_seen(run, program, names)
    for name in names:
        hits = seen.get(name, 0)
        lines = [line for line in notices.splitlines() if name.split("::")[-1] in line or "other function" in line]
        missed = any("may be missed" in line for line in lines)
        rounds = any("or a round" in line for line in lines)
        twice = any("counted twice" in line for line in lines)
        fits = hits == said[name] or (missed and hits < said[name]) or ((rounds or twice) and hits > said[name])
        if table is not None:
            how = "wrong" if not fits else "said" if hits != said[name] else "equal, said" if missed or rounds else "equal"
            table[how] = table.get(how, 0) + 1
        if not fits and SEEDS:
            print(f"{where} {name}: {hits} hits of {said[name]} calls")
        else:
            check(fits, f"{where} {name}: {hits} hits of {said[name]} calls\n{notices}")


def coroutine_flags(compiler):
    return ["-std=c++20", *(["-stdlib=libstdc++"] if "clang" in compiler else [])]
