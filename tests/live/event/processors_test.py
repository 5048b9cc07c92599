#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts where /sys does not say how many processors there are: absent, or with less or more than the machine has, as
containers see it. The traced program's own number judges."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Result, Skip, check_equal, main, require_program, scenario  # noqa: E402
from puppet import probe_of  # noqa: E402

POSSIBLE = "/sys/devices/system/cpu/possible"
THREADS = 4
HITS = 5000  # of each

# What is mounted over what, before the tool runs: none of it is seen outside of its mount namespace.
VIEWS = {
    "one processor": f"mount --bind $fake {POSSIBLE}",
    "no such file": f"mount -t tmpfs none {os.path.dirname(POSSIBLE)}",
    "no /sys": "mount -t tmpfs none /sys",
}


def in_view(run, mounts, argv, said="0\n"):
    """The command line `argv` where /sys is as `mounts` make it."""
    fake = run.dir / "possible"
    fake.write_text(said)
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'fake={fake}; {mounts} && exec "$@"', "sh", *argv]


def require_several_processors():
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("one processor: nothing can be counted on another")


def traced(run, mounts, options, said="0\n"):
    """Runs the tool; returns its output, its hits and its events. The program's threads pass the probe on all processors
    at once."""
    program = run.dir / "puppet"
    command = ["sh", "-c", f"exec {program} threads:{THREADS}:{HITS} >/dev/null"]
    argv = run.tool_argv(probe_of(program), options, command)
    done = subprocess.run(in_view(run, mounts, argv, said), capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, f"exit code ({done.stderr[-1000:]})")
    return Result(done.returncode, done.stdout, done.stderr)


def setup(run):
    require_program("unshare", "mount")
    require_several_processors()
    puppet.build(run)


@scenario
def hits_are_counted_where_sys_says_nothing_of_processors(run):
    setup(run)
    for view, mounts in VIEWS.items():
        result = traced(run, mounts, ["--count"])
        check_equal(result.summary["hits"], THREADS * HITS, f"hits, {view}")


@scenario
def hits_are_counted_whatever_number_of_processors_is_claimed(run):
    setup(run)
    for said in ("0\n", "0-1023\n", "3-1\n", "0-99999999999\n", "\n", "", "x" * 4096):
        result = traced(run, VIEWS["one processor"], ["--count"], said)
        check_equal(result.summary["hits"], THREADS * HITS, f"hits where the file says {said[:20]!r}")


@scenario
def events_and_losses_add_up_where_sys_says_nothing_of_processors(run):
    setup(run)
    for view, mounts in VIEWS.items():
        for options in ([], ["--ring-size", "1"]):
            result = traced(run, mounts, options)
            result.check_accounted(THREADS * HITS)
            print(f"  {view}: {result.summary['events']} events, lost {result.summary['lost']}")


if __name__ == "__main__":
    main()
