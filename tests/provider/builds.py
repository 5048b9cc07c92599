# SPDX-License-Identifier: BSD-2-Clause
"""The probes of this directory, built by one compiler in one way, for tests that run them."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = ROOT / "provider" / "include"
sys.path.insert(0, str(ROOT / "tests" / "programs"))

from harness import check, check_equal, require_program  # noqa: E402
from static_log import said  # noqa: E402
import subprocess  # noqa: E402

CXX_OF = {"gcc": "g++", "clang": "clang++"}


def compile_and_link(run, name, sources, compiler="gcc", flags=(), link=()):
    """Builds C and C++ sources of this directory into the scratch directory of `run`."""
    require_program(compiler, CXX_OF[compiler])
    objects = []
    for source in sources:
        path = pathlib.Path(source) if "/" in str(source) else HERE / source
        c = path.suffix == ".c"
        out = run.dir / f"{name}-{path.stem}.o"
        argv = [compiler, "-std=gnu11"] if c else [CXX_OF[compiler], "-std=c++20"]
        _call([*argv, "-Wall", "-Wextra", *flags, f"-I{INCLUDE}", f"-I{HERE}", "-c", path, "-o", out])
        objects.append(out)
    program = run.dir / name
    _call([CXX_OF[compiler], *flags, *objects, *link, "-o", program])
    return program


GDB_PROBES = {"integers": 8, "stub_integers": 8, "twelve": 12}


def check_by_gdb(program, log, probes=GDB_PROBES):
    """GDB reads of these probes, which have so many arguments, what was passed in the first round."""
    words = ["gdb", "-batch", "-nx", "-ex", "set width 0", "-ex", "set startup-with-shell off", "-ex", "start"]
    for name in probes:  # GDB counts the semaphore up while the program stands at its breakpoint
        words += ["-ex", f"break -probe-stap c:{name}"]
    words += ["-ex", "continue"]
    for name, count in probes.items():
        words += ["-ex", f"printf \"{name} {'%lld ' * count}\\n\", " +
                  ", ".join(f"(long long)$_probe_arg{n}" for n in range(count)), "-ex", "continue"]
    done = subprocess.run([*words, "--args", program, "1", log], capture_output=True, text=True, timeout=60)
    shown = {line.split()[0]: [int(value) for value in line.split()[1:]] for line in done.stdout.splitlines()
             if line.split(" ")[0] in probes and len(line.split()) > 8}
    check(set(shown) == set(probes), f"GDB: {done.stdout[-1500:]}{done.stderr[-500:]}")
    for name in probes:
        check_equal(shown[name], said(log)[name][0], f"values of {name} by GDB")


def build_probes(run, compiler, flags):
    return compile_and_link(run, "probes", ["types.c", "shapes.cpp", "more.cpp", "main.c"], compiler, flags)


def _call(argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(str(word) for word in argv)}\n{done.stderr}")
