#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of a program of Debian's with the debug information that Debian ships: what usdt-trace shows of a hit is what GDB prints of it.

Few functions of glibc; forty with USDT_LONG=1. real/against_gdb.py does the same with any program."""

import os
import subprocess

from puppet import HERE
from real.against_gdb import Program, compare, show
from harness import Skip, check, main, require_program, require_root, require_x86_64, scenario

LONG = os.environ.get("USDT_LONG") == "1"
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
WORK = HERE / "real" / "work.py"


def require_all():
    require_root()
    require_x86_64()
    require_program("gdb", "python3.11")


def judge(run, program, many):
    row = compare(run, program, many)
    show([row])
    check(row.wrong == [], f"{len(row.wrong)} values are not GDB's")
    check(len(row.functions) >= many // 2, f"{len(row.functions)} of {many} functions were compared")
    check(row.equal >= 0.7 * row.gdb, f"{row.equal} of GDB's {row.gdb} values were read")


@scenario
def values_of_functions_of_glibc_are_those_that_gdb_prints(run):
    require_all()
    done = subprocess.run([run.tool.with_name("usdt-list"), f"uprobe:{LIBC}:qsort"], capture_output=True, text=True)
    if "size_t n" not in done.stdout:
        raise Skip("no debug information of this glibc (libc6-dbg)")
    judge(run, Program("glibc", LIBC, ["/usr/bin/python3.11", WORK], {"PYTHONHASHSEED": "0"}), 40 if LONG else 6)


if __name__ == "__main__":
    main()
