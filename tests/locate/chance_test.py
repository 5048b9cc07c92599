#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of programs by chance (chance.py, chance_rust.py, chance_go.py): what usdt-trace shows of each call is what the
program itself logs, or an error. Prints a table by compiler and level.

With USDT_LONG=1 two million values and more instead of 20,000. USDT_CHANCE_FROM: the first seed. USDT_CHANCE_SYSROOT: the
root of another system whose compilers are used too (its gcc, g++, clang, clang++). USDT_CHANCE_AGAINST: another usdt-trace
that traces the same programs. USDT_CHANCE_GDB=1: GDB prints the same values at the same places, of programs in C and C++.
USDT_CHANCE_SHOW: so many wrong values of each build are printed; USDT_CHANCE_KEEP keeps the programs there.
"""

import collections
import dataclasses
import functools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from harness import (LONG, Run, check, main, require_program, require_root, require_x86_64, scenario,  # noqa: E402
                     why_no_m32)

import chance  # noqa: E402
import chance_go  # noqa: E402
import chance_rust  # noqa: E402
from chance_judge import Verdict, function_of, judge  # noqa: E402

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og")
EXTRA = ((), (), ("-fno-omit-frame-pointer",), ("-fomit-frame-pointer",), ("-fPIC",), ("-m32",), ("-m32", "-fno-omit-frame-pointer"),
         ("-fno-inline",), ("-gdwarf-4",), ("-flto",))
RUST_LEVELS = ("0", "1", "2", "3", "s")
RUST_EXTRA = ((), (), ("-C", "force-frame-pointers=yes"), ("-C", "codegen-units=1"), ("-C", "panic=abort"))
GO_LEVELS = ((), (), ("-gcflags=-N -l",), ("-gcflags=-l",))
GO_EXTRA = ((), (), ("-buildmode=pie",))
GO = shutil.which("go") or shutil.which("go", path="/usr/lib/go-1.19/bin")
SHOWN = int(os.environ.get("USDT_CHANCE_SHOW", "3"))
SYSROOT = os.environ.get("USDT_CHANCE_SYSROOT", "")


@functools.cache
def runs_m32():
    if why_no_m32():
        print(f"without -m32: {why_no_m32()}")
    return not why_no_m32()


@dataclasses.dataclass
class Build:
    compiler: str  # "g++", or "ROOT:g++": that of the system below the directory ROOT
    flags: list
    seed: int

    @property
    def cpp(self):
        return self.compiler.endswith("++")

    @property
    def rust(self):
        return self.compiler.endswith("rustc")

    @property
    def go(self):
        return self.compiler == GO

    @property
    def row(self):
        return f"{self.compiler} {(self.flags or ['-'])[1 if self.rust else 0]}"

    @property
    def names(self):
        """Of the functions."""
        if self.go:
            return ("main.fn*", "main.*Host*.fn*")
        return ("*::fn*",) if self.rust else ("fn*", "Host*::fn*") if self.cpp else ("fn*",)

    def words(self, directory):
        """The compiler's command, and what a program of another system needs to run here."""
        if ":" not in self.compiler:
            return [self.compiler], []
        root, compiler = self.compiler.split(":")
        loader, libraries = ("lib32/ld-linux.so.2", "lib32") if "-m32" in self.flags else ("lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu")
        return (["chroot", root, "env", "-C", f"/{directory.relative_to(root)}", compiler],
                [f"-Wl,--dynamic-linker={root}/{loader}", f"-Wl,-rpath,{root}/usr/{libraries}"])

    def make(self, directory):
        """The program; None where this machine cannot build or run it."""
        if self.rust:
            return self.make_of("program.rs", chance_rust, [self.compiler, "-g"], directory)
        return self.make_of("program.go", chance_go, [self.compiler, "build"], directory) if self.go else self.make_c(directory)

    def make_of(self, source, programs, words, directory):
        (directory / source).write_text(programs.Program(self.seed).source())
        environment = os.environ | {"GOCACHE": str(directory.parent / "go-cache"), "GO111MODULE": "off", "GOFLAGS": ""}
        built = subprocess.run([*words, *self.flags, "-o", "program", source], cwd=directory, env=environment, capture_output=True, text=True)
        check(built.returncode == 0, f"{self.compiler} in {directory}: {built.stderr[:2000]}")
        return directory / "program"

    def make_c(self, directory):
        bits32 = "-m32" in self.flags
        gcc = "clang" not in self.compiler
        program = chance.Program(self.seed, self.cpp, bits32, constrained=gcc and self.cpp, half=gcc and not bits32)
        source = directory / ("program.cpp" if self.cpp else "program.c")
        source.write_text(program.source())
        (directory / "helpers.c").write_text(program.helpers())
        words, link = self.words(directory)
        c_words = [*words[:-1], words[-1].replace("clang++", "clang").replace("g++", "gcc")]
        machine = ["-m32"] if bits32 else []
        dialect = ["-std=c++20", "-Wno-narrowing" if gcc else "-Wno-c++11-narrowing"] if self.cpp else []
        lto = ["-fuse-ld=lld"] if "-flto" in self.flags and not gcc else []
        for argv in ([*c_words, *machine, "-w", "-O1", "-c", "helpers.c", "-o", "helpers.o"],
                     [*words, "-g", "-w", *self.flags, *dialect, *lto, source.name, "helpers.o", *link, "-o", "program"]):
            built = subprocess.run(argv, cwd=directory, capture_output=True, text=True)
            if built.returncode != 0:
                if bits32 or lto:
                    return None
                check(False, f"{' '.join(argv)} in {directory}: {built.stderr[:2000]}")
        return directory / "program"


