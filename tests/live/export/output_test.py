#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where the lines of a trace go: full disks, closed and slow and absent readers. An event counts as delivered when its
line was written, and every other is counted as lost; the judge is what can be read at the other end."""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, scenario, wait_until  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402

LEDGER = re.compile(r"^(\d+) events? of (\d+) hits?; lost: (.*)$", re.M)


def ledger(stderr):
    """(delivered, hits, {reason: lost}) of the last line of a trace."""
    found = LEDGER.search(stderr)
    check(found, f"no ledger in: {stderr[-1000:]}")
    lost = {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", found[3])}
    return int(found[1]), int(found[2]), lost


def check_ledger(stderr, written, hits=None):
    """`written` whole event lines arrived, and the ledger knows it. Hits are not foreknown where failing output ends the
    trace early."""
    delivered, counted, lost = ledger(stderr)
    check_equal(delivered, written, f"events in the ledger, and event lines that arrived\n{stderr[-800:]}")
    check_equal(delivered + sum(lost.values()), counted, f"delivered + lost {lost}")
    check(lost.get("not_written", 0) > 0 if hits is None else counted == hits, f"not {hits} hits:\n{stderr[-800:]}")
    return lost


def events_in(text):
    """Event lines that are whole."""
    return sum(json.loads(line)["type"] == "event"
               for line in text.splitlines(keepends=True) if line.startswith("{") and line.endswith("\n"))


def trace_to(run, stdout, *options, hits=2000, stderr=subprocess.PIPE, output="json", **popen):
    program = puppet.build(run)
    argv = run.tool_argv(probe_of(program), options, [program, f"fire:{hits}"], output)
    done = subprocess.run(argv, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, timeout=60, text=True, **popen)
    return done.returncode, done.stderr


@scenario
def events_have_the_time_of_day_beside_the_monotonic_one(run):
    before = time.time_ns()
    with open(run.dir / "out", "w+", encoding="utf-8") as out:
        trace_to(run, out, hits=3)
    after = time.time_ns()
    lines = [json.loads(line) for line in (run.dir / "out").read_text().splitlines() if line.startswith("{")]
    events = [line for line in lines if line["type"] == "event"]
    check_equal(len(events), 3, "events")
    for event in events:
        second, nanoseconds = event["time"].removesuffix("Z").split(".")
        day = datetime.datetime.fromisoformat(second).replace(tzinfo=datetime.timezone.utc)
        shown = int(day.timestamp()) * 10**9 + int(nanoseconds)
        check(before <= shown <= after, f"{event['time']} is not between {before} and {after}")
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        check(abs(shown - event["ts"] - offset) < 10**8, f"{event['time']} is not the time of {event['ts']}")


@scenario
def a_full_device_loses_every_event_and_is_a_failure(run):
    for strict in ([], ["--strict"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            code, err = trace_to(run, full, *strict)
        check_equal(code, 1, f"exit code\n{err}")
        check_ledger(err, 0)
        check("No space left on device" in err, f"why is not said: {err}")


@scenario
def a_closed_standard_output_loses_every_event_and_is_a_failure(run):
    program = puppet.build(run)
    argv = run.tool_argv(probe_of(program), [], [program, "fire:50"])
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *argv], stderr=subprocess.PIPE, text=True, timeout=60)
    check_equal(done.returncode, 1, f"exit code\n{done.stderr}")
    check_ledger(done.stderr, 0)
    check("closed" in done.stderr, f"why is not said: {done.stderr}")


@contextlib.contextmanager
def small_disk(run, size):
    place = run.dir / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    check_equal(mounted.returncode, 0, f"mount: {mounted.stderr}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@scenario
def a_disk_that_fills_midway_is_counted_to_the_line(run):
    with small_disk(run, "64k") as place:
        for options in ([], ["-o", place / "by-option"]):
            with open(place / "by-shell", "w", encoding="utf-8") as file:
                code, err = trace_to(run, file, *options)
            text = (place / ("by-option" if options else "by-shell")).read_text()
            check_equal(code, 1, f"exit code\n{err}")
            written = events_in(text)
            check(written > 100, f"only {written} events fitted 64 KiB")
            check_ledger(err, written)
            os.unlink(place / "by-shell")


@scenario
def a_file_size_limit_is_a_full_disk(run):
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    with open(run.dir / "limited", "w", encoding="utf-8") as file:
        code, err = trace_to(run, file, preexec_fn=limit)
    check_equal(code, 1, f"exit code\n{err}")
    check_ledger(err, events_in((run.dir / "limited").read_text()))


@scenario
def output_to_a_file_leaves_standard_output_to_the_command(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), "-o", run.dir / "events", command=["sh", "-c", f"echo mine; {program} fire:9"])
    result.check_code(0)
    check_equal(result.stdout.splitlines()[0], "mine", "standard output of the command")
    check_equal(result.records, [], "records on standard output")
    check_equal(events_in((run.dir / "events").read_text()), 9, "events in the file")
    refused = run.trace(probe_of(program), "-o", run.dir / "no" / "such" / "place", command=[program, "fire:9"])
    refused.check_code(1)
    check("no/such/place" in refused.stderr, refused.describe())


@scenario
def fewer_events_than_hits_are_no_loss_where_they_were_asked_for(run):
    program = puppet.build(run)
    for options, exit_code, words in ((["-M", 1, "--strict"], 0, "1 event of 5 hits (the 1 asked for; 4 more came before all was detached)"),
                                      (["-M", 9, "--strict"], 0, "5 events of 5 hits; lost: 0 ring_full")):
        result = run.trace(probe_of(program), *options, command=[program, "fire:5"])
        check_equal(result.code, exit_code, result.describe())
        check(words in result.stderr, result.describe())


@scenario
def how_sites_are_attached_is_said_where_it_is_asked_for(run):
    program = puppet.build(run)
    plain = run.trace(probe_of(program), command=[program, "fire:1"])
    verbose = run.trace(probe_of(program), "-v", command=[program, "fire:1"])
    check(re.search(r"^attached 1 site of 1 probe in 1 file, after [\d.]+ ms$", plain.stderr, re.M), plain.stderr)
    check(re.search(r"^attached 1 site of 1 probe in 1 file by \w+, specs by .*, after [\d.]+ ms$", verbose.stderr, re.M), verbose.stderr)


@scenario
def probes_that_only_their_files_tell_apart_are_shown_with_them(run):
    programs = [puppet.build(run, "one"), puppet.build(run, "another", ["-DPUPPET_PAD"])]
    both = ["sh", "-c", f"{programs[0]} fire:2 >&2; {programs[1]} fire:1 >&2"]
    argv = run.tool_argv([probe_of(program) for program in programs], ["-q"], both, "text")
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout
    check_equal([line.split(" arg0=")[0].split()[-1] for line in shown.splitlines()],
                [probe_of(programs[0])] * 2 + [probe_of(programs[1])], "names of two files' probes")
    alone = subprocess.run(run.tool_argv(probe_of(programs[0]), ["-q"], both, "text"), capture_output=True, text=True, timeout=60).stdout
    check_equal({line.split(" arg0=")[0].split()[-1] for line in alone.splitlines()}, {puppet.PROBE}, "of one")


@scenario
def a_slow_reader_of_a_pipe_that_does_not_block_gets_every_line(run):
    program = puppet.build(run)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    argv = run.tool_argv(probe_of(program), [], [program, "fire:20000"])
    tracer = run.start(*argv, stdout=write_end, stderr=subprocess.PIPE, text=True)
    check(fcntl.fcntl(write_end, fcntl.F_GETFL) & os.O_NONBLOCK, "the test's own flag")
    os.close(write_end)
    time.sleep(1.0)  # the pipe is full by then
    with os.fdopen(read_end, encoding="utf-8") as reader:
        text = reader.read()
    err = tracer.stderr.read()
    check_equal(tracer.wait(20), 0, f"exit code\n{err}")
    check_equal(sum(check_ledger(err, events_in(text), 20000).values()), 0, "lost")


def with_sleeping_reader(run, *options):
    """A tracer whose standard output is a pipe nobody reads, full after the 5,000 hits of a puppet that goes on."""
    program = puppet.build(run)
    target = Puppet(run, program)
    read_end, write_end = os.pipe()
    tracer = run.start(*run.tool_argv(probe_of(program), ["-p", target.pid, *options]), stdout=write_end,
                       stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    target.wait_attached()
    target.order("fire:5000")
    return target, tracer, read_end


def check_gave_up(target, tracer, read_end, since):
    err = tracer.stderr.read()
    check_equal(tracer.wait(5), 1, f"exit code\n{err}")
    check(time.monotonic() - since < 3.5, f"it took {time.monotonic() - since:.1f} s to end")
    with os.fdopen(read_end, encoding="utf-8") as reader:
        text = reader.read()
    check(text.endswith("\n"), f"the last line is cut: {text[-100:]}")
    check(check_ledger(err, events_in(text), 5000)["not_written"] > 0, "nothing was lost to the sleeping reader")
    target.wait_clean()


@scenario
def duration_is_honoured_while_the_reader_sleeps(run):
    since = time.monotonic() + 1
    target, tracer, read_end = with_sleeping_reader(run, "-d", 1)
    check_gave_up(target, tracer, read_end, since)


@scenario
def ctrl_c_is_honoured_while_the_reader_sleeps(run):
    target, tracer, read_end = with_sleeping_reader(run)
    time.sleep(0.3)
    since = time.monotonic()
    tracer.send_signal(signal.SIGINT)
    check_gave_up(target, tracer, read_end, since)


@scenario
def a_reader_that_leaves_ends_the_trace_quietly_and_the_ledger_knows(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    read_end, write_end = os.pipe()
    tracer = run.start(*run.tool_argv(probe_of(program), ["-p", target.pid, "-q"]), stdout=write_end,
                       stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    target.wait_attached()
    target.order("fire:1")
    with os.fdopen(read_end, encoding="utf-8") as reader:
        check_equal(events_in(reader.readline()), 1, "the first line")
    target.order("fire:10")
    err = tracer.stderr.read()
    check_equal(tracer.wait(20), 0, f"exit code\n{err}")
    check_equal(len([line for line in err.splitlines() if not line.startswith("  ")]), 1, f"more than the ledger: {err}")
    check_equal(check_ledger(err, 1, 11)["not_written"], 10, "lost by reason")


@scenario
def standard_error_that_cannot_be_written_changes_nothing(run):
    with open("/dev/full", "w", encoding="utf-8") as full, open(run.dir / "out", "w+", encoding="utf-8") as out:
        code, _ = trace_to(run, out, hits=7, stderr=full)
        check_equal(code, 0, "exit code with a full standard error")
        check_equal(events_in((run.dir / "out").read_text()), 7, "events")
    program = puppet.build(run)
    argv = run.tool_argv(probe_of(program), [], [program, "fire:7"])
    for script in ('exec "$@" 2>&-', '"$@" 2>&1 >/dev/null | head -1 >/dev/null; exit ${PIPESTATUS[0]}'):
        done = subprocess.run(["bash", "-c", script, "bash", *argv], stdout=subprocess.PIPE, text=True, timeout=60)
        check_equal(done.returncode, 0, f"exit code of {script}")
        check("head" in script or events_in(done.stdout) == 7, "events with standard error closed")


@scenario
def standard_error_that_nobody_reads_does_not_hold_the_end_up(run):
    program = puppet.build(run)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * 4096)
    os.set_blocking(write_end, True)
    start = time.monotonic()
    tracer = run.start(*run.tool_argv(probe_of(program), ["-q", "-d", 1]), stdout=subprocess.DEVNULL, stderr=write_end)
    os.close(write_end)
    check_equal(tracer.wait(20), 0, "exit code")
    check(time.monotonic() - start < 6, f"it took {time.monotonic() - start:.1f} s")
    os.close(read_end)


if __name__ == "__main__":
    main()
