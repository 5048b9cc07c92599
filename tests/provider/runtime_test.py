#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Probes that programs make while they run (<usdt/provider.h>): what tools find and read, at every moment of their lives."""

import errno
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

from builds import HERE, INCLUDE, ROOT, compile_and_link
from harness import (Skip, check, check_equal, main, require_m32, require_program, require_root, require_x86_64, scenario,
                     wait_line, wait_until)
from runtime_log import said, shown

LIBRARY = sorted((ROOT / "provider" / "src").glob("*.c"))
PROGRAM = ["runtime_program.c", "runtime_values.c", "runtime_views.cpp"]


def built(run):
    """The program as our own build makes it."""
    return run.tool.parent / "runtime-probes"


def build(run, compiler, flags):
    flags = [*flags, "-D_GNU_SOURCE"]
    return compile_and_link(run, "runtime", [*PROGRAM, *LIBRARY], compiler, flags, ["-pthread"])


class Program:
    """A started program with probes; go() lets it go on."""

    def __init__(self, run, program, *arguments, pids=1, before=(), **popen):
        self.run = run
        self.process = run.start(*before, program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                 **popen)
        self.pids = [int(wait_line(self.process)) for _ in range(pids)]
        self.pid = self.pids[-1]

    def go(self):
        self.process.stdin.write(b"\n")

    def end(self, timeout=60):
        self.go()
        check_equal(self.process.wait(timeout), 0, "the program's exit code")

    def trace(self, probes, *options, pid=None):
        """usdt-trace, attached."""
        tracing = self.run.trace_start(probes, "-p", pid or self.pid, *options)
        wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), f"{tracing.stderr()}: attached")
        check(tracing.alive(), tracing.stderr())
        return tracing


def finish(tracing):
    if tracing.alive():
        tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    check_equal(sum(result.summary["lost"].values()), 0, "lost")
    return result


