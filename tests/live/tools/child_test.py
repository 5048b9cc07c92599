#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A command started under the tracer: its exit code, its threads, its children, its word size."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Tracing, check, check_equal, main, require_m32, require_program, scenario, wait_until  # noqa: E402
from puppet import check_beats, probe_of  # noqa: E402

M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]


@scenario
def exit_code_of_the_child_is_passed_on(run):
    program = puppet.build(run)
    for code in (0, 1, 7, 255):
        result = run.trace(probe_of(program), command=[program, "fire:3", f"exit:{code}"])
        result.check_code(code)
        result.check_accounted(3, lost=0)


@scenario
def death_of_the_child_by_a_signal_is_128_plus_its_number(run):
    program = puppet.build(run)
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
        result = run.trace(probe_of(program), command=[program, "fire:3", f"die:{int(number)}"])
        result.check_code(128 + number)
        result.check_accounted(3, lost=0)


@scenario
def command_that_cannot_run_is_named(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), command=["/nonexistent/command"])
    check(result.code in (1, 2, 126, 127), result.describe())
    check("/nonexistent/command" in result.stderr, f"the command is not named\n{result.describe()}")


@scenario
def the_command_is_executed_once_wherever_it_is_on_the_path(run):
    puppet.require_root()
    directory = run.dir / "last"
    directory.mkdir()
    (directory / "a-command").symlink_to("/bin/true")
    path = f"{run.dir}/none:{run.dir}/neither:{directory}"
    done = subprocess.run([run.tool, "uprobe:libc.so.6:exec*", "uprobe:libc.so.6:getenv", "--by", "comm, str(arg0)", "--", "a-command"],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})
    check_equal(done.returncode, 0, done.stderr)
    check(f'"{directory}/a-command"' in done.stdout, f"it is executed:\n{done.stdout}")
    check("PATH" not in done.stdout and "/none/" not in done.stdout, f"it is not looked for again:\n{done.stdout}")


@scenario
def nothing_found_in_a_script_names_the_program_that_runs_it(run):
    puppet.require_root()
    script = run.dir / "script.sh"
    script.write_text("#!/bin/sh\n:\n")
    script.chmod(0o755)
    result = run.trace("nosuch:probe", command=[script])
    check(f"{script}, which /bin/sh runs, and its libraries" in result.stderr, result.describe())
    check("--wait --hold-exec" in result.stderr, f"that what it starts can be meant\n{result.describe()}")


@scenario
def first_and_last_hit_of_a_short_child_are_seen(run):
    program = puppet.build(run)
    for _ in range(10):
        result = run.trace(probe_of(program), command=[program, "fire:1"])
        result.check_code(0)
        check_beats(result.events, [0])
        result.check_accounted(1, lost=0)


@scenario
def output_of_the_child_is_its_own(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), command=["sh", "-c", f"echo to-stdout; echo to-stderr >&2; {program} fire:2"])
    check("to-stdout" in result.stdout.splitlines(), f"standard output of the child\n{result.describe()}")
    check("to-stderr" in result.stderr.splitlines(), f"standard error of the child\n{result.describe()}")
    result.check_accounted(2, lost=0)


@scenario
def threads_are_seen_each_in_its_own_order(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), command=[program, "threads:8:1000"])
    result.check_code(0)
    result.check_accounted(8000, lost=0)
    by_tid = {}
    for event in sorted(result.events, key=lambda event: event["ts"]):
        by_tid.setdefault(event["tid"], []).append(event["args"][0])
    check_equal(sorted(len(numbers) for numbers in by_tid.values()), [1000] * 8, "hits per thread")
    check_equal(all(numbers == sorted(numbers) for numbers in by_tid.values()), True, "order within each thread")
    check_equal(sorted(sum(by_tid.values(), [])), list(range(8000)), "each beat once")


@scenario
def children_of_the_child_are_followed(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), command=[program, "fire:5", "fork:100", "fire:5"])
    result.check_code(0)
    result.check_accounted(110, lost=0)
    check_equal(len({event["pid"] for event in result.events}), 2, "processes seen")
    command = ["sh", "-c", f"{program} fire:5; ({program} fire:6 & wait); sh -c '{program} fire:7'; exit 3"]
    result = run.trace(probe_of(program), command=command)
    result.check_code(3)
    result.check_accounted(18, lost=0)