def rust_compilers():
    """The distribution's, and one that its user has installed, by a program that may have none to run."""
    installed = ["/usr/bin/rustc", *map(str, pathlib.Path.home().glob(".cargo/bin/rustc"))]
    return [path for path in installed if shutil.which(path) and subprocess.run([path, "--version"], capture_output=True).returncode == 0]


def builds(count, first):
    """By chance, each compiler as often as others."""
    compilers = ["gcc", "g++", "clang", "clang++"]
    if SYSROOT:
        compilers += [f"{SYSROOT}:{each}" for each in compilers]
    compilers += [*rust_compilers(), *([GO] if GO else [])]
    for seed in range(first, first + count):
        rng = random.Random(seed)
        compiler = compilers[seed % len(compilers)]
        if compiler.endswith("rustc"):
            yield Build(compiler, ["-C", f"opt-level={rng.choice(RUST_LEVELS)}", *rng.choice(RUST_EXTRA)], seed)
        elif compiler == GO:
            yield Build(compiler, [*rng.choice(GO_LEVELS), *rng.choice(GO_EXTRA)], seed)
        else:
            yield Build(compiler, [rng.choice(LEVELS), *rng.choice(EXTRA)], seed)


def trace(run, tool, names, program, directory, rounds):
    log = directory / "log"
    probes = [f"{kind}:{program}:{name}" for kind in ("uprobe", "uretprobe") for name in names]
    other = Run(pathlib.Path(tool))
    other.dir = run.dir
    traced = other.trace(probes, "--depth", 6, "--ring-size", 64, command=[program, log, rounds], timeout=120)
    check(traced.summary is not None, f"{program}: {traced.describe()}")
    lost = sum(traced.summary["lost"].values())
    check(lost == 0, f"{program}: {lost} lost")
    verdict = judge(traced.events, log)
    verdict.miscounted = [each for each in verdict.miscounted if not re.search(rf"\b{each[0]}\b", traced.stderr)]  # a notice says so
    return verdict, traced.events


def by_gdb(program, events, directory, rounds):
    """What GDB prints at the same places."""
    points = {event["pc"]: function_of(event) for event in events if event["probe"].startswith("uprobe:")}
    (directory / "points").write_text(json.dumps(points))
    symbols = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    main_at = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" T main"))
    environment = os.environ | {"CHANCE_POINTS": str(directory / "points"), "CHANCE_ARGUMENTS": f"{directory}/log {rounds}", "CHANCE_MAIN": main_at,
                                "CHANCE_RESULT": str(directory / "shown")}
    subprocess.run(["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-x", str(pathlib.Path(__file__).parent / "chance_gdb.py"), str(program)],
                   env=environment, capture_output=True, text=True, timeout=300)
    return judge(json.loads((directory / "shown").read_text()), directory / "log")