def usdt_list(run, *arguments):
    done = subprocess.run([run.tool.parent / "usdt-list", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.stdout


# --- values ---------------------------------------------------------------------------------------------------------

ROUNDS = 12


def _values(name, compiler, flags, m32=False):
    def values(run):
        require_root()
        require_x86_64()
        if m32:
            require_m32()
        program = Program(run, build(run, compiler, flags) if compiler else built(run), "values", ROUNDS, run.dir / "said")
        tracing = program.trace("typed:*")
        program.end()
        result = finish(tracing)
        passed = said(run.dir / "said")
        check_equal(len(passed), 9, "probes")
        events = shown(result)
        for name, lists in passed.items():
            check_equal(events.get(name, []), lists, f"values of {name}")

    values.__name__ = f"values_of_{name}_are_right"
    scenario(values)


_values("our_build", None, None)
_values("gcc_O0", "gcc", ["-O0"])
_values("clang", "clang", ["-O2"])
_values("gcc_m32", "gcc", ["-O2", "-m32"], m32=True)
_values("gcc_O1_with_address_sanitizer", "gcc", ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])


@scenario
def bpftrace_reads_the_same_values(run):
    require_root()
    require_x86_64()
    require_program("bpftrace")
    program = Program(run, built(run), "values", ROUNDS, run.dir / "said")
    # bpftrace 0.17 reads six arguments, and of floats nothing. The length of a text counts its NUL in 0.23, and not in 0.17.
    version = subprocess.run(["bpftrace", "--version"], capture_output=True, text=True, check=True).stdout
    nul = int(tuple(map(int, re.search(r"v(\d+)\.(\d+)", version).groups())) >= (0, 23))
    script = f"""
      usdt:*:typed:integers {{ printf("integers %ld %ld %ld %ld %ld %ld\\n", arg0, arg1, arg2, arg3, arg4, arg5); }}
      usdt:*:typed:twelve {{ printf("twelve %lu %lu %lu %lu %lu %lu\\n", arg0, arg1, arg2, arg3, arg4, arg5); }}
      usdt:*:typed:views {{ printf("views %s %d\\n", str(arg0, arg1 + {nul}), arg1); }}
      BEGIN {{ printf("begin\\n"); }}"""
    bpftrace = run.start("bpftrace", "-p", program.pid, "-e", script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         bufsize=0)
    lines = []
    while "begin" not in lines:  # what comes before is a warning
        lines.append(wait_line(bpftrace, 30))
    program.end()
    lines = bpftrace.communicate(timeout=30)[0].decode().splitlines()
    passed = said(run.dir / "said")
    for name in ("integers", "twelve"):
        got = [[int(value) for value in line.split()[1:]] for line in lines if line.startswith(f"{name} ")]
        check_equal(got, [values[:6] for values in passed[name]], f"values of {name}")
    got = [line.split()[1:] for line in lines if line.startswith("views ")]
    check_equal(got, [[values[0], str(values[1])] for values in passed["views"]], "texts with a length")


# As docs/runtime-probes.md begins, fired again and again.
DOCUMENTED = """
#include <stdint.h>
#include <unistd.h>
#include <usdt/provider.h>
int main(void) {
  usdtp_provider* provider;
  usdtp_probe* query;
  usdtp_provider_create("db", 0, &provider);
  usdtp_probe_add(provider, "query", "str sql, u32 rows, i64 took:duration[us]", &query);
  usdtp_provider_publish(provider);
  write(1, "published\\n", 10);
  for (;; usleep(10000)) USDT_PROBE_FIRE(query, "SELECT 1", (uint32_t)10, (int64_t)1250);
}
"""


def bpftraces():
    """The one that is installed, and another one that a test of new releases names: a program with its own root."""
    yield from filter(None, (["bpftrace"] if shutil.which("bpftrace") else None, shlex.split(os.environ.get("USDT_BPFTRACE", ""))))


@scenario
def bpftrace_takes_the_line_of_the_document(run):
    require_root()
    if not list(bpftraces()):
        raise Skip("bpftrace is not installed")
    [line] = re.findall(r"^# (bpftrace .*)$", (ROOT / "docs/runtime-probes.md").read_text(), re.M)
    (run.dir / "documented.c").write_text(DOCUMENTED)
    documented = run.build("documented", [run.dir / "documented.c", *LIBRARY], ["-O1", "-w", "-D_GNU_SOURCE", f"-I{INCLUDE}"])
    program = run.start(documented, stdout=subprocess.PIPE, bufsize=0)
    wait_line(program)  # a file that is still being made may be given up for another one
    found = {}

    def descriptor():
        for name in os.listdir(f"/proc/{program.pid}/fd"):
            if os.readlink(f"/proc/{program.pid}/fd/{name}").startswith("/memfd:usdt-db"):
                found["number"] = name
        return found

    wait_until(descriptor, "the provider's file")
    words = shlex.split(line.replace("/fd/3", f"/fd/{found['number']}").replace("4711", str(program.pid)))
    for bpftrace in bpftraces():
        script = words[-1].removesuffix("}") + "exit(); }"
        done = subprocess.run([*bpftrace, *words[1:-1], script], capture_output=True, text=True, timeout=60)
        check("SELECT 1" in done.stdout.splitlines(), f"{bpftrace} {script}:\n{done.stdout}{done.stderr}")


# --- what tools find ------------------------------------------------------------------------------------------------


def listed(run, pid, provider):
    return set(re.findall(rf":{provider}:(\w+)", usdt_list(run, "-p", pid)))


def listed_by_bpftrace(pid, provider):
    done = subprocess.run(["bpftrace", "-p", str(pid), "-l", f"usdt:*:{provider}:*"], capture_output=True, text=True,
                          timeout=60)
    return set(re.findall(rf":{provider}:(\w+)", done.stdout))


def listed_by_bcc(pid, provider):
    """As its tplist does."""
    script = ("import sys, bcc\nfor probe in bcc.USDT(pid=int(sys.argv[1])).enumerate_probes():\n"
              " print(probe.provider.decode(), probe.name.decode())")
    done = subprocess.run(["/usr/bin/python3", "-c", script, str(pid)], capture_output=True, text=True, timeout=60)
    if "No module named" in done.stderr:
        return None
    return {line.split()[1] for line in done.stdout.splitlines() if line.split()[0] == provider}


@scenario
def probes_added_later_are_found(run):
    """By everybody who looks from then on, and by who traces already."""
    require_root()
    program = Program(run, built(run), "later", 100)
    check_equal(listed(run, program.pid, "later"), {"first"}, "listed at first")
    early = program.trace("later:*")
    program.go()
    check_equal(int(wait_line(program.process)), program.pid, "pid")
    both = {"first", "second"}
    check_equal(listed(run, program.pid, "later"), both, "listed")
    for lister in (listed_by_bpftrace, listed_by_bcc):
        found = lister(program.pid, "later")
        print(f"  {lister.__name__}: {found}")
        check(found in (both, None), f"{lister.__name__}: {found}")
    late = program.trace("later:*")
    wait_until(lambda: "followed: " in early.stderr(), "the second one is followed")
    program.end()
    result = finish(late)
    numbers = [[n] for n in range(100)]
    check_equal(shown(result), {"first": numbers, "second": numbers}, "values")
    check_equal(shown(finish(early)), {"first": numbers, "second": numbers}, "values of who came before")


@scenario
def names_types_and_meanings_are_shown(run):
    require_root()
    require_x86_64()
    program = Program(run, built(run), "values", 1, run.dir / "said")
    text = usdt_list(run, "-vv", "-p", program.pid)
    for wanted in ("bool truth", "float single", "const char *words", "size_t part_size", "const void *numbers"):
        check(wanted in text, f"{wanted}\n{text}")
    [file] = [fd for fd in pathlib.Path(f"/proc/{program.pid}/fd").iterdir() if "memfd:usdt" in str(fd.readlink())]
    check("9 sites" in (lint := usdt_list(run, "--lint", file)) and ", 0 faults" in lint, f"--lint: {lint}")
    pasted = re.search(r"^usdt:\S*:typed:lazy\b", text, re.M)[0]
    tracing = subprocess.Popen([run.tool, pasted.replace('"', ""), "-p", str(program.pid), "--print", "value"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "attached" not in (line := tracing.stderr.readline()):
        check(line != "", "usdt-trace ended")
    program.end()
    tracing.send_signal(signal.SIGINT)
    out = tracing.communicate(timeout=30)[0]
    check("typed:lazy value=0" in out, f"a listed name, traced: {out}")


@scenario
def thousands_of_probes_are_attached_at_once(run):
    require_root()
    program = Program(run, built(run), "many", 3000)
    check(len(os.listdir(f"/proc/{program.pid}/fd")) < 20, "descriptors")
    tracing = program.trace("many:*")
    program.end()
    values = shown(finish(tracing))
    check_equal(values, {f"probe_{n}": [[n, n * n]] for n in range(3000)}, "values")


@scenario
def stacks_go_through_a_stub_to_its_caller(run):
    require_root()
    program = Program(run, built(run), "tick", 1)
    tracing = subprocess.Popen([run.tool, "ticks:tick", "-p", str(program.pid), "--ustack"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    while "attached" not in (line := tracing.stderr.readline()):
        check(line != "", "usdt-trace ended")
    program.end()
    tracing.send_signal(signal.SIGINT)
    frames = tracing.communicate(timeout=30)[0].splitlines()[1:]
    functions = [re.match(r"\s*([\w:]+)", frame)[1] for frame in frames]
    check_equal(functions[0], "ticks:tick", f"where the probe is: {frames}")
    check("usdtp_fire_typed" in functions and "main" in functions, f"who fired it: {frames}")


# --- lives and ends -------------------------------------------------------------------------------------------------


@scenario
def children_have_the_probes_of_their_parent_and_their_own(run):
    require_root()
    program = Program(run, built(run), "fork", 50, pids=2)
    child, parent = program.pids
    check_equal(listed(run, parent, "forked"), {"before", "waiting", "of_parent"}, "of the parent")
    check_equal(listed(run, child, "forked"), {"before", "waiting", "of_child"}, "of the child")
    tracing = program.trace("forked:*")
    program.end()
    numbers = [[n] for n in range(50)]
    check_equal(shown(finish(tracing)), {name: numbers for name in ("before", "waiting", "of_parent")}, "values")


@scenario
def a_child_fires_what_it_inherited(run):
    require_root()
    program = Program(run, built(run), "child", 50)
    tracing = program.trace("forked:*")
    program.end()
    numbers = [[n] for n in range(50)]
    check_equal(shown(finish(tracing)), {name: numbers for name in ("before", "waiting", "of_child")}, "values")


@scenario
def a_retired_probe_is_silent_while_it_is_traced(run):
    require_root()
    program = Program(run, built(run), "retire")
    check_equal(listed(run, program.pid, "ends"), {"tick"}, "listed before")
    tracing = program.trace("ends:tick")
    program.go()
    check_equal(int(wait_line(program.process)), program.pid, "pid")
    for lister in (lambda pid, provider: listed(run, pid, provider), listed_by_bpftrace, listed_by_bcc):
        check(not lister(program.pid, "ends"), "listed after its end")
    program.end()
    check_equal(shown(finish(tracing)), {"tick": [[n] for n in range(10)]}, "values")


@scenario
def four_threads_fire_while_probes_are_retired_and_traced(run):
    require_root()
    program = Program(run, built(run), "threads", 151)
    tracing = run.trace_start("threads:*", "-p", program.pid, "--count")
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    program.end()
    if tracing.alive():
        tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    check(result.summary["hits"] > 100, f"hits\n{result.describe()}")


def _sanitized(name, sanitizer):
    def threads(run):
        require_x86_64()
        flags = ["-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
        program = build(run, "gcc", flags)
        for rounds in (200, 201):  # the provider goes after the threads, or before
            done = subprocess.run([program, "threads_as_if_traced", str(rounds)], capture_output=True, text=True, timeout=100,
                                  env={**os.environ, "TSAN_OPTIONS": "die_after_fork=0"})
            check(done.returncode == 0 and not done.stderr, f"exit {done.returncode}\n{done.stderr[-3000:]}")

    threads.__name__ = f"threads_may_fire_what_others_retire_under_{name}"
    scenario(threads)


_sanitized("asan", "address,undefined")
_sanitized("tsan", "thread")


def _unloaded(name, *sanitizer):
    def unloaded(run):
        require_x86_64()
        require_program("gcc")
        flags = ["-O1", "-g", "-fPIC", "-D_GNU_SOURCE", f"-I{INCLUDE}", *sanitizer]
        library = run.dir / "libprovider.so"
        linked = ["-shared", "-Wl,-z,nodelete", f"-Wl,--version-script={ROOT}/provider/provider.map"]  # as CMakeLists.txt has it
        program = run.dir / "unload"
        for argv in ([*LIBRARY, *linked, "-o", library], [HERE / "runtime_unload.c", "-o", program]):
            done = subprocess.run(["gcc", "-std=gnu11", "-pthread", *flags, *argv], capture_output=True, text=True)
            check_equal(done.returncode, 0, done.stderr)
        done = subprocess.run([program, library], capture_output=True, text=True, timeout=100)
        check(done.returncode == 0 and not done.stderr, f"exit {done.returncode}\n{done.stderr[-3000:]}")

    unloaded.__name__ = f"four_threads_fire_while_the_library_is_unloaded{name}"
    scenario(unloaded)


_unloaded("")
_unloaded("_under_asan", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_unloaded("_under_tsan", "-fsanitize=thread")


# --- systems that refuse --------------------------------------------------------------------------------------------


def _traced_with(name, *before):
    def traced(run):
        require_root()
        program = Program(run, built(run), "refused", 20, name)
        tracing = program.trace("refused:tick")
        program.end()
        check_equal(shown(finish(tracing)), {"tick": [[n] for n in range(20)]}, "values")

    return traced


@scenario
def without_memfd_a_file_without_a_name_serves(run):
    """That a tool is told of, or looks for."""
    _traced_with("memfd")(run)
    require_program("bpftrace")
    program = Program(run, built(run), "refused", 20, "memfd")
    [file] = [fd for fd in pathlib.Path(f"/proc/{program.pid}/fd").iterdir() if "#" in str(fd.readlink())]
    found = subprocess.run(["bpftrace", "-l", f"usdt:{file}:*"], capture_output=True, text=True, timeout=60).stdout
    check_equal(found.strip(), f"usdt:{file}:refused:tick", "by bpftrace")


@scenario
def a_process_that_may_not_make_memory_executable_has_probes(run):
    """PR_SET_MDWE: what can be written is never executed."""
    _traced_with("write_and_execute")(run)


@scenario
def where_memfds_may_not_be_executed_a_file_serves(run):
    """vm.memfd_noexec = 2, in a pid namespace of its own."""
    require_root()
    require_program("unshare")
    if not pathlib.Path("/proc/sys/vm/memfd_noexec").exists():
        raise Skip("this kernel has no vm.memfd_noexec (6.3)")
    program = built(run)
    script = f"echo 2 > /proc/sys/vm/memfd_noexec && exec {program} tick 20"
    started = Program(run, "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script)
    children = pathlib.Path(f"/proc/{started.process.pid}/task/{started.process.pid}/children").read_text().split()
    check("memfd" not in pathlib.Path(f"/proc/{children[0]}/maps").read_text(), "a memfd")
    tracing = started.trace("ticks:*", pid=children[0])
    started.end()
    check_equal(shown(finish(tracing)), {"tick": [[n] for n in range(20)]}, "values")


@scenario
def where_nothing_works_the_error_says_so_and_firing_is_harmless(run):
    program = built(run)
    wanted = {"executable": errno.EACCES, "memory": errno.ENOMEM, "files": errno.EMFILE, "size": errno.EFBIG}
    for what, code in wanted.items():
        done = subprocess.run([program, "refused", "1", what], capture_output=True, text=True, timeout=20)
        check_equal((done.returncode, done.stdout), (0, f"{code}\n"), f"{what}\n{done.stderr}")


# --- an interpreter -------------------------------------------------------------------------------------------------

FIBONACCI = ROOT / "examples" / "lua-probes" / "fibonacci.lua"
CALLS_OF_FIB = 2 * 89 - 1 + 2 * 55 - 1  # fib(n) calls twice the number after the n-th, less one: of 10, then of 9


def lua(run):
    program = run.tool.parent / "lua-probes"
    if not program.exists():
        raise Skip("lua-probes is not built (liblua5.4-dev)")
    return Program(run, program, FIBONACCI, 10)


@scenario
def calls_and_returns_of_lua_are_traced_by_name(run):
    require_root()
    program = lua(run)
    tracing = program.trace("lua:*")
    program.end()
    result = finish(tracing)
    events = [(event["probe"].rsplit(":", 1)[1], event["args"]) for event in result.events]
    check_equal([args for name, args in events if name == "result"], [[55, 55 / 34, "hello, lua"]], "the script's own probe")
    fib = [name for name, args in events if args[:1] == ["fib"]]
    check_equal((fib.count("call"), fib.count("return")), (CALLS_OF_FIB, CALLS_OF_FIB), "calls and returns of fib")
    depth = deepest = 0
    for name, args in events:
        if args[:1] == ["fib"]:
            check(args[1].endswith("fibonacci.lua") and args[2] == 5, f"where it is defined: {args}")
            depth += 1 if name == "call" else -1
            deepest = max(deepest, depth)
            check(depth >= 0, "a return without its call")
    check_equal((depth, deepest), (0, 10), "calls within calls")
    check_equal([name for name, args in events if args[:1] == ["greet"]], ["call", "return"], "greet")


@scenario
def calls_of_lua_are_counted_by_bpftrace(run):
    require_root()
    require_x86_64()
    require_program("bpftrace")
    program = lua(run)
    script = 'usdt:*:lua:call { @calls[str(arg0)] = count(); } BEGIN { printf("begin\\n"); }'
    bpftrace = run.start("bpftrace", "-p", program.pid, "-e", script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         bufsize=0)
    while wait_line(bpftrace, 30) != "begin":
        pass
    program.end()
    text = bpftrace.communicate(timeout=30)[0].decode()
    check_equal(dict(re.findall(r"@calls\[(\w+)\]: (\d+)", text)).get("fib"), str(CALLS_OF_FIB), f"calls of fib\n{text}")


if __name__ == "__main__":
    main()