# Forks a chain of children, each of which waits for its own; what the last one does is the command behind the number.
CHAIN = """
import os, sys
for generation in range(int(sys.argv[1])):
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""


@scenario
def descendants_of_any_generation_are_followed(run):
    program = puppet.build(run)
    for generations in (1, 62, 63, 64, 65, 200):
        result = run.trace(probe_of(program), command=["python3", "-c", CHAIN, generations, program, "fire:5"])
        result.check_code(0)
        result.check_accounted(5, lost=0)


@scenario
def a_descendant_whose_first_thread_has_ended_or_that_execs_from_another_is_followed(run):
    program = puppet.build(run)
    script = ("import threading, os, sys, time\n"
              "def other(): time.sleep(0.1); os.execv(sys.argv[2], sys.argv[2:])\n"
              "threading.Thread(target=other).start()\n"
              "threading.Event().wait()\n")
    chain = CHAIN.replace("os.execv(sys.argv[2], sys.argv[2:])\n", script)
    result = run.trace(probe_of(program), command=["python3", "-c", chain, 70, program, "fire:5", "fork:4"])
    result.check_code(0)
    result.check_accounted(9, lost=0)


@scenario
def children_are_followed_inside_a_pid_namespace(run):
    require_program("unshare")
    program = puppet.build(run)
    command = ["sh", "-c", f"{program} fire:3; {program} fork:4; exit 6"]
    argv = ["unshare", "--pid", "--fork", "--mount-proc", *run.tool_argv(probe_of(program), [], command)]
    stranger = puppet.Puppet(run, program)
    tracing = Tracing(argv, run.dir)
    stranger.order("fire:2")
    result = tracing.finish()
    check_equal("not its children" in result.stderr, False, f"it gave up\n{result.describe()}")
    result.check_code(6)
    result.check_accounted(7, lost=0)


@scenario
def only_the_child_and_its_children_are_seen(run):
    program = puppet.build(run)
    stranger = puppet.Puppet(run, program)
    tracing = run.trace_start(probe_of(program), command=[program, "watch:0", "fire:10"])
    for _ in range(50):
        stranger.order("fire:2")
    result = tracing.finish()
    check_equal(stranger.pid in {event["pid"] for event in result.events}, False, "a stranger's events are shown")
    check_equal(len(result.events), 10, "events of the child")


@scenario
def a_32_bit_child_is_traced(run):
    require_m32()
    program = puppet.build(run, flags=M32)
    result = run.trace(probe_of(program), command=[program, "fire:200", "fork:10"])
    result.check_code(0)
    result.check_accounted(210, lost=0)
    check_equal([args[0] for args in puppet.beats(result.events)], [*range(200), *range(200, 210)], "beats")


@scenario
def the_perf_event_backend_sees_the_same(run):
    program = puppet.build(run)
    command = [program, "fire:200", "fork:10", "exit:4"]
    result = run.trace(probe_of(program), "--backend", "perf_uprobe", command=command)
    result.check_code(4)
    result.check_accounted(210, lost=0)
    check_equal([args[0] for args in puppet.beats(result.events)], [*range(200), *range(200, 210)], "beats")


@scenario
def no_follow_keeps_to_the_command_itself(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), "--no-follow", command=[program, "fire:5", "fork:100", "fire:5"])
    result.check_code(0)
    check_beats(result.events, range(10))


def running(token):
    """Processes with `token` in their environment, however they are related."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and token.encode() in (entry / "environ").read_bytes():
                if "Z" != (entry / "stat").read_text().rpartition(")")[2].split()[0]:
                    found.append(int(entry.name))
    return found


