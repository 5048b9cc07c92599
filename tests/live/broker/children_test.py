#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What processes start that a user traces through usdt-broker: it is traced once it is found, some milliseconds after its
start, and what was not seen is said.

Programs fire what they are told; each waits long enough to be found before it does, but where that is the test."""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import (ANNA, BERT, Changing, Service, as_user, build_changing, build_shared, own_program)  # noqa: E402
from harness import check, check_equal, main, scenario, wait_until  # noqa: E402
from puppet import Puppet, beats, probe_of  # noqa: E402

FOUND = 1.0  # seconds, in which a process is found and attached on any machine


def numbers(result):
    """The first numbers of the hits, by process."""
    by_process = {}
    for event in result.events:
        by_process.setdefault(event["pid"], []).append(event["args"][0])
    return sorted(by_process.values())


def shell(words):
    return ["--", "sh", "-c", words]


def count_from(count):
    return list(range(count))


@scenario
def what_a_command_starts_is_traced_from_its_first_hit_once_it_is_found(run):
    """A child that waits before it becomes the program has its links by then: no hit of the program is missed."""
    service = Service(run)
    program = own_program(run, ANNA)
    result = service.trace(ANNA, probe_of(program), *shell(
        f"(sleep {FOUND}; exec {program} fire:3) & (sleep {FOUND}; {program} fire:5) & wait; exec {program} fire:2"))
    result.check_code(0)
    # The program of the second shell is a child of its own, which is found while it runs, or when it has ended.
    seen = numbers(result)
    check(count_from(3) in seen and count_from(2) in seen, f"hits by process: {seen}")
    check("some milliseconds after it began" in result.stderr, result.stderr)
    started = result.summary["started"]
    check(started["attached"] >= 2, f"processes: {started}")
    check_equal(started["refused"], 0, f"processes: {started}")


@scenario
def orphans_of_a_command_are_found_too(run):
    service = Service(run)
    program = own_program(run, ANNA)
    result = service.trace(ANNA, probe_of(program), *shell(
        f"(sh -c '(sleep {FOUND}; exec {program} fire:4) & exit') ; sleep {2 * FOUND}"))
    result.check_code(0)
    check_equal(numbers(result), [count_from(4)], "hits by process")


@scenario
def children_of_a_process_are_traced_if_that_is_asked_for(run):
    service = Service(run)
    program = own_program(run, ANNA)
    traced = Puppet(run, program, argv=[*as_user(ANNA), program])
    tracing = service.start(ANNA, probe_of(program), "-p", traced.pid, "--children")
    check("some milliseconds after it began" in tracing.stderr(), tracing.stderr())
    traced.order("fire:2")
    child = traced.order("child:0")  # it hits 100 times a second
    wait_until(lambda: f'"pid":{child},' in tracing.stdout(), "a hit of the child")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal([n for n, *_ in beats(event for event in result.events if event["pid"] == traced.pid)], [0, 1], "its own hits")
    check_equal(result.summary["started"], {"attached": 1, "too_short": 0, "refused": 0}, "processes")
    alone = service.start(ANNA, probe_of(program), "-p", traced.pid)
    traced.order("fire:2")
    alone.signal(signal.SIGINT)
    result = alone.finish()
    check_equal({event["pid"] for event in result.events}, {traced.pid}, "processes that are traced without --children")
    check("started" not in result.summary, result.describe())


@scenario
def a_library_that_a_child_opens_is_attached_to_the_whole_family(run):
    """It comes while the trace runs, and is one part more of it."""
    service = Service(run)
    program, other = own_program(run, ANNA), own_program(run, ANNA, "other")
    result = service.trace(ANNA, "puppet:beat", "--wait", *shell(
        f"(sleep {FOUND}; {program} pause:0) & (sleep {FOUND}; {other} pause:0) & "
        f"(sleep {3 * FOUND}; exec {program} fire:3) & (sleep {3 * FOUND}; exec {other} fire:4) & "
        f"sleep {4 * FOUND}; kill 0"))
    result.check_code(0)
    seen = numbers(result)
    check(count_from(3) in seen and count_from(4) in seen, f"hits by process: {seen}\n{result.stderr}")


@scenario
def what_a_command_starts_that_is_somebody_elses_shows_nothing(run):
    """A setuid program is refused, or, where it was attached to while it was its user's, not looked at."""
    service = Service(run)
    library, plain = build_shared(run), build_changing(run)
    powerful = build_changing(run, "powerful", setuid=True)
    result = service.trace(ANNA, f"usdt:{library}:shared:hit", *shell(
        f"(sleep {FOUND}; echo fire:9:100 | {powerful}) & (sleep {FOUND}; echo fire:9:200 | exec {powerful}) & "
        f"(sleep {FOUND}; (sleep {FOUND}; echo fire:3:0) | {plain}) & wait"))
    result.check_code(0)
    check_equal(numbers(result), [count_from(3)], "hits by process")


@scenario
def another_users_process_beside_a_family_is_not_touched(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    other = Changing(run, program, BERT)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", *shell(f"sleep {3 * FOUND} & sleep {3 * FOUND}"))
    other.order("fire:1000:0")
    check(not other.attached(), "a breakpoint in another user's memory")
    tracing.process.wait(timeout=30)
    check_equal(tracing.finish().events, [], "events")


@scenario
def a_storm_of_short_processes_is_counted_and_keeps_nobody_from_being_found(run):
    """They live for 0 to 9 ms: on any machine some are seen, and gone before they are attached."""
    service = Service(run)
    program = own_program(run, ANNA)
    result = service.trace(ANNA, "--strict", probe_of(program), *shell(
        f"for i in $(seq 150); do {program} fire:1; sleep 0.00$((i % 10)); done; (sleep {3 * FOUND}; exec {program} fire:6) & wait"), timeout=120)
    started = result.summary["started"]
    check(started["too_short"] > 0, f"processes that live for some milliseconds: {started}\n{result.stderr}")
    check("ended before they could be attached" in result.stderr, result.stderr)
    check_equal(result.code, 3, "exit code of --strict where processes were not seen")
    check(count_from(6) in numbers(result), f"hits by process: {numbers(result)}")


@scenario
def links_of_processes_that_have_ended_are_given_back(run):
    """A connection may have a number of links in all; those at once, and what they hold, go with their processes."""
    service = Service(run)
    program = own_program(run, ANNA)
    tracing = service.start(ANNA, probe_of(program), *shell(f"for i in $(seq 60); do sleep 0.1; done; exec {program} fire:2"))

    def held():
        fds = pathlib.Path(f"/proc/{tracing.process.pid}/fd")
        return sum("bpf_link" in str(fd.readlink()) or "bpf-link" in str(fd.readlink()) for fd in fds.iterdir())

    most = 0
    while tracing.alive():
        try:
            most = max(most, held())
        except OSError:
            break
    result = tracing.finish()
    check_equal(numbers(result), [count_from(2)], "hits by process")
    check(result.summary["started"]["attached"] > 40, f"processes: {result.summary['started']}")
    check(most < 40, f"{most} links at once")


if __name__ == "__main__":
    main()
