#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of programs of Debian's, with the debug information that Debian ships or built with its flags: what usdt-trace shows
of a hit is what GDB prints of it.

Few functions of glibc. With USDT_LONG=1 a hundred and more of all programs of real/programs.py, which takes an hour where their
sources are to be built first; USDT_REAL_DIR keeps what was built, USDT_REAL names some of them, USDT_REAL_EACH is how many
functions of each. real/against_gdb.py does the same with any program."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from real.against_gdb import compare, show  # noqa: E402
from real.programs import PROGRAMS, Absent  # noqa: E402
from harness import LONG, Skip, check, main, require_program, require_root, require_x86_64, scenario  # noqa: E402

WANTED = os.environ.get("USDT_REAL", ",".join(PROGRAMS)).split(",")
EACH = int(os.environ.get("USDT_REAL_EACH", "16"))


def require_all():
    require_root()
    require_x86_64()
    require_program("gdb", "python3.11")


def rows_of(run, names, directory, many):
    """What was compared, a row of each program; what is absent is said."""
    rows = []
    for name in names:
        try:
            program = PROGRAMS[name](run, directory)
        except Absent as reason:
            print(f"{name} is left out: {reason}")
            continue
        rows.append(compare(run, program, many))
        show(rows[-1:])
    return rows


def judge(rows):
    for row in rows:
        check(row.wrong == [], f"{row.name}: {len(row.wrong)} values are not GDB's")
        check(row.equal >= 0.7 * row.gdb, f"{row.name}: {row.equal} of GDB's {row.gdb} values were read")


@scenario
def values_of_functions_of_glibc_are_those_that_gdb_prints(run):
    require_all()
    rows = rows_of(run, ["glibc"], run.dir, 6)
    if not rows:
        raise Skip("no debug information of this glibc (libc6-dbg)")
    judge(rows)
    check(len(rows[0].functions) >= 3, f"{len(rows[0].functions)} functions were compared")


@scenario
def values_of_a_hundred_functions_of_six_programs_are_those_that_gdb_prints(run):
    if not LONG:
        raise Skip("USDT_LONG=1")
    require_all()
    directory = pathlib.Path(os.environ.get("USDT_REAL_DIR", run.dir / "real"))
    directory.mkdir(exist_ok=True)
    rows = rows_of(run, WANTED, directory, EACH)
    show(rows)
    judge(rows)
    compared = sum(len(row.functions) for row in rows)
    check(WANTED != list(PROGRAMS) or (len(rows) >= 6 and compared >= 100), f"{compared} functions of {len(rows)} programs were compared")


if __name__ == "__main__":
    main()
