#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Too few descriptors, threads, or too little memory: the trace works, or one line says what is missing. Nothing dies, and
no other reason is given."""

import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402
from puppet import probe_of  # noqa: E402

MIB = 1 << 20

# From the FIRST-th on no thread can be started.
NO_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static atomic_long started;
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  if (atomic_fetch_add(&started, 1) >= atol(getenv("FIRST"))) return EAGAIN;
  return create(thread, attributes, run, argument);
}
"""
WORDS = {
    "descriptors": ("descriptors", "Too many open files"),
    "threads": ("start a thread",),
    "memory": ("out of memory", "Cannot allocate memory", "Resource temporarily unavailable"),
}


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def judge(what, value, done):
    """True: it worked."""
    where = f"{what} {value}:\n{done.stdout}{done.stderr}"
    check(done.returncode >= 0, f"a signal ended the tool, {where}")
    for word in ("terminate called", "libbpf:", "verifier"):
        check(word not in done.stderr, f"'{word}', {where}")
    if done.returncode == 0:
        return True
    check_equal(done.returncode, 1, f"exit code, {where}")
    check(any(word in done.stderr for word in WORDS[what]), f"the reason, {where}")
    return False


def command_of(run, program):
    return [run.tool, probe_of(program), "-q", "-c", "--", program, "fire:3"]


def run_it(command, **how):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **how)


def write_no_threads(run):
    (run.dir / "no_threads.c").write_text(NO_THREADS)
    return run.dir / "no_threads.c"


@scenario
def too_few_descriptors_are_the_reason_given(run):
    require_root()
    program = puppet.build(run)
    command = command_of(run, program)
    worked = [judge("descriptors", most, run_it(command, preexec_fn=limited(resource.RLIMIT_NOFILE, most)))
              for most in [*range(10, 34, 2), 40, 60, 80, 100, 200]]
    check(worked[-1] and not worked[0], f"some are enough and some are not: {worked}")
    check_equal(worked, sorted(worked), "what works with few works with more")


@scenario
def too_few_threads_are_the_reason_given(run):
    require_root()
    program = puppet.build(run)
    library = run.build("no_threads.so", [write_no_threads(run)], ["-O1", "-shared", "-fPIC"], libs=["-ldl"])
    worked = []
    for first in range(12):
        command = ["env", f"LD_PRELOAD={library}", f"FIRST={first}", *command_of(run, program)[:-2], "env", "-u", "LD_PRELOAD", program, "fire:3"]
        worked.append(judge("threads", first, run_it(command)))
    check(worked[-1] and not worked[0], f"some are enough and some are not: {worked}")


@scenario
def too_little_memory_is_the_reason_given(run):
    require_root()
    program = puppet.build(run)
    command = command_of(run, program)
    worked = []
    for megabytes in [*range(20, 90, 5), 150, 1000]:
        # What is below is not enough for the dynamic linker.
        done = run_it(command, preexec_fn=limited(resource.RLIMIT_AS, megabytes * MIB))
        if "error while loading shared libraries" in done.stderr:
            continue
        worked.append(judge("memory", megabytes, done))
    check(worked[-1] and not worked[0], f"some is enough and some is not: {worked}")


# --- usdt-list, which looks for what it can with several threads ----------------------------------------------------------


def lists_of(run, program):
    """Ways to list: probes and functions of a file, of a directory, and what a process has mapped."""
    tool = run.tool.parent / "usdt-list"
    process = run.start(program, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return {"probes": [tool, program], "functions": [tool, f"uprobe:{program}:*"], "of a library": [tool, "ucall:libc.so.6:str*"],
            "a directory": [tool, run.dir], "a process": [tool, "-p", process.pid], "a kernel": [tool, "kprobe:vfs_r*"]}


def check_listing(run, what, most_of, limit_of):
    """With each number, each way of listing: what it says is what it says with more, or why it does not."""
    require_root()
    program = puppet.build(run)
    for way, command in lists_of(run, program).items():
        command = [str(word) for word in command]
        whole = run_it(command)
        if whole.returncode != 0:
            continue  # this machine has none
        for most in most_of:
            done = run_it(**limit_of(most, command))
            if "error while loading shared libraries" in done.stderr:
                continue
            where = f"{what} {most}, {way}:\n{done.stdout[-2000:]}{done.stderr}"
            check(done.returncode >= 0, f"a signal ended the tool, {where}")
            check("terminate called" not in done.stderr, where)
            if any(word in done.stderr for word in WORDS[what]):
                check(done.returncode != 0, f"exit code of what is not whole, {where}")
            else:
                check_equal((done.returncode, done.stdout), (whole.returncode, whole.stdout), f"all, or why not, {where}")


@scenario
def lists_with_too_few_descriptors_are_whole_or_say_so(run):
    check_listing(run, "descriptors", range(4, 40, 2),
                  lambda most, command: {"command": command, "preexec_fn": limited(resource.RLIMIT_NOFILE, most)})


@scenario
def lists_with_too_few_threads_are_whole_or_say_so(run):
    library = run.build("no_threads.so", [write_no_threads(run)], ["-O1", "-shared", "-fPIC"], libs=["-ldl"])
    check_listing(run, "threads", range(4),
                  lambda first, command: {"command": ["env", f"LD_PRELOAD={library}", f"FIRST={first}", *command]})


@scenario
def lists_with_too_little_memory_are_whole_or_say_so(run):
    check_listing(run, "memory", [*range(20, 90, 5), 150],
                  lambda megabytes, command: {"command": command, "preexec_fn": limited(resource.RLIMIT_AS, megabytes * MIB)})


if __name__ == "__main__":
    main()
