#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whoever is traced ends as untraced and prints the same, whatever its functions are called by, however they are left,
and whichever end of a call is asked for; and no event has the arguments of one call with the result of another."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from go_programs import build as build_go  # noqa: E402
from harness import LONG, check, check_equal, main, require_program, require_root, scenario  # noqa: E402
from puppet import HERE  # noqa: E402

TRACES, RUNS = (10, 10) if LONG else (1, 1)  # each trace of so many runs, one after the other
PREFIXES = ["ucall", "uretprobe"]
# As usdt-list prints them; a glob; as the linker knows it.
NAMES = {
    "exact": "app::work(int, app::request&)",
    "glob": "*work(int*",
    "mangled": "_ZN3app4workEiRNS_7requestE",
    "method": "app::server::handle(int, app::request&) const",
    "template": "app::pick<app::request>(int, app::request&)",
}
GO_NAMES = {"exact": "main.work", "glob": "main.w*k", "mangled": "main.work", "method": '"main.(*server).handle"',
            "template": "main.pick?go.shape.string*?"}  # go.shape.string, with Go 1.19 string_0
LEFT = ["returns", "throws", "longjmp", "fibers", "reversed", "copied", "moved", "altstack", "coroutines"]


def in_shell(command, said):
    """Each run's output and exit code, in a file."""
    return ["sh", "-c", f"for run in $(seq {RUNS}); do {' '.join(map(str, command))}; echo \"exit code $?\"; done > {said} 2> /dev/null"]


def untraced(command, said):
    subprocess.run(in_shell(command, said), timeout=600, check=True)
    return said.read_text()


def check_values(where, events, number):
    """A function returns 1000 more than its number, which is the last argument that is one."""
    for event in events:
        check_equal(event.get("return"), 1000 + event["args"][number], f"{where}: result of {event['args']}")


def check_harmless(run, where, probe, command, *options):
    """The events of the last trace."""
    said = run.dir / "said"
    expected = untraced(command, said)
    for _ in range(TRACES):
        result = run.trace(probe, *options, command=in_shell(command, said))
        check_equal(said.read_text(), expected, f"{where}: exit codes and output\n{result.stderr}")
    return result


def matrix(run, program, names, ways, compiler):
    for way in ways:
        for kind, name in names.items():
            for prefix in PREFIXES:
                where = f"{compiler} {kind} {way} {prefix}"
                result = check_harmless(run, where, f"{prefix}:{program}:{name}", [program, way])
                check(result.events, f"{where}: no event\n{result.stderr}")
                if prefix == "ucall":
                    check_values(where, result.events, -2)
                    ledger = result.summary
                    check_equal(ledger["hits"], len(result.events) + ledger["lost"].get("unfinished", 0),
                                f"{where}: calls that returned and others")


def build(run, compiler, *flags):
    require_root()
    name = "-".join(["harm", compiler.replace("+", "p"), *(flag.replace("=", "-") for flag in flags)])
    return run.build(name, [HERE / "attach/harm.cpp"], ["-std=c++20", "-g", "-O2", *flags], compiler, ["-pthread"])


@scenario
def no_name_and_no_way_to_leave_a_function_harms_a_program_of_gcc(run):
    matrix(run, build(run, "g++"), NAMES, LEFT, "g++")


@scenario
def no_way_to_leave_a_function_harms_a_program_of_clang(run):
    names = NAMES if LONG else {"exact": NAMES["exact"]}
    matrix(run, build(run, "clang++"), names, LEFT, "clang++")


@scenario
def no_way_to_leave_a_function_whose_blocks_are_anywhere_harms_a_program(run):
    """As Propeller lays code out: each block has a section, and the linker any order of those."""
    names = NAMES if LONG else {"exact": NAMES["exact"]}
    matrix(run, build(run, "clang++", "-fbasic-block-sections=all"), names, LEFT, "clang++ blocks")


# Debug information has a function where symbols have the midst of another one.
WITHIN = """#include <stdio.h>
__attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x + 1; }
__asm__(".globl whole\\n.type whole, @function\\n.set whole, inner - 8\\n.size whole, 64\\n");
int main(void) { int s = 0; for (int i = 0; i < 3; i++) s += inner(i); printf("%d\\n", s); return 0; }
"""


@scenario
def the_kernels_return_probe_stands_only_where_a_function_begins(run):
    require_root()
    source = run.dir / "within.c"
    source.write_text(WITHIN)
    program = run.build("within", [source], ["-O1", "-g"])
    check_equal(run.trace(f"uretprobe:{program}:inner", "--no-ret-probes", command=[program]).summary["hits"], 3, "hits where a symbol has it")
    subprocess.run(["objcopy", "-N", "inner", program], check=True)
    refused = run.trace(f"uretprobe:{program}:inner", "--no-ret-probes", command=[program])
    check(refused.code != 0 and "no function begins there" in refused.stderr, refused.describe())


