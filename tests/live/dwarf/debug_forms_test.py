#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debug information in other forms than the usual one: line tables alone, which tell no parameters, and sections that are
compressed with zstd."""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, attach_at_once, check, check_equal, main, require_root, scenario, wait_until  # noqa: E402
from said import quiet  # noqa: E402

attach_at_once()

LINES_ONLY = """
#include <stdio.h>
struct req { int id; const char *name; };
__attribute__((noinline)) int handle(struct req *r, long n, const char *who) {
  __asm__ volatile("" : : "r"(r), "r"(n), "r"(who) : "memory");
  return r->id + (int)n;
}
__attribute__((noinline)) void tick(void) { __asm__ volatile("" : : : "memory"); }
int main(void) { int s = 0; for (int i = 0; i < 4; i++) { struct req r = {i, "x"}; tick(); s += handle(&r, 100 * i, "me"); } return s != 606; }
"""
RUST = """
#[inline(never)] #[no_mangle] pub extern "C" fn handle(id: u64, n: i64) -> u64 { std::hint::black_box((id, n)); id + n as u64 }
fn main() { let mut s = 0; for i in 0..4u64 { s += handle(i, 100 * i as i64); } std::process::exit((s != 606) as i32); }
"""


def listing(run, program, function):
    return subprocess.run([run.tool.with_name("usdt-list"), f"ucall:{program}:{function}"], capture_output=True, text=True, timeout=60)


def listed(run, program, function):
    return listing(run, program, function).stdout


def built(run, name, suffix, text, compiler, *flags, libs=()):
    require_root()
    if not shutil.which(compiler):
        return None
    source = run.dir / f"{name}.{suffix}"
    source.write_text(text)
    target = run.dir / name
    done = subprocess.run([compiler, *flags, str(source), "-o", str(target), *libs], capture_output=True, text=True)
    check_equal(done.returncode, 0, f"{compiler}: {done.stderr}")
    return target


@scenario
def functions_of_line_tables_alone_have_no_known_signature(run):
    seen = 0
    for compiler, flags in (("gcc", ["-g1", "-O1"]), ("gcc", ["-O0", "-gdwarf-4", "-g1"]), ("g++", ["-g1", "-O2"]), ("gcc", ["-g", "-g1", "-O1"]),
                            ("clang", ["-gline-tables-only", "-O1"]), ("clang", ["-g1", "-O0"]), ("clang++", ["-g1", "-O2"])):
        name = f"lines-{compiler}{''.join(flags)}".replace("+", "p")
        program = built(run, name, "cpp" if "++" in compiler else "c", LINES_ONLY, compiler, *flags)
        if program is None:
            continue
        seen += 1
        for function in ("handle", "tick"):
            function += "*" if "++" in compiler else ""
            text = listed(run, program, function)
            check("(untyped)" in text and "void" not in text, f"{name}: {text}")
        probe = f"ucall:{program}:handle" + ("*" if "++" in compiler else "")
        traced = run.trace(probe, "--args", "ptr, i64, str", "--print", "arg1, str(arg2)", command=quiet(program))
        traced.check_code(0)
        check_equal([event["args"] for event in traced.events], [[100 * i, "me"] for i in range(4)], name)
    check(seen > 0, "no compiler")


@scenario
def functions_without_parameters_are_known_to_have_none(run):
    for compiler in ("gcc", "g++", "clang", "clang++"):
        for level in ("-O0", "-O2"):
            program = built(run, f"full-{compiler}{level}".replace("+", "p"), "cpp" if "++" in compiler else "c",
                            "__attribute__((noinline)) void tick(void) { __asm__ volatile(\"\" : : : \"memory\"); }\n"
                            "int main() { tick(); return 0; }\n", compiler, "-g", level)
            text = listed(run, program, "tick*" if "++" in compiler else "tick")
            check("(untyped)" not in text and "void (" in text, f"{compiler} {level}: {text}")


@scenario
def functions_of_rust_with_limited_debug_information_have_no_known_signature(run):
    require_root()
    for level in ("1", "line-tables-only"):
        program = built(run, f"rust-{level}", "rs", RUST, "rustc", "-C", f"debuginfo={level}", "-O")
        if program is None:
            raise Skip("no rustc")
        text = listed(run, program, "handle")
        check("(untyped)" in text, text)
        traced = run.trace(f"uprobe:{program}:handle", "--args", "u64, i64", command=quiet(program))
        traced.check_code(0)
        check_equal([event["args"] for event in traced.events], [[i, 100 * i] for i in range(4)], level)


def compressed(run, program, target, *options):
    done = subprocess.run(["objcopy", *options, str(program), str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"objcopy: {done.stderr}")
    return target


@scenario
def sections_compressed_with_zstd_are_read(run):
    for compiler, flags in (("gcc", ["-g", "-O1"]), ("clang", ["-g", "-O0", "-gdwarf-4"])):
        plain = built(run, f"plain-{compiler}", "c", LINES_ONLY, compiler, *flags)
        if plain is None:
            continue
        wanted = listed(run, plain, "*").replace(str(plain), "FILE")
        check("handle" in wanted and "who" in wanted, wanted)
        packed = compressed(run, plain, run.dir / f"packed-{compiler}", "--compress-debug-sections=zstd")
        check_equal(listed(run, packed, "*").replace(str(packed), "FILE"), wanted, "in the file itself")
        debug = compressed(run, plain, run.dir / f"apart-{compiler}.debug", "--only-keep-debug", "--compress-debug-sections=zstd")
        apart = compressed(run, plain, run.dir / f"apart-{compiler}", "--strip-debug", f"--add-gnu-debuglink={debug}")
        check_equal(listed(run, apart, "handle").replace(str(apart), "FILE"), wanted_of(wanted, "handle"), "in a file of its own")
        traced = run.trace(f"uprobe:{packed}:handle", "--print", "r->id, n, str(who)", command=quiet(packed))
        check_equal([event["args"] for event in traced.events], [[i, 100 * i, "me"] for i in range(4)], "values")


def wanted_of(text, function):
    return "".join(line + "\n" for line in text.splitlines() if line.split("\t")[0].endswith(f":{function}"))


@scenario
def broken_zstd_is_an_error_and_not_the_end(run):
    plain = built(run, "broken-plain", "c", LINES_ONLY, "gcc", "-g", "-O1")
    packed = compressed(run, plain, run.dir / "broken", "--compress-debug-sections=zstd")
    sections = subprocess.run(["readelf", "-SW", packed], capture_output=True, text=True).stdout
    place = next(line.split("]", 1)[1].split() for line in sections.splitlines() if " .debug_info" in line)
    start, size = int(place[3], 16), int(place[4], 16)
    whole = packed.read_bytes()
    for number, at in enumerate([start + 8, start + 9, start + 24, start + 26, start + 40, start + size // 2, start + size - 4]):
        bad = bytearray(whole)
        bad[at] ^= 0x55
        target = run.dir / f"broken-{number}"
        target.write_bytes(bad)
        target.chmod(0o755)
        result = listing(run, target, "handle")
        check(result.returncode in (0, 1, 2, 3, 4), f"byte {at - start}: {result.returncode} {result.stderr}")


LIBRARY = """
#include <stdlib.h>
struct peer { const char *name; int port; };
struct conn { int fd; struct peer peer; unsigned flags : 3, kind : 5; struct conn *next; };
struct conn *conn_new(int fd, const char *name) {
  static struct conn *last;
  struct conn *c = calloc(1, sizeof *c);
  c->fd = fd, c->peer.name = name, c->peer.port = 8000 + fd, c->flags = 5, c->kind = 9, c->next = last;
  return last = c;
}
"""
USER = """
struct conn; struct nobody_has_it;
struct conn *conn_new(int fd, const char *name);
__attribute__((noinline)) void conn_log(struct conn *c, struct nobody_has_it *n) { __asm__ volatile("" : : "r"(c), "r"(n) : "memory"); }
int main(void) { for (int i = 1; i <= 2; i++) conn_log(conn_new(i, i == 1 ? "alpha" : "beta"), 0); return 0; }
"""


@scenario
def types_that_only_a_library_has_are_found_there(run):
    library = built(run, "libconn.so", "c", LIBRARY, "gcc", "-g", "-O1", "-shared", "-fPIC")
    user = built(run, "user", "c", USER, "gcc", "-g", "-O1", f"-Wl,-rpath,{run.dir}", libs=[str(library)])
    asked = "c->fd, str(c->peer.name), c->peer.port, c->flags, c->kind, sizeof(*c), *c->next"
    traced = run.trace(f"uprobe:{user}:conn_log", "--print", asked, "--depth", "2", command=quiet(user))
    traced.check_code(0)
    rows = [event["args"] for event in traced.events]
    check_equal([row[:6] for row in rows], [[1, "alpha", 8001, 5, 9, 40], [2, "beta", 8002, 5, 9, 40]], traced.stderr)
    check_equal(rows[1][6]["peer"]["port"], 8001, "the one before")
    traced = run.trace(f"uprobe:{user}:conn_log", "--where", 'str(c->peer.name) == "beta"', "--print", "c->fd", command=quiet(user))
    check_equal([event["args"] for event in traced.events], [[2]], traced.stderr)
    refused = run.trace(f"uprobe:{user}:conn_log", "--print", "n->x", command=quiet(user))
    check("only declared here" in refused.stderr, refused.stderr)


PLUGIN = """
struct conn;
__attribute__((noinline)) void conn_log(struct conn *c) { __asm__ volatile("" : : "r"(c) : "memory"); }
"""
HOST = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
struct conn { int fd; const char *peer; };
void conn_log(struct conn *c) __attribute__((weak));
int main(int argc, char **argv) {
  void (*log)(struct conn *) = conn_log;
  for (int i = 1; i < argc; i++) {
    void *plugin = dlopen(argv[i], RTLD_NOW);
    void *found = plugin ? dlsym(plugin, "conn_log") : 0;
    if (found) log = (void (*)(struct conn *))found;
  }
  if (argc > 1) puts("open"), fflush(stdout), getchar();
  for (int i = 1; i <= 2; i++) { struct conn c = {i, i == 1 ? "alpha" : "beta"}; log(&c); }
}
"""
OTHER = "struct conn { long what; char rest[8]; }; struct conn other = {1};"


