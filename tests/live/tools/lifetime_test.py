#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a trace leaves behind (nothing), and how it ends: signals, limits, the child's end."""

import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, interrupt_all, main, scenario, wait_line, wait_until  # noqa: E402
from puppet import Puppet, check_beats, probe_of  # noqa: E402


@scenario
def semaphore_is_up_while_attached_and_down_after(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    check_equal(target.semaphore(), 0, "semaphore before")
    tracing = run.trace_start(probe_of(program))
    target.wait_attached()
    check_equal(target.semaphore(), 1, "semaphore while attached")
    target.order("fire:25")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    check_beats(result.events, range(25))
    result.check_accounted(25, lost=0)
    target.wait_clean()


@scenario
def sigkill_leaves_nothing_behind_and_the_program_runs_on(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    tracing = run.trace_start(probe_of(program))
    target.wait_attached()
    target.order("fire:1000")
    tracing.signal(signal.SIGKILL)
    check_equal(tracing.finish().code, -signal.SIGKILL, "exit of the killed tracer")
    target.wait_clean()
    target.order("fire:1000")
    target.send("exit:9")
    check_equal(target.process.wait(20), 9, "exit code of the program")


@scenario
def two_tracers_of_one_probe_do_not_disturb_each_other(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    first = run.trace_start(probe_of(program))
    target.wait_attached()
    second = run.trace_start(probe_of(program), "--max-events", 7)
    wait_until(lambda: "attached" in second.stderr(), "notice of the second tracer")
    check_equal(target.semaphore(), 1, "semaphore under two tracers: the kernel counts breakpoints, not tracers")
    target.order("fire:7")
    check_equal(len(second.finish().events), 7, "events of the second tracer")
    target.order("fire:3")
    first.signal(signal.SIGINT)
    check_beats(first.finish().events, range(10))
    target.wait_clean()


def end_by_signal(run, number):
    program = puppet.build(run)
    target = Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", target.pid)
    target.wait_attached()
    target.order("fire:5000")
    tracing.signal(number)
    result = tracing.finish(20)
    result.check_code(0)
    result.check_accounted(5000)
    target.wait_clean()


@scenario
def ctrl_c_drains_and_summarises(run):
    end_by_signal(run, signal.SIGINT)


@scenario
def sigterm_drains_and_summarises(run):
    end_by_signal(run, signal.SIGTERM)


def end_by_two_signals(run, seconds_between):
    """Of a trace whose end takes two seconds, since its command ignores SIGTERM."""
    program = puppet.build(run)
    notices = run.dir / "notices"
    up = run.dir / "up"
    command = ["sh", "-c", f"trap '' TERM; {program} fire:3; touch {up}; exec sleep 20"]  # may outlive the tracer that is ended at once
    with notices.open("w") as stderr:
        tracer = run.start(run.tool, probe_of(program), "--count", "--", *command, stdout=subprocess.DEVNULL, stderr=stderr)
    wait_until(up.exists, "the command")
    tracer.send_signal(signal.SIGINT)
    time.sleep(seconds_between)
    tracer.send_signal(signal.SIGINT)
    code = tracer.wait(10)
    return code, notices.read_text()


@scenario
def two_signals_at_once_are_one_as_timeout_sends_them_to_its_command_and_its_group(run):
    code, notices = end_by_two_signals(run, seconds_between=0.02)
    check_equal(code, 0, notices)
    check("hits counted" in notices, f"the account is there: {notices}")


@scenario
def a_second_ctrl_c_ends_the_tracer_at_once(run):
    code, notices = end_by_two_signals(run, seconds_between=0.5)
    check_equal(code, -signal.SIGINT, notices)


@scenario
def ctrl_c_at_a_terminal_ends_child_and_trace(run):
    program = puppet.build(run)
    tracing = run.trace_start(probe_of(program), command=[program, "fire:300", "pause:0"],
                              start_new_session=True)
    time.sleep(1.0)
    interrupt_all(tracing.process)
    result = tracing.finish(60)
    check(result.code in (0, 128 + signal.SIGINT), result.describe())
    result.check_accounted(300, lost=0)


@scenario
def a_reader_that_goes_away_ends_the_trace(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    argv = run.tool_argv(probe_of(program), ["-p", target.pid])
    tracer = run.start(*argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    target.wait_attached()
    target.order("fire:1")
    wait_line(tracer)
    tracer.stdout.close()
    target.order("fire:10")
    check(tracer.wait(20) in (0, 1), f"exit code {tracer.returncode} when nobody reads")
    target.wait_clean()


@scenario
def strict_exits_with_3_only_when_something_is_missing(run):
    program = puppet.build(run)
    run.trace(probe_of(program), "--strict", command=[program, "fire:3"]).check_code(0)
    unreadable = run.trace(probe_of(program), "--strict", "--print", "str(arg2)", command=[program, "fire:3"])
    unreadable.check_code(3)
    check("error" in unreadable.events[0]["args"][0], f"str() of a small number\n{unreadable.describe()}")


@scenario
def max_events_stops_at_the_limit(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", target.pid, "--max-events", 10)
    target.wait_attached()
    target.order("fire:500")
    result = tracing.finish(20)
    result.check_code(0)
    check_beats(result.events, range(10))
    result.check_accounted(result.summary["hits"])
    target.wait_clean()


@scenario
def duration_ends_the_trace(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    start = time.monotonic()
    tracing = run.trace_start(probe_of(program), "--duration", 1)
    target.wait_attached()
    target.order("fire:12")
    result = tracing.finish(20)
    took = time.monotonic() - start
    result.check_code(0)
    result.check_accounted(12, lost=0)
    check(0.95 <= took < 8, f"--duration 1 took {took:.2f} s")
    target.wait_clean()


@scenario
def end_of_the_traced_process_ends_the_trace(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", target.pid)
    target.wait_attached()
    target.send("fire:40")
    target.send("exit:0")
    result = tracing.finish(20)
    result.check_code(0)
    result.check_accounted(40, lost=0)


@scenario
def a_process_that_ends_while_it_is_being_attached_never_hangs_the_trace(run):
    program = puppet.build(run)
    for delay_ms in range(0, 120, 6):
        target = Puppet(run, program)
        tracing = run.trace_start(probe_of(program), "-p", target.pid)
        time.sleep(delay_ms / 1000)
        target.process.kill()
        target.process.wait()
        result = tracing.finish(15)
        check(result.code in (0, 1), result.describe())
        named = str(target.pid) in result.stderr
        check(result.code == 0 or named, f"the error does not name the process\n{result.describe()}")


if __name__ == "__main__":
    main()
