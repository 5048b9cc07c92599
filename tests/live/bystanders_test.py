#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who is not traced pays nothing: breakpoints are in the memory of the traced processes alone, and in all of theirs."""

import signal
import statistics
import subprocess
import sys

import puppet
from harness import check, main, require_root, scenario, wait_line, wait_until

MALLOC = "uprobe:libc.so.6:malloc"


def nanoseconds(bystander):
    return int(subprocess.run([bystander, "20000"], capture_output=True, text=True, check=True, timeout=60).stdout)


def check_nobody_pays(run, *options, command=None):
    """In the median of pairs: a trap takes a malloc from 10 ns to a microsecond."""
    bystander = run.build("bystander", [puppet.HERE / "bystander.c"], ["-O1"])
    alone = [nanoseconds(bystander) for _ in range(15)]
    tracing = run.trace_start([MALLOC], "--count", *options, command=command)
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check("1 site of 1 probe" in tracing.stderr(), tracing.stderr())
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    ratios = [nanoseconds(bystander) / statistics.median(alone) for _ in range(15)]
    check(statistics.median(ratios) < 2, f"times of the bystander, to those untraced: {ratios}\n{tracing.stderr()}")
    return tracing


def idle(run):
    return run.start("/bin/sh", "-c", "sleep 60 & sleep 60; true")


@scenario
def of_a_command_nobody_else_has_breakpoints(run):
    require_root()
    check_nobody_pays(run, command=["/bin/sleep", "60"]).signal(signal.SIGINT)


@scenario
def of_a_process_and_its_children_nobody_else_has_breakpoints(run):
    require_root()
    check_nobody_pays(run, "-p", idle(run).pid).signal(signal.SIGINT)
    check_nobody_pays(run, "-p", idle(run).pid, "--children").signal(signal.SIGINT)


@scenario
def where_others_pay_that_is_said(run):
    require_root()
    tracing = run.trace_start([MALLOC], "--count", "--max-overhead", "50", command=["/bin/sleep", "60"])
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check("pay for each hit: with a limited overhead" in tracing.stderr(), tracing.stderr())
    tracing.signal(signal.SIGINT)


def build_family(run):
    return run.build("family", [puppet.HERE / "family.c"], ["-O1"], libs=["-lpthread"])


def calls(run):
    """As the processes counted them, in memory they share."""
    return int.from_bytes((run.dir / "calls").read_bytes()[:8], sys.byteorder)


@scenario
def whatever_a_command_forks_clones_and_executes_is_counted(run):
    require_root()
    program = build_family(run)
    for rounds in (1, 400):
        result = run.trace(f"uprobe:{program}:serve", command=[program, str(rounds), run.dir / "calls"])
        check("pay for each hit" not in result.stderr, result.describe())
        check(calls(run) > rounds, result.describe())
        result.check_accounted(calls(run), lost=0)


@scenario
def whatever_children_of_a_process_fork_is_counted(run):
    require_root()
    program = build_family(run)
    process = run.start(program, "400", run.dir / "calls", "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    tracing = run.trace_start(f"uprobe:{program}:serve", "-p", process.pid, "--children")
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    process.stdin.write(b"\n")
    wait_line(process, timeout=60)
    tracing.signal(signal.SIGINT)
    tracing.finish().check_accounted(calls(run), lost=0)


@scenario
def nothing_is_left_of_a_tracer_that_was_killed(run):
    require_root()
    tracing = run.trace_start([MALLOC], "--count", command=["/bin/sleep", "60"])
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    groups = family_groups()
    check(groups, "it defined trace events")
    tracing.signal(signal.SIGKILL)
    tracing.process.wait()
    check_nobody_pays(run, command=["/bin/sleep", "60"]).signal(signal.SIGINT)
    wait_until(lambda: not groups & family_groups(), "what it defined is gone")


def family_groups():
    """Groups of trace events, in the tracefs of a mount namespace of its own."""
    at = "/sys/kernel/tracing"
    show = f"test -e {at}/events || mount -t tracefs nodev {at}; ls {at}/events"
    done = subprocess.run(["unshare", "-m", "sh", "-c", show], capture_output=True, text=True, timeout=60, check=True)
    return {name for name in done.stdout.split() if name.startswith("usdt_family_")}


if __name__ == "__main__":
    main()
