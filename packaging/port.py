#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tries a commit on other suites of Debian, each in a clean system: README's demo, the unit tests, traces on this
kernel, and the same tools by clang++. Ends with rows of the table in docs/development.md.

Usage: port.py [--commit NAME] [--step STEP]... [--no-cache] [SUITE]...
STEP: demo, unit, live and clang unless told; test is all tests. SUITE: trixie and sid unless told. Compilers have this
machine's cache, if there is one, unless told: times are true without it. The systems stay in build/package/chroots
until the next time, beside a log of each.
"""

import argparse
import pathlib
import subprocess
import sys
import time

import chroot
from sources import Commit

PLACE = "/usdt"
# One of each kind: commands, calls, functions, questions, tables, the kernel, stacks, libbpf's own programs, rights.
LIVE = ("tools/child_test.py", "attach/user_returns_test.py", "find/hits_test.py", "expr/where_test.py",
        "session/table_test.py", "kernel/functions_test.py", "stack/ustack_test.py", "attach/libbpf_test.py",
        "tools/privilege_test.py", "tools/token_test.py")
BY_CLANG = ("cmake --preset release -B build/clang --log-level=WARNING -DUSDT_WERROR=ON -DUSDT_BUILD_TESTS=OFF "
            "-DUSDT_BUILD_EXAMPLES=OFF -DUSDT_BUILD_BENCH=OFF -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ "
            "&& cmake --build build/clang")
STEPS = {
    "demo": "./run demo",
    "unit": "./run test -L unit",
    "live": " && ".join(f"python3 -B tests/live/{test} --tool build/bin/usdt-trace" for test in LIVE),
    "clang": f"{BY_CLANG} && python3 -B tests/live/{LIVE[0]} --tool build/clang/bin/usdt-trace",
    "test": "./run test || ./run test --rerun-failed --parallel 1",
}
ALL_BUT_TEST = [name for name in STEPS if name != "test"]


class Port:
    """A commit on one suite."""

    def __init__(self, suite, commit):
        self.suite = suite
        self.home = chroot.base(suite).copy(chroot.HOME / "chroots" / f"{suite}-port")
        self.home.run("sh", "-ec", "apt-get -qq update && apt-get -qq -y upgrade")
        commit.unpack(pathlib.Path(f"{self.home.root}{PLACE}"))
        self.log = chroot.HOME / f"port-{suite}.log"
        self.log.write_text(f"{suite}, commit {commit.id}\n")
        self.outcomes = []

    def step(self, name, cached):
        command = STEPS[name]
        binds, variables = chroot.compiler_cache() if cached else ((), {})
        began = time.monotonic()
        with self.log.open("a") as log:
            print(f"\n== {name}: {command}", file=log, flush=True)
            argv = self.home.argv("sh", "-c", f"cd {PLACE} && {command}", binds=binds, env=variables)
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
        outcome = f"{time.monotonic() - began:.0f} s" if done.returncode == 0 else "FAILED"
        print(f"port: {self.suite}: {name}: {outcome}", flush=True)
        self.outcomes.append(outcome)

    def row(self):
        """Versions of what matters, without Debian's own numbers, and what the steps came to."""
        packages = ("g++", "clang", "libbpf-dev", "libdw-dev", "libboost-dev", "libfmt-dev", "cmake")
        said = self.home.run("dpkg-query", "-W", "-f=${Package} ${Version}\\n", *packages)
        versions = dict(line.split() for line in said.splitlines())
        upstream = [versions[package].split(":")[-1].split("-")[0].split("+")[0] for package in packages]
        return " | ".join([f"| {self.suite}", *upstream, *self.outcomes]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--step", action="append", choices=tuple(STEPS), dest="steps")
    parser.add_argument("--no-cache", action="store_false", dest="cached")
    parser.add_argument("suites", nargs="*", default=("trixie", "sid"))
    options = parser.parse_args()
    commit = Commit(options.commit)
    ports = []
    try:
        for suite in options.suites:
            ports.append(Port(suite, commit))
            for name in options.steps or ALL_BUT_TEST:
                ports[-1].step(name, options.cached)
    except chroot.Failed as why:
        sys.exit(f"port: {why}")
    for port in ports:
        print(port.row())
    sys.exit(any("FAILED" in port.outcomes for port in ports))


if __name__ == "__main__":
    main()
