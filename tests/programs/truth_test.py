#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generated programs, built many ways, traced and compared with their own logs: no value may be wrong.

Each build is a scenario; CTest runs a few, in which each compiler and way to link is once; USDT_LONG=1: the whole matrix.
"""

import itertools
import re

import truth
from builds import COMPILERS, LINKS, build, build_forms
from elf_view import notes
from harness import check, check_equal, main, require_m32, require_root, require_x86_64, scenario, with_long

# What gcc's optimizer then writes for some of LINKS; the test must not pass for want of such operands.
THREAD_LOCAL = {"pie": r"%[fg]s:\w+@n?tpoff", "nopie": r"%[fg]s:\w+@n?tpoff", "static": r"%[fg]s:\w+@n?tpoff",
                "sharedld": r"@dtpoff\(%", "sharedie": r"%[fg]s:\(%", "pield": r"@dtpoff\(%"}
PRUNED = """
gcc-O0-shared gcc-O2-pie gcc-O2-nopie gcc-O2-static gcc-O2-staticpie gcc-O3-shared
gcc-O2-sharedld gcc-O2-sharedie gcc-O2-pield clang-O2-sharedld
clang-O0-pie clang-O2-static gxx-O2-pie clangxx-O3-shared
gcc-O2-sharedld-m32 gcc-O2-sharedie-m32 gcc-O2-pield-m32 gcc-O2-static-m32
gcc-O0-pie-m32 gcc-O2-pie-m32 gcc-O2-nopie-m32 gcc-O2-shared-m32 gxx-O2-pie-m32 clang-O2-pie-m32
""".split()
FULL = [f"{compiler}-{level}-{link}{bits}" for compiler, level, link, bits in
        itertools.product(COMPILERS, ("O0", "O1", "O2", "O3", "Os"), LINKS, ("", "-m32"))]


# A command that is traced with its children gets breakpoints of its own, and the kernel takes 45 ms to remove each: these
# builds are traced so, as everybody's commands are; the others by a link that is gone at once. The values are the same.
ALONE = {"gcc-O2-pie", "clang-O2-sharedld", "gxx-O2-pie-m32"}


def trace_and_compare(run, program, probes, mode, rounds, holder, options=()):
    log = run.dir / f"{mode}.log"
    result = run.trace(probes, *options, command=["env", f"TRUTH_LOG={log}", program, mode, rounds])
    result.check_code(0)
    tally = truth.compare(result, log, notes(holder))
    print(f"  {mode}: {tally}")


def check_combination(run, name):
    require_root()
    program, holder = build(run, name)
    compiler, level, link, *_ = name.split("-")
    if compiler in ("gcc", "gxx") and level != "O0" and link in THREAD_LOCAL:
        check(any(re.search(THREAD_LOCAL[link], note.args) for note in notes(holder)), f"no {THREAD_LOCAL[link]}")
    options = [] if name in ALONE else ["--backend", "uprobe_multi"]
    trace_and_compare(run, program, f"usdt:{holder}:truth:*", "values", 6, holder, options)
    trace_and_compare(run, program, f"usdt:{holder}:truth:*", "threads", 4, holder, options)
    trace_and_compare(run, program, f"usdt:{holder}:text:*", "texts", 12, holder,
                      [*options, "--print", "arg0, str(arg1), hex(arg2)"])


def _register(name):
    def combination(run):
        check_combination(run, name)

    combination.__name__ = name
    scenario(combination)


for combination_name in with_long(FULL, PRUNED):
    _register(combination_name)


@scenario
def guarded_probes_of_a_child_are_seen_from_the_first_hit(run):
    require_root()
    program = run.build("guarded", ["guarded.c"], ["-O2"])
    log = run.dir / "guarded.log"
    command = ["env", f"TRUTH_LOG={log}", program, 500]
    result = run.trace(f"usdt:{program}:guarded:*", command=command)
    result.check_code(0)
    tally = truth.compare(result, log, notes(program))
    check_equal(tally.hits, 501, "hits logged: the semaphores must be up before main()")


@scenario
def the_perf_event_backend_shows_the_same_values(run):
    require_root()
    program, holder = build(run, "gcc-O2-shared")
    trace_and_compare(run, program, f"usdt:{holder}:truth:*", "values", 2, holder, ["--backend", "perf_uprobe"])


@scenario
def long_text_is_cut_and_marked(run):
    require_root()
    program, holder = build(run, "gcc-O2-pie")
    log = run.dir / "texts.log"
    result = run.trace(f"usdt:{holder}:text:line", "--string-size", 16, "--print", "arg0, str(arg1)",
                       command=["env", f"TRUTH_LOG={log}", program, "texts", 30])
    result.check_code(0)
    lines = [args for probe, args in next(iter(truth.read_log(log).values())) if probe == "line"]
    check_equal(len(result.events), len(lines), "hits")
    for event, (_, logged, _) in zip(result.events, lines):
        whole = bytes.fromhex(logged.removeprefix("s:"))
        cut = len(whole) > 16
        check_equal(event.get("truncated", []), [1] if cut else [], f"mark of {whole!r}")
        expected = whole[:16].decode("utf-8", "ignore" if cut else "replace")
        check_equal(event["args"][1], expected, f"text of {whole!r}")


def check_forms(run, i386, flags):
    require_root()
    require_x86_64()
    program = build_forms(run, i386, flags)
    log = run.dir / "forms.log"
    result = run.trace(f"usdt:{program}:forms:*", command=["env", f"TRUTH_LOG={log}", program])
    result.check_code(0)
    found = notes(program)
    check(len(found) > 20, f"only {len(found)} forms were built")
    print(f"  {truth.compare(result, log, found, limit=1.0)}")


@scenario
def hand_made_forms_pie(run):
    check_forms(run, False, ["-mno-red-zone", "-fPIE", "-pie"])


@scenario
def hand_made_forms_nopie(run):
    check_forms(run, False, ["-mno-red-zone", "-fno-pie", "-no-pie"])


@scenario
def hand_made_forms_i386(run):
    require_m32()
    check_forms(run, True, ["-m32", "-fno-pic", "-no-pie"])


if __name__ == "__main__":
    main()
