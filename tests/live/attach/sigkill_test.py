#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A tracer that is killed at any moment leaves no breakpoint and no semaphore in the programs it traced. A kernel that
puts breakpoints in place, or takes them out, for a task with a fatal signal gives up and leaks them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import many_sites  # noqa: E402
import puppet  # noqa: E402, F401  the directory of the modules below
from elf_view import Memory, notes  # noqa: E402
from harness import LONG, Skip, check, check_equal, main, require_root, require_x86_64, scenario, wait_line, wait_until  # noqa: E402

SITES = 3000
TRIALS = 200 if LONG else 20

WAITING = """
#include <stdio.h>
int pass(int);
int main(void) {
  char line[16];
  puts("up");
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin)) {
    pass(2);
    puts("passed");
    fflush(stdout);
  }
}
"""


class Target:
    """A program with many sites, each with a semaphore of its own, and its bytes as they were before any trace."""

    def __init__(self, run):
        require_root()
        require_x86_64()
        (run.dir / "sites.s").write_text(many_sites.assembly(SITES, entry="pass", semaphores=True))
        (run.dir / "waiting.c").write_text(WAITING)
        self.path = run.build("waiting", [run.dir / "sites.s", run.dir / "waiting.c"])
        self.process = run.start(self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        check_equal(wait_line(self.process), "up", "first line")
        self.sites = notes(self.path)
        check_equal(len(self.sites), SITES, "sites in the file, as readelf counts them")
        self.memory = Memory(self.process.pid, self.path)
        self.code = self._span([site.pc for site in self.sites], 1)
        self.counters = self._span([site.semaphore for site in self.sites], 2)
        self.before = self.now()

    def _span(self, addresses, size):
        return min(addresses), max(addresses) - min(addresses) + size

    def now(self):
        """Code and semaphores of all sites."""
        bias = self.memory._bias(self.sites[0].pc)
        with open(f"/proc/{self.process.pid}/mem", "rb", buffering=0) as memory:
            parts = []
            for start, size in (self.code, self.counters):
                memory.seek(start + bias)
                parts.append(memory.read(size))
        return parts

    def attached(self):
        """Number of breakpoints."""
        code = self.now()[0]
        return sum(code[site.pc - self.code[0]] == 0xCC for site in self.sites)

    def check_clean(self, what):
        """Tasks that end have no memory any more when they take breakpoints out: they are waited for by what they do."""
        wait_until(lambda: self.attached() == 0, f"breakpoints left, {what}")
        check(self.now() == self.before, f"code or semaphores are not as before, {what}")

    def check_alive(self):
        self.process.stdin.write(b"go\n")
        check_equal(wait_line(self.process), "passed", "answer of the traced program")


class KernelLog:
    """What the kernel says from now on; nothing where its log cannot be read."""

    def __init__(self):
        self.fd = None
        with contextlib.suppress(OSError):
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)

    def leaks(self):
        found = []
        while self.fd is not None:
            try:
                record = os.read(self.fd, 8192)
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            except BlockingIOError:
                break
            if b"leaking uprobe" in record:
                found.append(record)
        return found


def tasks_of(mark):
    """Processes that run in the memory of a tracer with this mark in its environment, dead ones aside."""
    found = []
    for directory in pathlib.Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if mark in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            pass
    return found


class Trial:
    """One tracer of all sites."""

    count = 0

    def __init__(self, run, target, cgroup):
        Trial.count += 1
        self.cgroup = cgroup
        self.mark = f"USDT_TEST_MARK={os.getpid()}-{Trial.count}"
        name, value = self.mark.split("=")
        argv = run.tool_argv(f"usdt:{target.path}:many:*", ["--quiet"])
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, name: value},
                                        preexec_fn=cgroup.enter if cgroup else None)

    def kill(self):
        if self.cgroup:
            self.cgroup.kill()
        else:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        # What the kernel was doing for it is done by a task of its own, which ends as soon as that is done.
        wait_until(lambda: not tasks_of(self.mark.encode()), "end of the killed tracer's tasks")
        if self.cgroup:
            self.cgroup.remove()


class Cgroup:
    """A cgroup of a trial's own, whose tasks are killed all at once, as service managers do when a unit is to end."""

    count = 0

    def __init__(self):
        Cgroup.count += 1
        mounts = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        trees = [fields[4] for fields in mounts if fields[3] == "/" and "cgroup2" in fields[fields.index("-"):]]
        if not trees:
            raise Skip("no cgroup v2 here")
        self.path = pathlib.Path(trees[0]) / f"usdt-test-{os.getpid()}-{Cgroup.count}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise Skip(f"no cgroup can be made: {error}")
        if not (self.path / "cgroup.kill").exists():
            self.path.rmdir()
            raise Skip("this kernel has no cgroup.kill (5.14)")

    def enter(self):
        (self.path / "cgroup.procs").write_text("0")

    def kill(self):
        (self.path / "cgroup.kill").write_text("1")

    def remove(self):
        wait_until(lambda: "populated 0" in (self.path / "cgroup.events").read_text(), "an empty cgroup")
        self.path.rmdir()


def spread(most_ms):
    """TRIALS moments from 0 to most_ms."""
    return [most_ms * i / TRIALS for i in range(TRIALS)]


def kill_while_attaching(run, cgroup=lambda: None):
    target = Target(run)
    log = KernelLog()
    start = time.monotonic()
    trial = Trial(run, target, cgroup())
    wait_until(lambda: target.attached() == SITES, "all sites attached", every=0.001)
    whole_ms = (time.monotonic() - start) * 1e3
    trial.kill()
    target.check_clean("killed when attached")
    halfway = 0
    for ms in spread(1.2 * whole_ms):
        trial = Trial(run, target, cgroup())
        time.sleep(ms / 1e3)
        halfway += 0 < target.attached() < SITES
        trial.kill()
        target.check_clean(f"killed {ms:.1f} ms after the start")
    print(f"  attached after {whole_ms:.0f} ms; {TRIALS} trials, {halfway} of them found some of the sites attached")
    target.check_alive()
    check_equal(log.leaks(), [], "leaks in the kernel's log")


def kill_while_detaching(run, cgroup=lambda: None):
    target = Target(run)
    log = KernelLog()
    for ms in spread(80):
        trial = Trial(run, target, cgroup())
        wait_until(lambda: target.attached() == SITES, "all sites attached", every=0.001)
        trial.process.send_signal(signal.SIGTERM)
        time.sleep(ms / 1e3)
        trial.kill()
        target.check_clean(f"killed {ms:.1f} ms after SIGTERM")
    target.check_alive()
    check_equal(log.leaks(), [], "leaks in the kernel's log")


@scenario
def killed_at_any_moment_of_attaching_it_leaves_nothing(run):
    kill_while_attaching(run)


@scenario
def killed_at_any_moment_of_detaching_it_leaves_nothing(run):
    kill_while_detaching(run)


@scenario
def killed_with_its_cgroup_at_any_moment_of_attaching_it_leaves_nothing(run):
    kill_while_attaching(run, Cgroup)


@scenario
def killed_with_its_cgroup_at_any_moment_of_detaching_it_leaves_nothing(run):
    kill_while_detaching(run, Cgroup)


@scenario
def in_a_cgroup_that_was_killed_before_it_attaches_all_the_same(run):
    target = Target(run)
    cgroup = Cgroup()
    cgroup.kill()
    trial = Trial(run, target, cgroup)
    wait_until(lambda: target.attached() == SITES, "all sites attached")
    trial.kill()
    target.check_clean("killed when attached")


if __name__ == "__main__":
    main()
