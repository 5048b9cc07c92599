#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Has the compiler of a build read the sources that none of the TARGETs needs, for its warnings: no code is made, which is most of
its work. What such sources include is built first: the headers with BPF programs, and precompiled ones.

Usage: check_syntax.py BUILD_DIRECTORY [--below DIRECTORY]... [--without TARGET]...
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDED = re.compile(r"(.+\.bpf\.hpp|.+\.pch): ")


def ninja(build, *arguments):
    return subprocess.run(["ninja", "-C", build, *arguments], check=True, capture_output=True, text=True).stdout


def build_included(build):
    targets = [found[1] for line in ninja(build, "-t", "targets", "all").splitlines() if (found := INCLUDED.match(line))]
    if targets:
        subprocess.run(["ninja", "-C", build, "--quiet", *targets], check=True)


def units(build, below, targets):
    """The commands of the C and C++ sources that no target needs."""
    built = set(ninja(build, "-t", "inputs", *targets).splitlines()) if targets else set()
    for unit in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(unit["command"])
        at = words.index("-o")
        is_asked_for = not below or any(pathlib.Path(unit["file"]).is_relative_to(ROOT / folder) for folder in below)
        if words[at + 1] not in built and is_asked_for and unit["file"].endswith((".c", ".cpp")):
            yield unit["directory"], [*words[:at], *words[at + 2:], "-fsyntax-only"]


def compile_unit(unit):
    directory, words = unit
    done = subprocess.run(words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.stdout:
        print(done.stdout, flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--below", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    build_included(options.build)
    wanted = list(units(options.build, options.below, options.without))
    if not wanted:
        sys.exit("check_syntax: there is no such source")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = list(pool.map(compile_unit, wanted))
    print(f"{len(wanted)} sources, {compiled.count(False)} do not compile without warnings")
    sys.exit(0 if all(compiled) else 1)


if __name__ == "__main__":
    main()
