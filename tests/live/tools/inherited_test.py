#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What whoever starts the tracer has set for its children: signals that are ignored or blocked, descriptors that are closed.

None of it may keep a trace from ending, or its command's exit code from us; and the command has it all as without us."""

import contextlib
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, require_root, scenario, wait_until  # noqa: E402
from puppet import probe_of  # noqa: E402

IGNORED = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ, signal.SIGTSTP)
BLOCKED = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM)
STATE = "grep -E 'Sig(Blk|Ign)' /proc/self/status"


def as_child(ignored=(), blocked=(), closed=()):
    """What is done in a child before exec."""
    def prepare():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for descriptor in closed:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    return prepare


def signals_of(text):
    return dict(re.findall(r"(SigBlk|SigIgn):\s*([0-9a-f]+)", text))


@scenario
def exit_code_of_the_command_is_known_whatever_is_ignored(run):
    require_root()
    program = puppet.build(run)
    for ignored in [(number,) for number in IGNORED] + [IGNORED]:
        result = run.trace(probe_of(program), command=["sh", "-c", f"{program} fire:3; exit 7"], timeout=30,
                           preexec_fn=as_child(ignored=ignored))
        result.check_code(7)
        result.check_accounted(3, lost=0)


@scenario
def command_has_the_signals_that_it_would_have_without_us(run):
    require_root()
    program = puppet.build(run)
    for ignored, blocked in (((), ()), (IGNORED, ()), ((), BLOCKED), (IGNORED, BLOCKED)):
        command = ["sh", "-c", STATE]
        prepare = as_child(ignored=ignored, blocked=blocked)
        alone = subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare, timeout=30, check=True)
        result = run.trace(probe_of(program), command=command, timeout=30, preexec_fn=prepare)
        check_equal(signals_of(result.stdout), signals_of(alone.stdout), f"with {ignored} ignored, {blocked} blocked")


@scenario
def blocked_signal_ends_a_trace_all_the_same(run):
    require_root()
    program = puppet.build(run)
    for number in (signal.SIGINT, signal.SIGTERM):
        trace = run.trace_start(probe_of(program), preexec_fn=as_child(blocked=BLOCKED))
        wait_until(lambda: "attached" in trace.stderr(), "the trace has begun")
        trace.signal(number)
        trace.finish(timeout=20).check_code(0)


@scenario
def closed_descriptors_are_nobody_elses(run):
    require_root()
    program = puppet.build(run)
    for count in (1, 2, 3):
        for closed in itertools.combinations((0, 1, 2), count):
            out = run.dir / "events.json"
            done = subprocess.run([run.tool, probe_of(program), "-f", "json", "-o", out, "--", program, "fire:3", "exit:7"],
                                  preexec_fn=as_child(closed=closed), timeout=30, check=False)
            check_equal(done.returncode, 7, f"without {closed}")
            lines = out.read_text().splitlines()
            check_equal(len([line for line in lines if '"type":"event"' in line]), 3, f"events without {closed}")
            check(all(line.startswith("{") for line in lines), f"nothing else is in the file, without {closed}: {lines}")


if __name__ == "__main__":
    main()