# What looks at its caller, or has exceptions pass by, in C and in a program of C++: it says what it found.
LOOKS = """#include <cstdio>
#include <cstdlib>
#include <csetjmp>
#include <mutex>
#include <stdexcept>
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>
extern "C" void *next_of(const char *name);
extern "C" int frames_of(int n);
static jmp_buf place;
static int compared;
static int compare(const void *a, const void *b) {
  if (++compared == 3) throw std::runtime_error("third");
  return *(const int *)a - *(const int *)b;
}
extern "C" pid_t getppid(void) noexcept { return -1; }
int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::once_flag once;
  int tries = 0;
  for (int i = 0; i < 3; i++) try {
    std::call_once(once, [&] { if (tries++ < 1) throw std::runtime_error("first"); });
    std::puts("done");
  } catch (std::exception &e) { std::printf("caught %s\\n", e.what()); }
  int numbers[] = {5, 3, 1, 4, 2};
  try { qsort(numbers, 5, sizeof(int), compare); } catch (std::exception &e) { std::printf("caught %s\\n", e.what()); }
  volatile int i = 0;
  const int value = setjmp(place);
  std::printf("setjmp %d\\n", value);
  if (++i < 4) longjmp(place, i);
  void *next = next_of("getppid");
  std::printf("next %s\\n", next && next != (void *)getppid ? "found" : "not found");
  std::printf("frames %d\\n", frames_of(1) > 2);
}
"""
LOOKS_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }
int frames_of(int n) { void *frames[20]; return backtrace(frames, 20 * n); }
"""


@scenario
def no_return_probe_of_the_kernel_stands_where_somebody_looks_at_the_caller(run):
    require_root()
    library_source, source = run.dir / "looks.c", run.dir / "looks.cpp"
    library_source.write_text(LOOKS_LIBRARY)
    source.write_text(LOOKS)
    library = run.build("liblooks.so", [library_source], ["-O2", "-shared", "-fPIC"])
    program = run.build("looks", [source], ["-O2"], "g++", [str(library), "-pthread"])
    libc = ["_setjmp", "__sigsetjmp", "pthread_once", "qsort", "dlsym", "backtrace", "longjmp"]
    probes = {
        "C's library": [f"libc.so.6:{name}" for name in libc],
        "the unwinder": ["libgcc_s.so.1:_Unwind_*"],
        "a library of one's own": [f"{library}:next_of", f"{library}:frames_of"],
    }
    for whose, names in probes.items():
        for prefix in PREFIXES:
            # (So that there is one that can be attached.)
            many = [f"uprobe:{program}:main", *(f"{prefix}:{name}" for name in names)]
            check_harmless(run, f"{prefix} of {whose}", many, [program])
    asked = ["__sigsetjmp", "dlsym", "backtrace", "longjmp"]
    result = check_harmless(run, "asked for", [f"uprobe:{program}:main", *(f"ucall:libc.so.6:{name}" for name in asked)],
                            [program], "--no-ret-probes")
    check("it looks at its return address" in result.stderr, result.stderr)


@scenario
def no_name_harms_a_program_without_debug_information(run):
    program = build(run, "g++")
    stripped = run.dir / "stripped"
    subprocess.run(["objcopy", "--strip-debug", program, stripped], check=True)
    for way in ("throws", "fibers", "copied"):
        for kind, name in NAMES.items():
            check_harmless(run, f"{kind} {way}", f"ucall:{stripped}:{name}", [stripped, way])


@scenario
def no_name_harms_a_program_whose_coroutines_are_traced_themselves(run):
    """What makes them, and what goes on with them, by whatever name."""
    for compiler in ("g++", "clang++"):
        program = build(run, compiler)
        for name in ("app::go_on(int, app::request&)", "*go_on*", "_ZN3app5go_onEiRNS_7requestE"):
            for prefix in PREFIXES:
                where = f"{compiler} {prefix}:{name}"
                result = check_harmless(run, where, f"{prefix}:{program}:{name}", [program, "coroutines"])
                if "*" not in name:
                    check_equal(result.summary["hits"], 3 * RUNS, f"{where}: coroutines\n{result.stderr}")


RUST_NAMES = {"exact": "harm::work", "glob": "*h*m::work*", "method": "harm::Server::handle", "template": "harm::pick"}


@scenario
def no_name_and_no_panic_harms_a_program_of_rust(run):
    require_root()
    require_program("rustc")
    for level in ("0", "2"):
        program = run.dir / "harm"
        built = subprocess.run(["rustc", "-g", "-A", "warnings", "-C", f"opt-level={level}", "-o", program, HERE / "attach/harm.rs"],
                               capture_output=True, text=True)
        check_equal(built.returncode, 0, built.stderr)
        for way in ("returns", "panics", "throws"):
            for kind, name in RUST_NAMES.items():
                for prefix in PREFIXES:
                    where = f"Rust, level {level}: {kind} {way} {prefix}"
                    result = check_harmless(run, where, f"{prefix}:{program}:{name}", [program, way])
                    check(result.events, f"{where}: no event\n{result.stderr}")
                    number = 1 if kind == "method" else 0
                    if prefix == "ucall":  # whose arguments are not known where it is optimised
                        check_values(where, [event for event in result.events if isinstance(event["args"][number], int)], number)


@scenario
def no_name_harms_a_program_of_go(run):
    program = build_go(run, HERE / "attach/harm.go")
    for kind, name in GO_NAMES.items():
        for prefix in PREFIXES:
            where = f"Go {kind} {prefix}"
            result = check_harmless(run, where, f"{prefix}:{program}:{name}", [program])
            check(result.events, f"{where}: no event\n{result.stderr}")
            if prefix == "ucall":
                check_values(where, result.events, -1 if kind != "template" else 0)


if __name__ == "__main__":
    main()
