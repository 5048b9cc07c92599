#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where what came while a trace ran is found: in tables, recordings, spans and print lists. The programs count themselves
what they do."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from follow_support import Later, attach, expect_rows, finish, followed, numbers, table, wait_followed  # noqa: E402
from harness import Tracing, check, check_equal, main, require_root, scenario, wait_until, with_long  # noqa: E402


def open_two(later, tracing, first, second):
    """`first` calls of a library that is opened while it is traced, then `second` of another one."""
    other = later.build("libother.so")
    for number, (library, count) in enumerate(((later.library, first), (other, second)), 1):
        later.order("close")
        check_equal(later.order("open", library), 0, "dlopen")
        wait_followed(tracing, number)
        later.order("fire", count)
    return other


@scenario
def tables_have_the_hits_of_what_came_while_they_were_filled(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "probe, arg0 & 1", "--sum", "arg0")
    other = open_two(later, tracing, 7, 4)  # 0 to 6, and 7 to 10
    result = finish(tracing)
    first, second = f"usdt:{later.library}:late:hit", f"usdt:{other}:late:hit"
    expect_rows(result, {(first, 0): 4, (first, 1): 3, (second, 0): 2, (second, 1): 2})
    check_equal({key: row["sum"] for key, row in table(result).items()},
                {(first, 0): 12, (first, 1): 9, (second, 0): 18, (second, 1): 16}, "sums")


@scenario
def what_comes_finds_as_much_room_in_a_table_as_is_left(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "arg0", "--max-rows", "9")
    open_two(later, tracing, 7, 4)  # 0 to 6, and 7 to 10
    result = finish(tracing)
    check_equal(table(result).keys(), {(n,) for n in range(9)}, "rows")
    check_equal((result.summary["events"], result.summary["lost"]["table_full"]), (9, 2), "hits")


@scenario
def a_table_grows_while_it_is_shown(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "name", "--hist", "arg0", "--interval", "0.05",
                     "--top", "3")
    open_two(later, tracing, 5, 3)
    wait_until(lambda: tracing.stdout().count('"table"') > 3, "tables")
    result = finish(tracing)
    [row] = table(result).values()
    check_equal([(bar["first"], bar["last"], bar["count"]) for bar in row["buckets"]],
                [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 4)], "ranges of 0 to 7")