def show(name, verdict, seconds):
    print(f"{name:46}{verdict.values:8} {verdict.right:8} {verdict.errors:8} {len(verdict.wrong):6} {verdict.unjudged:5} {verdict.calls:7} {verdict.hits:7} "
          f"{len(verdict.miscounted):4} {100 * verdict.right / max(1, verdict.values):5.1f}% {seconds:5.1f}s", flush=True)
    for where, shown, logged in verdict.wrong[:SHOWN]:
        print(f"    wrong: {where}: {shown} for {logged}", flush=True)
    for function, logged, hits in verdict.miscounted[:SHOWN]:
        print(f"    {function}: {logged} calls, {hits} hits", flush=True)


def tables(run, count, first, rounds):
    """Verdicts by tool and by compiler and level."""
    tools = [run.tool] + [pathlib.Path(each) for each in os.environ.get("USDT_CHANCE_AGAINST", "").split(":") if each]
    rows = {tool: collections.defaultdict(Verdict) for tool in [*tools, "gdb"]}
    keep = os.environ.get("USDT_CHANCE_KEEP")
    print(f"{'':46}  values    right   errors  wrong  form   calls    hits  bad")
    for build in builds(count, first):
        root = f"{build.compiler.split(':')[0]}/tmp/usdt-chance" if ":" in build.compiler else keep or run.dir
        directory = pathlib.Path(root) / f"chance{build.seed}"
        directory.mkdir(parents=True, exist_ok=True)
        program = build.make(directory)
        if program is None or ("-m32" in build.flags and not runs_m32()):
            continue
        for tool in tools:
            start = time.monotonic()
            verdict, events = trace(run, tool, build.names, program, directory, rounds)
            name = f"{build.seed} {build.compiler} {' '.join(build.flags)}"
            show(name if tool == run.tool else f"  {tool}"[:45], verdict, time.monotonic() - start)
            rows[tool][build.row].add(verdict)
        if os.environ.get("USDT_CHANCE_GDB") == "1" and not build.rust and not build.go:
            verdict = by_gdb(program, events, directory, rounds)
            verdict.miscounted = []
            show("  gdb", verdict, 0)
            rows["gdb"][build.row].add(verdict)
        if not keep:
            subprocess.run(["rm", "-rf", str(directory)], check=True)
    return [rows[tool] for tool in rows if rows[tool]]


def total(rows):
    all_ = Verdict()
    for verdict in rows.values():
        all_.add(verdict)
    return all_


@scenario
def values_of_programs_by_chance_are_those_they_log(run):
    require_root()
    require_x86_64()
    require_program("gcc", "g++", "clang", "clang++")
    count = int(os.environ.get("USDT_CHANCE_BUILDS", "240" if LONG else "7"))
    every = tables(run, count, int(os.environ.get("USDT_CHANCE_FROM", "1")), 40 if LONG else 8)
    for rows in every:
        print("\nby compiler and level")
        for name in sorted(rows):
            show(name, dataclasses.replace(rows[name], wrong=rows[name].wrong, miscounted=[]), 0)
        whole = total(rows)
        show("all", dataclasses.replace(whole, wrong=whole.wrong, miscounted=[]), 0)
        for reason, times in whole.reasons.most_common(int(os.environ.get("USDT_CHANCE_REASONS", "12"))):
            print(f"  {times:7} {reason[:160]}")
    judged = total(every[0])
    check(judged.wrong == [], f"{len(judged.wrong)} values are wrong")
    check(judged.miscounted == [], f"hits that are not the calls, and no notice says so: {judged.miscounted[:SHOWN]}")
    check(judged.right > 0.4 * judged.values, f"only {judged.right} of {judged.values} could be read")


if __name__ == "__main__":
    main()
