#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs with the probes of <usdt/probe.h>, traced: what arrives is what the program says it passed."""

import re
import subprocess

from builds import ROOT, build_probes, check_by_gdb, compile_and_link
from harness import AT_ONCE, check, check_equal, main, require_m32, require_program, require_root, require_x86_64, scenario
from static_log import check_shown, said

ROUNDS = 7


def check_values(run, compiler, flags, options):
    require_root()
    require_x86_64()
    program = build_probes(run, compiler, flags)
    log = run.dir / "said"
    subprocess.run([program, str(ROUNDS), log], check=True)
    check(not [name for name in said(log) if "stub" in name or "lazy" in name], "enabled though untraced")
    result = run.trace(f"usdt:{program}:c*:*", *options, command=[program, ROUNDS, log])
    result.check_code(0)
    check_equal(sum(result.summary["lost"].values()), 0, "lost")
    events = result.by_name()
    check_shown({name: [event["args"] for event in hits] for name, hits in events.items()}, log)
    for name in ("stub_twin_one", "stub_twin_two", "temporary"):
        check_equal(len(events[name]), ROUNDS, f"hits of {name}")


def _register(name, compiler, flags, m32=False, options=AT_ONCE):
    def values(run):
        if m32:
            require_m32()
        check_values(run, compiler, flags, options)

    values.__name__ = f"values_of_{name}_are_right"
    scenario(values)


_register("gcc_O0", "gcc", ["-O0"])
_register("gcc_O2", "gcc", ["-O2"], options=())
_register("gcc_O3_lto", "gcc", ["-O3", "-flto"])
_register("gcc_O2_nopie", "gcc", ["-O2", "-fno-pic", "-no-pie"])
_register("gcc_O2_m32", "gcc", ["-O2", "-m32"], m32=True)
_register("gcc_O0_m32", "gcc", ["-O0", "-m32"], m32=True)
_register("clang_O0", "clang", ["-O0"])
_register("clang_O2", "clang", ["-O2"])
_register("clang_O3_gc_icf", "clang", ["-O3", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--gc-sections,--icf=all"])
_register("clang_O2_m32", "clang", ["-O2", "-m32"], m32=True)
_register("gcc_O1_with_address_sanitizer", "gcc", ["-O1", "-fsanitize=address,undefined"])


def build_query_log(run, compiler="gcc"):
    return compile_and_link(run, "query-log", [ROOT / "examples" / "provider" / "query_log.cpp"], compiler, ["-O2"])


@scenario
def names_texts_and_meanings_of_the_example_are_shown(run):
    require_root()
    require_x86_64()
    for compiler in ("gcc", "clang"):
        program = build_query_log(run, compiler)
        traced = subprocess.run([run.tool, f"usdt:{program}:db:*", "--", program, "3"], capture_output=True, text=True)
        check_equal(traced.returncode, 0, traced.stderr)
        shown = [re.sub(r"^.*? db:", "", line) for line in traced.stdout.splitlines() if " db:" in line]
        check_equal(shown[0].split(), 'lookup key="SELECT 1" key_size=8 found=1'.split(), "first line")
        check_equal(shown[1].split(), 'query sql="SELECT 1" sql_size=8 rows=10 took=1.25ms status=0'.split(), "second")
        check("status=ENOENT" in shown[5], f"an error by its name: {shown}")
        listed = run.trace(f"usdt:{program}:db:query", "--print", "sql, took, str(sql), hex(rows)",
                           command=[program, 2])
        listed.check_code(0)
        check_equal([event["args"] for event in listed.events],
                    [["SELECT 1", 1250, "SELECT 1", "0xa"], ["SELECT 2", 2500, "SELECT 2", "0x14"]], "by name")
        refused = run.trace(f"usdt:{program}:db:query", "--print", "sqll", command=[program, 2])
        check("const char *sql" in refused.stderr, f"which names there are\n{refused.describe()}")


@scenario
def bpftrace_reads_the_same_values(run):
    require_root()
    require_x86_64()
    require_program("bpftrace")
    program = build_probes(run, "gcc", ["-O2"])
    for name in ("integers", "stub_integers"):  # bpftrace 0.17 reads six arguments
        script = (f'usdt:{program}:c:{name} {{ printf("{name}: %ld %ld %ld %ld %ld %ld\\n", '
                  "arg0, arg1, arg2, arg3, arg4, arg5); }")
        log = run.dir / "said"
        done = subprocess.run(["bpftrace", "-e", script, "-c", f"{program} {ROUNDS} {log}"], capture_output=True, text=True,
                              timeout=60)
        check_equal(done.returncode, 0, f"bpftrace\n{done.stderr[-1000:]}")
        shown = [[int(value) for value in line.split(":")[1].split()] for line in done.stdout.splitlines()
                 if line.startswith(f"{name}:")]
        passed = [values[:6] for values in said(log)[name]]
        check_equal(len(passed), ROUNDS, f"lines of {name}\n{done.stdout[-1000:]}")
        check_equal(shown, passed, f"values of {name}")


@scenario
def gdb_reads_the_same_values(run):
    require_x86_64()
    require_program("gdb")
    program = build_probes(run, "gcc", ["-O2"])
    check_by_gdb(program, run.dir / "said")


@scenario
def the_red_zone_outlives_100000_traced_calls(run):
    """In place in a leaf function, whose locals are below the stack pointer, and from one that calls a stub."""
    require_root()
    require_x86_64()
    for compiler in ("gcc", "clang"):
        require_program(compiler)
        program = compile_and_link(run, f"leaf-{compiler}", ["leaf.c"], compiler, ["-O2"])
        for form in ("stub", "plain"):
            calls = 100_000 if form == "stub" else 20_000
            result = run.trace(f"usdt:{program}:leaf:{form}", command=[program, form, calls], timeout=120)
            check("corrupted" in result.stdout, f"the program did not end\n{result.describe()}")
            corrupted = re.search(r"(\d+) corrupted", result.stdout)[1]
            check_equal(int(corrupted), 0, f"{compiler}, {form}: calls with other values in their locals")
            print(f"  {compiler} {form}: {calls} calls, {result.summary['hits']} hits, {corrupted} corrupted")
            check_equal(result.summary["hits"], calls, "hits")


if __name__ == "__main__":
    main()
