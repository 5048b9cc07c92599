#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whose processes are traced from when they start: those of a cgroup, and those held at their start. The programs count
themselves what they do."""

import collections
import contextlib
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from follow_support import Later, attach, finish, followed, wait_followed, wait_let_go  # noqa: E402
from cgroup import Cgroup  # noqa: E402 (the harness is found by now)
from harness import check, check_equal, main, require_program, require_root, scenario, wait_line, wait_until, with_long  # noqa: E402

CONTAINER = "0123456789abcdef" * 4


def trace_cgroup(run, name, *options):
    """Hits of a program in a cgroup and outside, in one below it, and in another one made under the same name."""
    require_root()
    later, cgroup = Later(run), Cgroup(name)
    cgroup.make()
    inner = Cgroup(f"{name}/inner")
    try:
        tracing = attach(run, [f"usdt:{later.program}:late:own"], *options)
        subprocess.run([later.program, "100"], check=True)
        cgroup.run(later.program, 3)
        inner.make()
        inner.run(later.program, 4)
        inner.remove()
        cgroup.remove()
        wait_followed(tracing, 1)
        cgroup.make()
        wait_followed(tracing, 2)
        cgroup.run(later.program, 5)
        result = finish(tracing)
    finally:
        for each in (inner, cgroup):
            if each.path.exists():
                each.remove()
    result.check_accounted(3 + 4 + 5, lost=0)


@scenario
def processes_of_a_cgroup_are_traced_also_when_it_comes_again(run):
    name = f"usdt-test-{os.getpid()}"
    trace_cgroup(run, name, "--cgroup", name)


@scenario
def a_container_is_found_by_the_beginning_of_its_id(run):
    identifier = f"{os.getpid():012x}{CONTAINER}"[:64]
    trace_cgroup(run, f"docker-{identifier}.scope", "--container", identifier[:12])


class Children:
    """A process that starts copies of its program, and is traced with them."""

    def __init__(self, run, *options, copies=5):
        self.later = Later(run)
        self.copies = [run.dir / f"copy{n}" for n in range(copies)]
        for path in self.copies:
            shutil.copy(self.later.program, path)
        pid = self.later.start()
        self.tracing = attach(run, ["late:own"], "-p", pid, "--children", *options)

    def run(self, count):
        """Each copy `count` times."""
        for path in self.copies:
            check_equal(self.later.order("run", count, path), count, "programs that ended well")


@scenario
def what_following_has_to_say_in_the_end_is_a_line_each(run):
    children = Children(run, "--hold-exec", copies=0)
    time.sleep(0.05)  # inodes know to some milliseconds when they were made
    for n in range(2):
        children.copies.append(shutil.copy(children.later.program, run.dir / f"late{n}"))
    children.run(1)
    for path in children.copies:
        path.unlink()
    wait_let_go(children.tracing, 2)
    result = finish(children.tracing)
    ends = [line for line in result.stderr.splitlines() if re.match(r"  2 files let go when|  \d+ programs held at", line)]
    check_equal(len(ends), 2, result.stderr)
    check("\\n" not in result.stderr, result.stderr)


@scenario
def programs_held_at_their_start_are_seen_from_their_first_instruction(run):
    count = with_long(200, 40)
    children = Children(run, "--hold-exec")
    children.run(count)
    result = finish(children.tracing)
    print(*(line for line in result.stderr.splitlines() if " held at their start" in line))
    check("went on after a second" not in result.stderr, result.describe())
    check_equal({each["file"] for each in followed(result)}, {str(path) for path in children.copies}, result.describe())
    seen = collections.Counter(event["pid"] for event in result.events)
    check_equal((len(seen), set(seen.values())), (count * len(children.copies), {3}), result.describe())
    result.check_accounted(3 * count * len(children.copies), lost=0)


@scenario
def programs_are_held_once_the_tracer_says_that_it_has_attached(run):
    """Whatever the time is that it takes to be told of programs, here a fifth of a second."""
    require_program("strace")
    slow = run.dir / "slow"
    slow.write_text("#!/bin/sh\nexec strace -D -f -qq -o /dev/null -e trace=fanotify_init "
                    f"-e inject=fanotify_init:delay_enter=200000 {shlex.quote(str(run.tool))} \"$@\"\n")
    slow.chmod(0o755)
    run.tool = slow
    children = Children(run, "--hold-exec", copies=1)
    children.run(5)
    finish(children.tracing).check_accounted(3 * 5, lost=0)


@scenario
def a_tracer_that_is_killed_leaves_nothing_held(run):
    children = Children(run, "--hold-exec", copies=1)
    children.run(1)
    children.tracing.signal(signal.SIGSTOP)
    order = f"run 5 {children.copies[0]}\n".encode()
    children.later.process.stdin.write(order)
    ready, _, _ = select.select([children.later.process.stdout], [], [], 0.2)
    children.tracing.signal(signal.SIGKILL)
    check_equal(ready, [], "programs that ran while who holds them did not")
    check_equal(int(wait_line(children.later.process)), 5, "programs that ended well")


@scenario
def a_tracer_that_is_stopped_holds_nothing_for_long(run):
    """Not what it had read when it was stopped, nor what comes meanwhile; then it goes on as before."""
    children = Children(run, "--hold-exec", copies=1)
    children.run(1)
    children.tracing.signal(signal.SIGSTOP)
    new = [shutil.copy(children.later.program, run.dir / f"new{n}") for n in range(3)]
    started = time.monotonic()
    for path in new:
        children.later.process.stdin.write(f"run 2 {path}\n".encode())
    for _ in new:
        check_equal(int(wait_line(children.later.process, timeout=5)), 2, "programs that ended well")
    print(f"six programs ran after {time.monotonic() - started:.1f} s, while who holds them was stopped")
    children.tracing.signal(signal.SIGCONT)
    children.run(5)
    result = finish(children.tracing)
    check(re.search(r"[1-9]\d* programs? went on after a second", result.stderr), result.describe())
    # One more may be there yet, of a tracer that is ending; tests run beside each other.
    wait_until(lambda: not processes_named("usdt-keeper"), "processes that are left end", timeout=10)


@scenario
def a_program_in_memory_is_held_at_its_start(run):
    """memfd_create(2), fexecve(3): there is no file system to be told of it, its interpreter is what is held."""
    children = Children(run, "--hold-exec", copies=0)
    script = run.dir / "in_memory"
    script.write_text(
        f"#!{sys.executable}\nimport os\nfile = os.memfd_create('later')\n"
        f"os.write(file, open({str(children.later.program)!r}, 'rb').read())\n"
        "os.execve(file, ['later', '3'], os.environ)\n"
    )
    script.chmod(0o755)
    count = 5
    check_equal(children.later.order("run", count, script), count, "programs that ended well")
    result = finish(children.tracing)
    result.check_accounted(3 * count, lost=0)
    check_equal(set(collections.Counter(event["pid"] for event in result.events).values()), {3}, result.describe())


def processes_named(name):
    """Their numbers."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == name:
                found.append(path.parent.name)
    return found


@scenario
def ctrl_z_does_not_stop_who_holds_programs(run):
    children = Children(run, "--hold-exec", copies=1)
    children.run(1)
    # A process group without a parent in its session is stopped by no terminal, so that sending it may show nothing.
    status = pathlib.Path(f"/proc/{children.tracing.process.pid}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\s*(\w+)", status, re.M).group(1), 16)
    for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        check(ignored >> (number - 1) & 1, f"{number.name} would stop it")
    children.tracing.signal(signal.SIGTSTP)
    children.run(5)
    finish(children.tracing).check_accounted(3 * 6, lost=0)


if __name__ == "__main__":
    main()