@scenario
def types_that_only_the_program_has_are_found_for_its_library(run):
    plugin = built(run, "libplugin.so", "c", PLUGIN, "gcc", "-g", "-O1", "-shared", "-fPIC")
    host = built(run, "host", "c", HOST, "gcc", "-g", "-O1", "-Wl,--no-as-needed", f"-Wl,-rpath,{run.dir}", libs=[str(plugin), "-ldl"])
    options = ("--print", "c->fd, str(c->peer)")
    wanted = [[1, "alpha"], [2, "beta"]]
    traced = run.trace(f"uprobe:{plugin}:conn_log", *options, command=[host])
    check_equal([event["args"] for event in traced.events], wanted, f"a library that the command needs\n{traced.stderr}")
    opened = built(run, "libopened.so", "c", PLUGIN, "gcc", "-g", "-O1", "-shared", "-fPIC")
    other = built(run, "libother.so", "c", OTHER, "gcc", "-g", "-O1", "-shared", "-fPIC")
    for more in ([], [other]):
        process = run.start(host, opened, *more, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check_equal(process.stdout.readline(), b"open\n", "the plugins are open")
        probe = f"uprobe:{opened}:conn_log"
        if more:
            refused = run.trace(probe, *options, "-p", process.pid, "--duration", 1)
            said = "struct conn is one thing in "
            check(refused.code != 0 and said in refused.stderr and "nobody tells" in refused.stderr, refused.describe())
            process.kill()
            continue
        tracing = run.trace_start(probe, *options, "-p", process.pid)
        wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached", timeout=60)
        process.communicate(b"\n")
        traced = tracing.finish(60)
        check_equal([event["args"] for event in traced.events], wanted, f"a library that the process opened\n{traced.stderr}")


FORTRAN = """
module geo
  type person
    integer :: age
    character(len=5) :: name
    integer :: scores(0:2)
  end type
contains
  integer function area(w, h, name)
    integer, intent(in) :: w, h
    character(len=*), intent(in) :: name
    area = w * h + len(name)
  end function
  subroutine fixed(a, m, p)
    integer, intent(in) :: a(3)
    integer, intent(in) :: m(2, 3)
    type(person), intent(in) :: p
    print *, a(1), m(1, 1), p%age
  end subroutine
  subroutine total(a, n, r)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n)
    real(8), intent(out) :: r
    r = sum(a)
  end subroutine
  subroutine shaped(a, r)
    integer, intent(in) :: a(:)
    integer, intent(out) :: r
    r = sum(a)
  end subroutine
end module
program p
  use geo
  integer :: i, r2
  real(8) :: r
  type(person) :: someone
  someone = person(41, 'Marie', [7, 8, 9])
  do i = 1, 2
    print *, area(i, 10*i, 'room')
    call fixed([i, 20, 30], reshape([1, 2, 3, 4, 5, 6], [2, 3]), someone)
    call total([1d0, 2d0, 3d0*i], 3, r)
    call shaped([i, 2*i, 3*i, 4*i], r2)
    print *, r, r2
  end do
end program
"""


@scenario
def values_of_fortran_are_right_or_say_what_they_are(run):
    for level in ("-O0", "-O2"):
        program = built(run, f"fortran{level}", "f90", FORTRAN, "gfortran", "-g", level, "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra",
                        f"-J{run.dir}")
        if program is None:
            raise Skip("no gfortran")

        def args(function, asked):
            traced = run.trace(f"uprobe:{program}:*{function}", "--print", asked, "--depth", "3", command=quiet(program))
            traced.check_code(0)
            check_equal(len(traced.events), 2, f"{function}: {traced.stderr}")
            return [event["args"] for event in traced.events]

        check_equal([row[0] for row in args("area", "name")], ["room", "room"], level)
        for row, i in zip(args("fixed", "a, m, p"), (1, 2)):
            wanted = [[i, 20, 30], [[1, 2], [3, 4], [5, 6]], {"age": 41, "name": "Marie", "scores": [7, 8, 9]}]
            for shown, value in zip(row, wanted):
                check(shown == value or (isinstance(shown, dict) and "error" in shown and "0 bytes" not in shown["error"]), f"{level}: {shown}")
            check(level == "-O0" or row == wanted, f"{level}: {row}")
        for function in ("total", "shaped"):
            for (shown,) in args(function, "a"):
                check("bounds are known only at run time" in shown.get("error", ""), f"{level} {function}: {shown}")


XRAY = """
#include <stdio.h>
struct req { long id; const char *who; };
static volatile long sum;
__attribute__((noinline)) int handle(struct req *r, long n, const char *w) { __asm__ volatile("" ::: "memory"); sum += r->id + r->who[0] + w[0]; return (int)n * 3; }
__attribute__((noinline)) int by_value(struct req r, int n) { __asm__ volatile("" ::: "memory"); sum += r.id + n + r.who[0]; return n; }
int main(void) { for (long i = 0; i < 4; i++) { struct req r = {i + 7, "me"}; handle(&r, i, "w"); by_value(r, (int)i); } return 0; }
"""


# Arrays whose lengths are arguments; `plain` is what a pointer to numbers shows of the same memory.
VARIABLE = """
__attribute__((noinline)) long rows(int n, int (*grid)[n], int (*pairs)[n][2], int *plain) {
  __asm__ volatile("" : : "r"(grid), "r"(pairs), "r"(plain) : "memory");
  return grid[0][n - 1];
}
__attribute__((noinline)) long flat(int n, int all[n]) { __asm__ volatile("" : : "r"(all) : "memory"); return all[n - 1]; }
int main(void) {
  int all[6] = {1, 2, 3, 4, 5, 6};
  long sum = 0;
  for (int i = 0; i < 3; i++) {
    all[1] = 40 + i;
    sum += rows(3, (int (*)[3])all, (int (*)[3][2])all, all) + flat(6, all);
  }
  return sum == 0;
}
"""


@scenario
def elements_of_arrays_of_c_whose_length_is_an_argument_are_read(run):
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1"):
            program = built(run, f"variable-{compiler}{level}", "c", VARIABLE, compiler, "-g", "-w", level)
            if program is None:
                continue
            where = f"{compiler} {level}"
            asked = "plain[1], (*grid)[1], (*pairs)[0][1], plain[5], (*pairs)[2][1], n"
            traced = run.trace(f"uprobe:{program}:rows", "--print", asked, command=quiet(program))
            traced.check_code(0)
            check_equal([event["args"] for event in traced.events], [[40 + i] * 3 + [6, 6, 3] for i in range(3)], where)
            flat = run.trace(f"uprobe:{program}:flat", "--print", "all[1], *all", command=quiet(program))
            check_equal([event["args"] for event in flat.events], [[40 + i, 1] for i in range(3)], where)
            whole = run.trace(f"uprobe:{program}:rows", "--print", "*grid, *pairs", command=quiet(program))
            for value in whole.events[0]["args"]:
                check("number of elements that is not known" in value.get("error", ""), f"{where}: {whole.events[0]['args']}")
            refused = run.trace(f"uprobe:{program}:rows", "--print", "grid[1]", command=quiet(program))
            check(refused.code == 2 and "the size of what grid points to is not known" in refused.stderr, f"{where}: {refused.stderr}")


FORTRAN_LINES = """
integer(8) function handle(id, step)
  integer(8), intent(in) :: id, step
  handle = id * 2 + step
end function
program main
  integer(8), external :: handle
  integer(8) :: i, total
  total = 0
  do i = 0, 3
    total = total + handle(i, 100 * i)
  end do
  if (total < 0) print *, total
end program
"""


@scenario
def functions_of_fortran_with_line_tables_alone_have_no_known_signature(run):
    for flags in (["-g1", "-O0"], ["-g1", "-O1", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra"]):
        program = built(run, f"fortran{''.join(flags)}", "f90", FORTRAN_LINES, "gfortran", *flags)
        if program is None:
            raise Skip("no gfortran")
        text = listed(run, program, "handle_")
        check("(untyped)" in text and "void" not in text, f"{flags}: {text}")
        # Its arguments are addresses of numbers.
        traced = run.trace(f"ucall:{program}:handle_", "--args", "ptr, ptr", "--print", "*(long *)arg0, *(long *)arg1, retval", command=quiet(program))
        traced.check_code(0)
        check_equal([event["args"] for event in traced.events], [[i, 100 * i, 102 * i] for i in range(4)], flags)


@scenario
def arguments_are_read_behind_the_room_that_xray_patches(run):
    """Location lists begin behind that room, and so does the probe: what is patched at run time is no place for a breakpoint."""
    for flags in (["-O2"], ["-O2", "-fcf-protection=full"], ["-O0"]):
        program = built(run, f"xray{''.join(flags)}".replace("=", ""), "c", XRAY, "clang", "-g", "-fxray-instrument", "-fxray-instruction-threshold=1", *flags)
        if program is None:
            raise Skip("no clang")
        for options in ("", "patch_premain=true xray_mode=xray-basic xray_naive_log=false"):
            command = ["sh", "-c", f"XRAY_OPTIONS='{options} xray_logfile_base={run.dir}/log.' exec {program}"]
            traced = run.trace([f"uprobe:{program}:handle", f"uprobe:{program}:by_value"], "--depth", "2", command=command)
            traced.check_code(0)
            shown = [[name["args"] for name in traced.events if name["probe"].endswith(f":{function}")] for function in ("handle", "by_value")]
            check_equal([args[1:] for args in shown[0]], [[i, "w"] for i in range(4)], f"{flags} {options}: {traced.stderr}")
            check_equal([args[1] for args in shown[1]], list(range(4)), f"{flags} {options}: {traced.stderr}")


if __name__ == "__main__":
    main()