@scenario
def rows_of_a_file_that_was_replaced_and_waited_for_are_in_one_table(run):
    later, count = Later(run), with_long(50, 6)
    path, fresh = run.dir / "replaced", run.dir / "fresh"
    tracing = run.trace_start([f"usdt:{path}:late:own"], "--wait", "--by", "arg0")
    wait_until(lambda: "waiting: " in tracing.stderr(), "notice")
    for n in range(count):
        shutil.copy(later.program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    expect_rows(finish(tracing), {(n,): count for n in range(3)})


@scenario
def what_would_be_a_row_of_another_kind_is_refused_and_said(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "arg0")
    later.order("open", later.build("libreal.so", "-DTYPE=double"))
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    later.order("fire", 10)
    later.order("close")
    later.order("open", later.library)
    wait_until(lambda: "\nfollowed: " in tracing.stderr(), "followed")
    check_equal(later.order("fire", 2), 12, "calls by the program's own count")
    result = finish(tracing)
    check("arg0: a key of another type" in result.stderr, result.stderr)
    check_equal([each.get("error", "")[:4] for each in followed(result)], ["arg0", ""], "what was followed")
    expect_rows(result, {(10,): 1, (11,): 1})


@scenario
def stacks_of_what_came_are_keys_as_others(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "ustack")
    later.order("open", later.library)
    wait_followed(tracing)
    later.order("fire", 9)
    result = finish(tracing)
    [row] = [line for line in result.records if line["type"] == "table"][-1]["rows"]
    check_equal((row["count"], row["key"][0][0]["function"]), (9, "late_fire"), result.describe())


def recorded(run, form, *options):
    """What was shown of a trace of two libraries that were opened meanwhile, and its recording."""
    later = Later(run)
    recording, shown = run.dir / "recording", run.dir / "shown"
    argv = run.tool_argv(["late:*"], ["-p", later.start(), "--record", recording, *options], output=form)
    tracing = Tracing([*argv, "-o", str(shown)], run.dir)
    run.adopt(tracing.process)
    wait_until(lambda: "attached " in tracing.stderr(), "attached")
    open_two(later, tracing, 500, 3)
    finish(tracing)
    return recording, shown


def replay(run, recording, *options):
    return subprocess.run([run.tool, "--replay", recording, *options], capture_output=True, text=True, timeout=60)


@scenario
def a_recording_has_what_came_while_it_was_made(run):
    for form in ("text", "json"):
        for options in ([], ["--print", "arg0", "--print", "late:*=hex(arg0)"]):
            recording, shown = recorded(run, form, *options)
            done = replay(run, recording, "-f", form)
            check_equal((done.returncode, done.stderr.count("followed: ")), (0, 2), done.stderr)
            check_equal(done.stdout, shown.read_text(), f"{form} {options}")
            check_equal(len(re.findall("late:hit.* *args?", done.stdout)), 503, "events")


@scenario
def a_recording_that_was_cut_is_read_up_to_what_came_then(run):
    recording, _ = recorded(run, "json")
    whole = recording.read_bytes()
    cut, seen = run.dir / "cut", set()
    for size in range(16, len(whole), max(1, len(whole) // with_long(200, 60))):
        cut.write_bytes(whole[:size])
        done = replay(run, cut, "-f", "json", "-q")
        if done.returncode == 2:  # nothing of what was traced is there yet
            continue
        check_equal(done.returncode, 1, f"{size} of {len(whole)} bytes: {done.stderr}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        args = [line["args"][0] for line in lines if line["type"] == "event"]
        check_equal(args, list(range(len(args))), f"{size} of {len(whole)} bytes")
        seen.add((sum(line["type"] == "followed" for line in lines), len(args)))
    check({0, 1, 2} == {came for came, _ in seen}, f"what came, and events: {sorted(seen)}")


@scenario
def tables_of_a_recording_have_what_came(run):
    recording, _ = recorded(run, "json")
    done = replay(run, recording, "-f", "json", "--by", "name, arg0 >= 500")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check_equal({tuple(row["key"]): row["count"] for line in lines if line["type"] == "table" for row in line["rows"]},
                {("hit", 0): 500, ("hit", 1): 3}, done.stderr)


def spans_program(run):
    require_root()
    return run.build("spans-of", [puppet.HERE / "spans.c"], ["-O2", "-g"], libs=["-lpthread"])


def expect_spans(lines, count):
    """`count` runs of `spans pairs 2 100`: what each end said, and that its account adds up."""
    spans = [line for line in lines if line["type"] == "span"]
    by_process = collections.defaultdict(list)
    for span in spans:
        check_equal(span["end_args"], [span["args"][0], span["args"][0] % 10_000_000 % 1000 - 300], f"{span}")
        by_process[span["pid"]].append(span["args"])
    expected = sorted([thread * 10_000_000 + n, thread] for thread in range(2) for n in range(100))
    check_equal([sorted(args) for args in by_process.values()], [expected] * count, "spans of each process")
    summary = lines[-1]
    check_equal((summary["events"], summary["hits"]), (200 * count, 400 * count), "events and hits")
    check_equal(sum(probe.get("paired", 0) for probe in summary["probes"]), 200 * count, "pairs")
    check_equal([key for probe in summary["probes"] for key in ("in_flight", "unmatched") if probe.get(key)], [], "rest")


def trace_replaced_spans(run, *options):
    """A program that is not there yet, and is replaced again and again."""
    program, count, path, fresh = spans_program(run), with_long(50, 4), run.dir / "spans", run.dir / "fresh"
    path.unlink(missing_ok=True)
    tracing = attach(run, [f"usdt:{path}:spans:begin", "~~", f"usdt:{path}:spans:end"], "--wait", *options, ready="waiting: ")
    for n in range(count):
        shutil.copy(program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        subprocess.run([path, "pairs", "2", "100"], check=True, stdout=subprocess.DEVNULL)
    return finish(tracing), count


@scenario
def spans_of_a_program_that_is_waited_for_and_replaced_are_traced(run):
    result, count = trace_replaced_spans(run)
    expect_spans(result.records, count)
    check_equal({(each["probes"], each["sites"], each["attached"]) for each in followed(result)}, {(2, 11, 11)}, "followed")


@scenario
def spans_that_came_are_in_the_same_table_and_recording(run):
    result, count = trace_replaced_spans(run, "--by", "arg1", "--sum", "end.arg1")
    expected = {(thread,): count * sum(n - 300 for n in range(100)) for thread in range(2)}
    check_equal({key: row["sum"] for key, row in table(result).items()}, expected, "sums")
    recording = run.dir / "recording"
    trace_replaced_spans(run, "--record", recording)
    done = replay(run, recording, "-f", "json")
    check_equal(done.returncode, 0, done.stderr)
    expect_spans([json.loads(line) for line in done.stdout.splitlines()], count)


@scenario
def spans_are_waited_for_until_both_their_ends_are_there(run):
    program = spans_program(run)
    begins, ends = run.dir / "begins", run.dir / "ends"
    names = [f"usdt:{begins}:spans:begin", "~~", f"usdt:{ends}:spans:end"]
    tracing = attach(run, names, "--wait", "--pair-by", "arg0", ready="waiting: ")
    fresh = run.dir / "fresh"
    for path in (ends, begins):
        shutil.copy(program, fresh)
        os.rename(fresh, path)
        wait_until(lambda: " on: " in tracing.stderr(), "notice")
    wait_followed(tracing)
    for each in (begins, ends):
        subprocess.run([each, "pairs", "1", "100"], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(program, fresh)
    os.rename(fresh, begins)
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    result = finish(tracing)
    check("spans only begin in it" in result.stderr, result.stderr)
    spans = [line for line in result.records if line["type"] == "span"]
    check_equal([(span["args"][0], span["end_args"][0]) for span in spans], [(n, n) for n in range(100)], "spans")


@scenario
def a_print_list_of_a_probe_that_comes_later_is_checked_then(run):
    later = Later(run)
    lists = ["--print", "pid", "--print", "late:hit=hex(arg0)"]
    tracing = attach(run, ["late:*"], "-p", later.start(), *lists)
    check("late:hit=...' is for no probe of this trace yet: late:own" in tracing.stderr(), tracing.stderr())
    later.order("open", later.library)
    wait_followed(tracing)
    later.order("fire", 3)
    check_equal(numbers(finish(tracing), "hit"), ["0x0", "0x1", "0x2"], "values")
    tracing = attach(run, ["late:*"], "-p", later.start(), "--print", "late:hit=nosuch")
    later.order("open", later.library)
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    result = finish(tracing)
    check("--print nosuch: no such argument: late:hit(" in result.stderr, result.stderr)
    refused = run.trace(["late:*"], "-p", later.start(), "--print", "late:hit=arg0", "--no-follow")
    refused.check_code(2)
    check("is for no probe of this trace, or only" in refused.stderr, refused.stderr)


if __name__ == "__main__":
    main()
