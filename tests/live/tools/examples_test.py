#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The examples of --help, word for word but for the number of a process and a limit of time: they do what they say."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_file, require_program, require_root, scenario  # noqa: E402

SERVER = """
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>
struct request { int number; const char* path; };
__attribute__((noinline)) static int answer(struct request* request) {
  int length = 0;
#line 120 "server.c"
  while (request->path[length]) length++;
  return length + request->number;
}
int main(int argc, char** argv) {
  struct request request = {argc, "/index.html"};
  for (int i = 0; argc > 1 && i < 6000; i++, usleep(10000)) DTRACE_PROBE1(postgresql, query__start, "select 1");
  return answer(&request) == 0;
}
"""
PROGRAM = "int main() { try { throw 1; } catch (int) {} return 0; }"
# What this kernel and machine may not have: then they say so.
OF_THE_KERNEL = re.compile(r"\b(kfunc|kcall|raw_tp):")


def examples(tool):
    """Commands of --help, without what is said of them."""
    text = subprocess.run([tool, "--help", "all"], capture_output=True, text=True, check=True).stdout
    found = [line.strip() for line in text.splitlines() if line.startswith(f"  {tool.name} ")]
    check(len(found) >= 8, f"{tool.name} has {len(found)} examples: {found}")
    return [re.split(r" {2,}| \| |; ", line)[0] for line in found]


def prepare(run):
    require_root()
    require_program("gcc", "g++")
    require_file("/usr/bin/python3.11")
    (run.dir / "server.c").write_text(SERVER)
    (run.dir / "program.cpp").write_text(PROGRAM)
    run.build("server", [run.dir / "server.c"], ["-g", "-O1"])
    run.build("program", [run.dir / "program.cpp"], ["-O1"], "g++")
    heap = run.tool.parents[1] / "provider/heap/libusdt-heap.so"  # which one of the examples is about
    return run.start(run.dir / "server", "serve", env={"LD_PRELOAD": str(heap)} if heap.exists() else None).pid


def run_example(run, tool, command, pid, *limit):
    words = [str(pid) if word == "1234" else word for word in shlex.split(command)]
    at = words.index("--") if "--" in words else len(words)
    argv = [tool, *words[1:at], *limit, *words[at:]]
    return subprocess.run(argv, capture_output=True, text=True, timeout=110, cwd=run.dir, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": f"/usr/bin:/bin:{os.environ['PATH']}"})


@scenario
def examples_of_usdt_trace_trace(run):
    pid = prepare(run)
    nothing = []
    for command in examples(run.tool):
        done = run_example(run, run.tool, command, pid, *([] if re.search(" -d |--duration|--replay", command) else ["-d", "2"]))
        what = f"{command}\n{done.stdout[-500:]}\n{done.stderr[-500:]}"
        if OF_THE_KERNEL.search(command) and done.returncode == 1:
            nothing.append(command)
            continue
        check_equal(done.returncode, 0, what)
        if ("-- " in command or "-p " in command) and not re.search("--hist|--by|--record|--preset heap", command):
            check(re.search(r"^( *\S+ )?\d\d:\d\d:\d\d", done.stdout, re.M), f"no event: {what}")
    print("not on this kernel:", nothing)


@scenario
def examples_of_usdt_list_list(run):
    pid = prepare(run)
    tool = pathlib.Path(run.tool).with_name("usdt-list")
    for command in examples(tool):
        if command.endswith("/usr/lib"):  # all of it takes its time
            command = command.removesuffix("/usr/lib") + "libstdc++.so.6"
        done = run_example(run, tool, command, pid)
        what = f"{command}\n{done.stdout[-500:]}\n{done.stderr[-500:]}"
        if OF_THE_KERNEL.search(command) and done.returncode != 0:
            check("kfunc" in done.stderr or "kernel" in done.stderr, what)
            continue
        check_equal(done.returncode, 0, what)
        check(done.stdout.strip() or "--lint" in command, f"nothing: {what}")


if __name__ == "__main__":
    main()
