#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs with very many files that have probes, as those that make providers while they run: each file is a link of
its own. Attaching and detaching take little for each, and a signal ends both."""

import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Skip, check, check_equal, main, require_root, scenario, wait_line, wait_until  # noqa: E402

PROVIDER = pathlib.Path(__file__).resolve().parents[3] / "provider"
MANY = 4000


class Many:
    """The program, with `count` files."""

    def __init__(self, run, count):
        require_root()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard != resource.RLIM_INFINITY and hard < 2 * count + 500:
            raise Skip(f"{count} files and their links are more descriptors than may be had: {hard}")
        sources = [puppet.HERE / "find/many_files.c", *sorted((PROVIDER / "src").glob("*.c"))]
        flags = ["-O1", "-D_GNU_SOURCE", f"-I{PROVIDER / 'include'}"]
        path = run.build("many_files", sources, flags, libs=["-pthread"])
        self.process = run.start(path, str(count), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        check_equal(wait_line(self.process, timeout=60), "up", "first line")
        self.pid = self.process.pid

    def fire(self):
        self.process.stdin.write(b"\n")
        check_equal(wait_line(self.process), "up", "answer")

    def breakpoints(self):
        """How many there are in the code of its files."""
        found = 0
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
                if "/memfd:" not in line or " r-xp " not in line:
                    continue
                begin, end = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
                memory.seek(begin)
                found += memory.read(end - begin).count(b"\xcc")
        return found


def start(run, many, *options, **popen):
    return run.trace_start("many*:*", "-p", many.pid, "--count", *options, **popen)


def attached(run, many, *options, **popen):
    tracing = start(run, many, *options, **popen)
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached", timeout=60)
    check(tracing.alive(), tracing.stderr())
    return tracing


def seconds_to_end(tracing):
    """From a signal on."""
    began = time.monotonic()
    tracing.signal(signal.SIGTERM)
    result = tracing.finish(60)
    took = time.monotonic() - began
    result.check_code(0)
    return took, result


def links_of(tracing):
    links = 0
    for descriptor in pathlib.Path(f"/proc/{tracing.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links += "bpf_link" in os.readlink(descriptor)
    return links


def processor_ticks(tracing):
    """In user and kernel mode, in hundredths of a second."""
    stat = pathlib.Path(f"/proc/{tracing.process.pid}/stat").read_text()
    return sum(map(int, stat.rsplit(") ")[-1].split()[11:13]))


def limited(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@scenario
def a_thousand_files_are_detached_in_less_than_a_second(run):
    many = Many(run, 1000)
    tracing = attached(run, many)
    many.fire()
    took, result = seconds_to_end(tracing)
    check_equal(result.summary["hits"], 1000, "hits")
    check(took < 1, f"it took {took:.2f} s to detach 1,000 files")
    many.fire()


@scenario
def a_signal_while_thousands_of_files_are_attached_ends_that(run):
    many = Many(run, MANY)
    tracing = start(run, many)
    wait_until(lambda: links_of(tracing) >= 200, "200 links", timeout=60, every=0.02)
    took, result = seconds_to_end(tracing)
    check("attached " not in result.stderr, "all was attached before the signal came")
    check("nothing was traced" in result.stderr, result.stderr)
    check(took < 2, f"it took {took:.2f} s to end")
    many.fire()


@scenario
def a_soft_limit_of_descriptors_is_raised(run):
    many = Many(run, 1000)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    tracing = attached(run, many, preexec_fn=limited(256, hard))
    many.fire()
    check_equal(seconds_to_end(tracing)[1].summary["hits"], 1000, "hits")


@scenario
def too_few_descriptors_are_said_before_anything_is_attached(run):
    many = Many(run, 1000)
    began = time.monotonic()
    result = start(run, many, preexec_fn=limited(1500, 1500)).finish(60)
    took = time.monotonic() - began
    check_equal(result.code, 1, result.stderr)
    check("1000 links and what is opened on the way need 1064 descriptors, and " in result.stderr, result.stderr)
    check(took < 5, f"it took {took:.2f} s to say so")
    many.fire()


@scenario
def sealed_files_are_not_looked_at_again_and_again(run):
    many = Many(run, MANY)
    tracing = attached(run, many)
    time.sleep(0.5)
    before = processor_ticks(tracing)
    time.sleep(3)
    ticks = processor_ticks(tracing) - before
    check(ticks <= 18, f"{ticks} hundredths of a second of processor time in three seconds without a hit")
    seconds_to_end(tracing)  # of one that is killed the kernel closes the links one after the other: for minutes


@scenario
def that_detaching_takes_a_while_is_said_and_a_second_signal_does_not_wait_for_it(run):
    many = Many(run, MANY)
    tracing = attached(run, many)
    check_equal(many.breakpoints(), MANY, "breakpoints")
    tracing.signal(signal.SIGTERM)
    wait_until(lambda: f"detaching {MANY} files" in tracing.stderr(), "notice")
    time.sleep(0.15)  # signals within a tenth of a second are one
    began = time.monotonic()
    tracing.signal(signal.SIGTERM)
    tracing.finish()
    took = time.monotonic() - began
    check(took < 0.5, f"it took {took:.2f} s to end after the second signal")
    wait_until(lambda: many.breakpoints() == 0, "tasks that are not the tracer's go on", timeout=60, every=0.1)
    many.fire()


if __name__ == "__main__":
    main()
