#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The project's tests on distribution kernels under emulation (docs/kernel-lab.md).

  vm.py                      the whole matrix; rewrites docs/results/kernels.md
  vm.py short                what CI runs
  vm.py KERNEL[:ARCH]...     those; --write puts them alone into the table
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
import traceback

import checks
import contexts
import cookbook
import debian
import guest
import report

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "vm"
AT_ONCE = 2  # guests


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The newest kernel of a flavour in a suite of the distribution."""

    version: str
    arch: str
    suite: str
    flavour: str

    def __str__(self):
        return f"{self.version}:{self.arch}"


KERNELS = [
    Kernel("5.10", "amd64", "bullseye", "cloud-amd64"),
    Kernel("6.1", "amd64", "bookworm", "cloud-amd64"),
    Kernel("6.12", "amd64", "trixie", "cloud-amd64"),
    Kernel("7.2", "amd64", "sid", "cloud-amd64"),
    Kernel("6.1", "arm64", "bookworm", "cloud-arm64"),
    Kernel("6.12", "arm64", "trixie", "cloud-arm64"),
    Kernel("7.2", "arm64", "sid", "cloud-arm64"),
    Kernel("6.1", "i386", "bookworm", "686-pae"),
]
SHORT = ["7.2:amd64", "6.1:amd64"]
# Builds of generated programs (tests/programs/builds.py).
TRUTH = {"amd64": ["gcc-O2-pie", "gcc-O2-shared", "clang-O0-nopie", "gcc-O2-pie-m32"],
         "arm64": ["clang-O2-pie", "clang-O2-shared", "clang-O0-nopie", "clang-O2-static"],
         "i386": ["gcc-O2-pie-m32", "gcc-O2-shared-m32", "gcc-O0-nopie-m32", "clang-O2-pie-m32"]}


# Attaching to functions one by one takes a guest up to a minute for 200 of them. The whole matrix does it once for each
# backend and machine, elsewhere with a tenth of the functions. What the planner takes of itself ("automatic") is one of
# the other ways, so the longest tests leave it out. The short form takes one way of each kind.
SHORT_TESTS = ["KernelTest.names*", "*EachTracepoint*"]
SHORT_WAYS = {"7.2": ["kprobe_kprobe_multi", "ksession_kprobe_session", "fsession_tracing_multi", "kcall_automatic"],
              "6.1": ["kprobe_perf_kprobe"]}
ONE_BY_ONE = ["kprobe_perf_kprobe", "kretprobe_perf_kprobe", "ksession_perf_kprobe", "fentry_tracing", "fexit_tracing",
              "fsession_tracing"]
ALL_FUNCTIONS = {"kprobe_perf_kprobe": ["6.1:amd64", "6.1:arm64", "6.1:i386"],
                 "fexit_tracing": ["6.1:amd64", "6.12:arm64"]}


# A clock of 250 ticks a second.
COARSE_CLOCK = "clocksource=jiffies tsc=unstable highres=off nohz=off"


def kernel_tests(kernel, short):
    """The --gtest_filter of kernel_test."""
    if not short:
        without = ["*EachModule*_automatic"]
        without += [f"*agrees_with_registers*/{way}" for way in [*ONE_BY_ONE, "*_automatic"]]
        for way in ONE_BY_ONE:
            both = str(kernel) in ALL_FUNCTIONS.get(way, [])
            without.append(f"*{'of_some_functions' if both else 'that_were_passed'}/{way}")
        return "-" + ":".join(without)
    ways = SHORT_WAYS.get(kernel.version, [])
    return ":".join(SHORT_TESTS + [f"*{test}*/{way}" for way in ways for test in ("gives_the_arguments", "is_killed", "nest")])


def programs(kernel, bin_dir, short):
    """Programs of the build tree that this kernel's guest runs; also name them in CMakeLists.txt. A limit of seconds
    may depend on the kernel (`limit=900 if kernel.version == "7.2" else 300`). Guests have /modules/dummy.ko."""
    carriers = "'--gtest_filter=*shows_every_value*:*tells_sites*:*answers*:OwnPrograms.take*'" if short else ""
    todo = [
        checks.Program(bin_dir, "own_programs_test", carriers, limit=600),
        checks.Program(bin_dir, "tables_test", limit=300),
        checks.Program(bin_dir, "expr_kernel_test", limit=300),
        checks.Program(bin_dir, "kernel_lists_test", "'--gtest_filter=RunningKernel.*'", limit=120),
        checks.StaticProbes(bin_dir),
        checks.RunTimeProbes(bin_dir),
        *([cookbook.Cookbook(bin_dir)] if kernel.arch != "i386" and (not short or kernel.version == "7.2") else []),
        checks.Program(bin_dir, "kernel_test", f"'--gtest_filter={kernel_tests(kernel, short)}'", limit=900),
    ]
    if str(kernel) == "7.2:amd64" and not short:
        todo.append(checks.Program(bin_dir, "kernel_test", "'--gtest_filter=*themselves_nest*'", limit=120,
                                   name="calls by a coarse clock", append=COARSE_CLOCK))
    if str(kernel) == "7.2:amd64" and not short:  # has all that is measured
        todo.append(checks.Program(bin_dir, "bench_kernel",
                                   "--rounds 1 --calls 100 --attach-rounds 1 --sizes 1 --one-each 1", counts=False))
        todo.append(checks.EveryFunction(bin_dir))
    return todo


# --- what a run needs -----------------------------------------------------------------------------------------------


def build(arch, *targets):
    """Builds what the guests run; returns where it is, and the seconds it took."""
    home = BUILD / arch
    settings = ["-DUSDT_STATIC=ON", "-DUSDT_UNITY=ON", "-DUSDT_BUILD_BENCH=ON"]
    if arch == "amd64":  # the release preset's flags and include roots: ccache has the objects
        settings += ["-DCMAKE_BUILD_TYPE=Release", "-DUSDT_WERROR=ON", f"-DUSDT_ROOMS={PROJECT}/build/rooms"]
    else:
        settings += ["-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_TOOLCHAIN_FILE={PROJECT}/tests/vm/cross.cmake",
                     f"-DUSDT_VM_TRIPLE={debian.TRIPLES[arch]}", f"-DCMAKE_SYSROOT={debian.sysroot(arch)}"]
    env = dict(os.environ)
    if shutil.which("ccache"):
        env |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_NOHASHDIR": "true"}
    started = time.monotonic()
    for argv in (["cmake", "-G", "Ninja", "-S", PROJECT, "-B", home, "--log-level=WARNING", *settings],
                 ["cmake", "--build", home, "--target", *targets]):
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{arch}: {' '.join(map(str, argv))}\n{(done.stdout + done.stderr)[-4000:]}")
    return home / "bin", time.monotonic() - started


class Lab:
    """Kernels, builds and generated programs, made before the first guest starts."""

    def __init__(self, kernels, short):
        self.short = short
        self.images, self.bins, self.built, self.contexts, self.absent = {}, {}, {}, {}, {}
        for kernel in kernels:
            lacks = guest.missing(kernel.arch)
            try:
                if lacks:
                    raise debian.Unavailable(f"not installed: {' '.join(lacks)}")
                debian.busybox(kernel.arch)
                self.images[kernel] = debian.kernel(kernel.version, kernel.arch, kernel.suite, kernel.flavour)
                if kernel.arch != "amd64":
                    debian.sysroot(kernel.arch)
            except debian.Unavailable as reason:
                self.absent[kernel] = str(reason)
        for arch in sorted({kernel.arch for kernel in self.images}, reverse=True):
            benches = ["bench_kernel"] if arch == "amd64" and not short else []
            self.bins[arch], seconds = build(arch, "vm_tests", *benches)
            print(f"vm: built for {arch} in {seconds:.0f} s", flush=True)
            self.built[arch] = [checks.Built(name, arch) for name in TRUTH[arch][:2 if short else None]]
            self.contexts[arch] = contexts.Programs(arch)

    def close(self):
        for built in [*sum(self.built.values(), []), *self.contexts.values()]:
            built.close()

    def run(self, kernel):
        """Boots a guest, and one more for each set of kernel arguments that a check wants; returns row -> Cell."""
        bin_dir = self.bins[kernel.arch]
        out = BUILD / "results" / str(kernel).replace(":", "-")
        shutil.rmtree(out, ignore_errors=True)
        todo = [checks.Doctor(bin_dir), *programs(kernel, bin_dir, self.short),
                *self.contexts[kernel.arch].checks(bin_dir, kernel),
                *[checks.Truth(bin_dir, built) for built in self.built[kernel.arch]]]
        rows = {}
        for number, append in enumerate(sorted({getattr(check, "append", "") for check in todo})):
            here = [check for check in todo if getattr(check, "append", "") == append]
            rows |= self.boot(kernel, here, out / str(number) if append else out, append) | rows
        return rows

    def boot(self, kernel, todo, out, append):
        image = self.images[kernel]
        out.mkdir(parents=True)
        files = {"modules/dummy.ko": image / "dummy.ko"}
        for check in todo:
            files |= check.files
        steps = [step for check in todo for step in check.steps]
        boot = guest.run(image / "vmlinuz", kernel.arch, files, steps, out / "out", append)
        rows = {"kernel": checks.Cell((image / "version").read_text().strip()),
                "up after": checks.Cell(f"{boot.up_after:.0f} s")}
        if boot.death or boot.complaints:
            words = "\n".join([boot.death, *boot.complaints, *boot.last_words])
            rows["guest"] = checks.Cell("FAIL", words)
        rest = list(boot.outcomes)
        for check in todo:
            outcomes, rest = rest[:len(check.steps)], rest[len(check.steps):]
            (out / f"{check.name.replace(': ', '-').replace(' ', '-')}.txt").write_text("".join(outcome.output for outcome in outcomes))
            why = checks.lost(outcomes, check.steps)
            rows |= {check.name: checks.Cell("FAIL", why)} if why else check.judge(outcomes, out / "out", rows)
        return rows


# --- the run --------------------------------------------------------------------------------------------------------


def chosen(names):
    names = [name for word in names for name in (SHORT if word == "short" else [word])]
    found = [kernel for kernel in KERNELS if not names or {str(kernel), kernel.version} & set(names)]
    known = {name for kernel in KERNELS for name in (str(kernel), kernel.version)}
    unknown = set(names) - known
    if unknown:
        sys.exit(f"vm: no kernel {', '.join(sorted(unknown))}; there are: {' '.join(map(str, KERNELS))}")
    return found


def run_all(lab, kernels):
    results = {}

    def one(kernel):
        started = time.monotonic()
        try:
            rows = lab.run(kernel)
        except Exception:  # one guest's trouble must not hide the others' outcome
            rows = {"guest": checks.Cell("FAIL", traceback.format_exc())}
        bad = [row for row, cell in rows.items() if cell.failure]
        print(f"vm: {kernel}: {'FAIL: ' + ', '.join(bad) if bad else 'passed'} ({time.monotonic() - started:.0f} s)",
              flush=True)
        return rows

    # The longest first: amd64 and new kernels have the most to do.
    there = sorted((kernel for kernel in kernels if kernel in lab.images),
                   key=lambda kernel: (kernel.arch == "amd64", [int(part) for part in kernel.version.split(".")]),
                   reverse=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for kernel, rows in zip(there, pool.map(one, there)):
            results[str(kernel)] = rows
    return {str(kernel): results[str(kernel)] for kernel in kernels if str(kernel) in results}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the table whatever was run")
    parser.add_argument("kernels", nargs="*")
    options = parser.parse_args()
    kernels = chosen(options.kernels)
    debian.CACHE.mkdir(parents=True, exist_ok=True)
    lab = Lab(kernels, options.kernels == ["short"])
    try:
        results = run_all(lab, kernels)
    finally:
        lab.close()
    print(report.table(results))
    failures = report.failures(results)
    for kernel, row, text in failures:
        print(f"\n--- FAIL {kernel}, {row}: {text}")
    for kernel, reason in lab.absent.items():
        print(f"SKIP {kernel}: {reason}")
    print(f"vm: {len(results) - len({kernel for kernel, *_ in failures})} kernels passed, "
          f"{len({kernel for kernel, *_ in failures})} failed, {len(lab.absent)} skipped")
    if options.write or (not options.kernels and not lab.absent):
        report.write(results)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