@scenario
def what_ends_a_trace_early_ends_everything_the_command_started(run):
    program = puppet.build(run)
    script = f"(sleep 300 &) ; setsid sleep 300 & sh -c 'trap \"\" TERM; {program} fire:9; sleep 300; sleep 300' & wait"
    for number, end in enumerate((["-d", "1"], ["-M", "5"], "interrupt")):
        token = f"USDT_TEST_TOKEN={run.dir.name}-{number}"
        command = ["env", token, "sh", "-c", script]
        tracing = run.trace_start(probe_of(program), *(["-d", "60"] if end == "interrupt" else end), command=command)
        wait_until(lambda: len(running(token)) > 4 or not tracing.alive(), "the command's children")
        if end == "interrupt":
            tracing.signal(signal.SIGINT)
        result = tracing.finish(30)
        result.check_code(0)
        check_equal(running(token), [], f"processes of the command after {end}\n{result.describe()}")


@scenario
def what_a_command_leaves_behind_when_it_ends_by_itself_stays(run):
    program = puppet.build(run)
    token = f"USDT_TEST_TOKEN={run.dir.name}-left"
    command = ["env", token, "sh", "-c", f"sleep 60 >/dev/null 2>&1 & {program} fire:3; exit 6"]
    run.trace(probe_of(program), command=command).check_code(6)
    left = running(token)
    check_equal(len(left), 1, "processes left in the background")
    os.kill(left[0], signal.SIGKILL)


@scenario
def a_command_that_ended_first_gives_its_code_whatever_the_limit(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), "-d", 60, "-M", 1000, command=["sh", "-c", f"{program} fire:3; exit 5"])
    result.check_code(5)


@scenario
def a_question_that_is_refused_ends_the_command_that_waits_for_it_at_once(run):
    program = puppet.build(run)
    began = time.monotonic()
    result = run.trace(probe_of(program), "--where", "arg99 == 1", command=["/bin/sh", "-c", f"touch {run.dir}/ran"])
    took = time.monotonic() - began
    result.check_code(2)
    check("arg99" in result.stderr, result.describe())
    check(took < 2, f"it took {took:.1f} s")  # as long as a command that runs is given to end
    check(not (run.dir / "ran").exists(), "the command has run")


@scenario
def a_trace_without_a_command_behind_the_dashes_is_refused(run):
    tracing = run.start(run.tool, "puppet:beat", "--", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check_equal(tracing.wait(10), 2, "exit code")
    check("no command behind --" in tracing.stderr.read(), "why is not said")


@scenario
def numbers_that_cannot_be_meant_are_refused(run):
    program = puppet.build(run)
    for option, value in (("-M", "-1"), ("-M", "0"), ("-M", "9" * 20), ("-M", "5x"), ("-d", "-1"), ("-d", "1e99"),
                          ("-p", "0"), ("-p", "-4")):
        result = run.trace(probe_of(program), option + value)
        result.check_code(2)
        check(f"'{value}'" in result.stderr, f"{option} {value}\n{result.describe()}")


@scenario
def the_command_gets_signals_as_the_tracer_found_them(run):
    program = puppet.build(run)
    for ignored in ([], [signal.SIGINT], [signal.SIGPIPE, signal.SIGTERM], [signal.SIGHUP, signal.SIGUSR1]):
        def ignore(numbers=ignored):
            for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN if number in numbers else signal.SIG_DFL)

        result = run.trace(probe_of(program), command=["grep", "SigIgn", "/proc/self/status"], preexec_fn=ignore)
        seen = int(result.stdout.splitlines()[0].split()[1], 16)
        check_equal(seen, sum(1 << (number - 1) for number in ignored), f"ignored in the command, of {ignored}")


@scenario
def nohup_outlives_the_terminal(run):
    program = puppet.build(run)
    target = puppet.Puppet(run, program)
    for started, ends in ((["nohup"], False), ([], True)):
        argv = [*started, *run.tool_argv(probe_of(program), ["-p", target.pid])]
        tracer = run.start(*argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        target.wait_attached()
        tracer.send_signal(signal.SIGHUP)
        if ends:
            check_equal(tracer.wait(20), 0, "exit code after SIGHUP")
        else:
            time.sleep(0.5)
            check(tracer.poll() is None, "SIGHUP ended a trace under nohup")
            tracer.send_signal(signal.SIGINT)
            check_equal(tracer.wait(20), 0, "exit code after SIGINT")
        target.wait_clean()


if __name__ == "__main__":
    main()
