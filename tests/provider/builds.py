# SPDX-License-Identifier: BSD-2-Clause
"""The probes of this directory, built by one compiler in one way, for tests that run them."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = ROOT / "provider" / "include"
sys.path.insert(0, str(ROOT / "tests" / "programs"))

from harness import check, require_program  # noqa: E402
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


def build_probes(run, compiler, flags):
    return compile_and_link(run, "probes", ["types.c", "shapes.cpp", "more.cpp", "main.c"], compiler, flags)


def _call(argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(str(word) for word in argv)}\n{done.stderr}")
