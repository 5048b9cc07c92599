#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A tracer of everybody does not trace itself: neither its process, nor the tasks and the keeper that it starts."""

import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, require_root, scenario, wait_until  # noqa: E402

WRITE = "uprobe:libc.so.6:write"


def build_writer(run):
    """Writes, slowly, until it is killed."""
    return run.build("writer", [puppet.HERE / "attach/writer.c"], ["-O1"])


def attached(tracing):
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check(tracing.alive(), tracing.stderr())


def own_pids(tracing):
    """The tracer and what it started to help it."""
    pids = {tracing.process.pid}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if int(words[1]) == tracing.process.pid:
            pids.add(int(stat.parent.name))
    return pids


def check_not_itself(run, probe, *options, seconds=1.5):
    """Everybody is traced, another process is seen, and none of the tracer's own."""
    writer = run.start(build_writer(run), stdout=subprocess.DEVNULL)
    name = "usdt-itself"  # of the tracer and its tasks; other tracers of the machine are no business of this test
    (run.dir / name).symlink_to(run.tool)
    run.tool = run.dir / name
    tracing = run.trace_start(probe, *options)
    attached(tracing)
    own = own_pids(tracing)
    time.sleep(seconds)
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    itself = [event for event in result.events if event["pid"] in own or event["comm"] == name]
    check_equal(itself[:3], [], f"{len(itself)} of {len(result.events)} events are of the tracer itself")
    seen = [event for event in result.events if event["pid"] == writer.pid]
    check(len(seen) > 20 * seconds, f"{len(seen)} events of the other process\n{result.describe()}")
    return result


@scenario
def a_function_that_it_prints_by(run):
    require_root()
    check_not_itself(run, WRITE)


@scenario
def a_function_that_it_prints_by_with_values_and_stacks(run):
    """The widest programs."""
    require_root()
    check_not_itself(run, "ucall:libc.so.6:write", "--ustack")


@scenario
def functions_that_its_tasks_and_its_keeper_would_call(run):
    require_root()
    result = check_not_itself(run, ["uprobe:libc.so.6:syscall", "uprobe:libc.so.6:poll", WRITE], "--wait", "--hold-exec")
    check("held" in result.stderr or result.summary, result.describe())


@scenario
def a_tracepoint_of_the_kernel(run):
    require_root()
    check_not_itself(run, "raw_tp:sys_enter")


@scenario
def children_of_a_process_that_started_it(run):
    require_root()
    check_not_itself(run, WRITE, "-p", os.getpid(), "--children")


if __name__ == "__main__":
    main()
