#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What begins and never ends: it is given up, counted, and takes nobody's place for good."""

import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import Skip, check, check_equal, main, require_root, scenario, wait_line, wait_until  # noqa: E402

SPAN = ["usdt:{0}:never:start", "~~", "usdt:{0}:never:done"]
CALL = ["ucall:{0}:work"]
WHOLE = 300  # whole ones behind the others
MANY = 20_000
ROOM = 131_072  # where the kernel makes it as it is needed
MORE = 100_000  # more than half of that, which is when some are given up


def build(run):
    require_root()
    return run.build("never_ends", [HERE / "event/never_ends.c"], ["-O1", "-g"], libs=["-lpthread"])


class Traced:
    """What one run told, and what the program said."""

    def __init__(self, run, program, mode, *options, probes, code=0):
        names = [name.format(program) for name in probes]
        said = run.dir / "said"
        done = subprocess.run([run.tool, *names, "-f", "json", *map(str, options), "--", "sh", "-c",
                               f"exec {program} {mode} > {said}"], capture_output=True, text=True, timeout=240)
        if done.returncode == 77:
            raise Skip("/proc/sys/kernel/ns_last_pid cannot be written")
        check_equal(done.returncode, code, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.notices = done.stderr
        self.events = [line for line in lines if line["type"] in ("span", "call", "event")]
        tables = [line for line in lines if line["type"] == "table"]
        self.rows = tables[-1]["rows"] if tables else []
        self.probes = lines[-1]["probes"]
        self.said = [int(word) for word in said.read_text().split() if word.isdigit()]

    def count(self):
        return sum(row["count"] for row in self.rows)


def begun_is_accounted_for(probe):
    """Each beginning ended, was abandoned, or is in flight."""
    lost = probe["lost"]
    if "paired" in probe:
        check_equal(probe["hits"], probe["paired"] + probe["in_flight"] + lost["abandoned"] + lost["calls_full"] +
                    probe["unpaired"], f"beginnings: {probe}")
    else:
        check_equal(probe["hits"], probe["events"] + probe.get("undecided", 0) + lost["unfinished"] + lost["abandoned"] + lost["calls_full"],
                    f"calls: {probe}")
    check_equal(lost["calls_full"], 0, f"beginnings without room: {probe}")


@scenario
def ends_that_are_left_out_hide_no_others(run):
    trace = Traced(run, build(run), f"skip {10 * MORE}", "--latency", probes=SPAN)
    ended = trace.said[1] + WHOLE
    check_equal((trace.count(), trace.probes[0]["paired"]), (ended, ended), "spans")
    begun_is_accounted_for(trace.probes[0])
    check_equal(trace.probes[0]["in_flight"] + trace.probes[0]["lost"]["abandoned"], MORE, "without an end")
    check(f"{ended} of {10 * MORE + WHOLE} spans in the table" in trace.notices, trace.notices)
    check(f"{trace.probes[0]['lost']['abandoned']} abandoned" in trace.notices, trace.notices)


@scenario
def each_span_is_still_its_own_where_many_were_given_up(run):
    trace = Traced(run, build(run), f"skip {8 * MORE}", "--where", "arg0 != end.arg0", "-q", probes=SPAN)
    begun_is_accounted_for(trace.probes[0])
    check_equal((trace.probes[0]["paired"], trace.events), (trace.said[1] + WHOLE, []), "spans, and those of two numbers")


@scenario
def spans_within_others_that_were_given_up_end_nothing_else(run):
    """The innermost ones are whole; an end whose beginning was given up takes no other one."""
    trace = Traced(run, build(run), f"within {MORE}", "--where", "arg0 != end.arg0", "-q", probes=SPAN)
    begun_is_accounted_for(trace.probes[0])
    paired = trace.probes[0]["paired"]
    check_equal(trace.events, [], "spans of two numbers")
    check(paired >= ROOM // 4 + WHOLE, f"those that there is room for: {paired}")
    check_equal(trace.probes[1]["hits"], paired + trace.probes[1]["unmatched"], "ends")


@scenario
def threads_that_have_ended_leave_room(run):
    program = build(run)
    trace = Traced(run, program, f"threads {MANY // 2}", "--latency", probes=SPAN)
    check_equal(trace.count(), WHOLE, "spans behind the threads")
    begun_is_accounted_for(trace.probes[0])
    check_equal((trace.probes[0]["in_flight"], trace.probes[0]["lost"]["abandoned"]), (0, MANY // 2), "spans of threads")


@scenario
def calls_whose_threads_have_ended_leave_room(run):
    program = build(run)
    for options in ([], ["--ret-probes"]):
        trace = Traced(run, program, f"leaves {MANY // 2}", "--latency", *options, probes=CALL)
        check_equal(trace.count(), WHOLE, f"calls behind the threads, {options}")
        begun_is_accounted_for(trace.probes[0])
        lost = trace.probes[0]["lost"]
        check_equal(lost["unfinished"] + lost["abandoned"], MANY // 2, f"calls of threads, {options}")


@scenario
def calls_that_are_left_by_longjmp_leave_room(run):
    program = build(run)
    for options in ([], ["--ret-probes"]):
        for mode, probe, calls in (("jumps", "ucall:{0}:work", MANY), ("deep", "ucall:{0}:deep", 100 * (MANY // 40))):
            trace = Traced(run, program, f"{mode} {MANY if mode == 'jumps' else MANY // 40}", "--latency", *options,
                           probes=[probe])
            begun_is_accounted_for(trace.probes[0])
            check_equal(trace.probes[0]["hits"], calls + (WHOLE if mode == "jumps" else 0), f"calls, {mode} {options}")
            check_equal(trace.count(), WHOLE if mode == "jumps" else 0, f"calls that return, {mode} {options}")


@scenario
def processes_that_are_killed_or_become_others_leave_room(run):
    program = build(run)
    for mode, function in (("killed", "poll"), ("execs", "execve")):
        trace = Traced(run, program, f"{mode} 400", "--by", "retval", probes=[f"ucall:libc.so.6:{function}"])
        [probe] = [probe for probe in trace.probes if probe["hits"] > 0]
        check(probe["lost"]["unfinished"] >= 400, f"{function}: {probe}")
        begun_is_accounted_for(probe)
        spans = Traced(run, program, f"{mode} 400", "--latency", probes=SPAN)
        check_equal(spans.count(), WHOLE, "spans behind them")
        check(spans.probes[0]["hits"] >= 400 + WHOLE, f"{spans.probes[0]}")
        check_equal((spans.probes[0]["in_flight"], spans.probes[0]["lost"]["abandoned"]),
                    (0, spans.probes[0]["hits"] - WHOLE), f"spans of {mode}")


@scenario
def a_thread_ends_nothing_of_an_earlier_one_with_its_number(run):
    program = build(run)
    trace = Traced(run, program, "namesakes 8", probes=SPAN)
    check(trace.said[1] > 0, "no number was given twice")
    for span in trace.events:
        check_equal((span["args"], span["end_args"]), ([333], [333]), "a span")
    check_equal((len(trace.events), trace.probes[1]["unmatched"]), (8, 8), "ends")
    check_equal((trace.probes[0]["in_flight"], trace.probes[0]["lost"]["abandoned"]), (0, 8), "of earlier threads")


@scenario
def a_program_ends_nothing_of_what_its_process_was_before(run):
    program = build(run)
    trace = Traced(run, program, "becomes 1", probes=SPAN)
    check_equal(trace.events, [], "spans")
    check_equal((trace.probes[0]["lost"]["abandoned"], trace.probes[1]["unmatched"]), (1, 1), f"{trace.probes}")
    # What pairs them says so: then it is the same thing to both.
    trace = Traced(run, program, "becomes 1", "--pair-by", "pid", probes=SPAN)
    check_equal([span["args"] + span["end_args"] for span in trace.events], [[444, 555]], "spans of the process")


def in_flight(run, program, mode, *words):
    """What is in flight when the time is over."""
    done = subprocess.run([run.tool, *(word.format(program) for word in words), "-f", "json", "--in-flight", "-d", "1.5", "--",
                           program, *mode.split()], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr) if "hang" not in mode else None
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    shown = [line["events"] for line in lines if line["type"] == "in_flight"]
    check(shown, f"{done.stdout} {done.stderr}")
    return shown, lines[-1], done.stderr


@scenario
def what_hangs_is_shown_with_what_it_began_with(run):
    program, threads = build(run), 6
    shown, summary, notices = in_flight(run, program, f"hang {threads}", *SPAN)
    check_equal(sorted(each["args"][0] for each in shown[-1]), [5000 + n for n in range(threads)], f"spans: {shown}")
    ages = [each["duration_ns"] for each in shown[-1]]
    check_equal(ages, sorted(ages, reverse=True), "the oldest first")
    check(all(0.2e9 < age < 60e9 for age in ages), f"how long they have been open: {ages}")
    check_equal(len({each["tid"] for each in shown[-1]}), threads, "threads")
    check_equal(summary["probes"][0]["in_flight"], threads, f"the account: {notices}")
    calls, _, _ = in_flight(run, program, f"hang {threads}", "ucall:libc.so.6:pause", "--ustack")
    check_equal(len(calls[-1]), threads + 1, "calls of all threads and of main()")
    for call in calls[-1]:
        check("return" not in call, f"{call}")
        check(call["ustack"][0].get("function", "").endswith("pause"), f"its stack: {call['ustack']}")


@scenario
def what_ends_with_the_command_is_in_flight_until_then(run):
    """Threads that end by themselves before it are not: neither are those of other processes."""
    program, threads = build(run), 4
    for mode, code in (("returns", 0), ("aborts", 128 + signal.SIGABRT), ("replaced", 0)):
        for probes in (SPAN, ["ucall:{0}:waits"]):
            command = [program, mode, threads] if mode != "replaced" else ["sh", "-c", f"exec {program} returns {threads}"]
            done = run.trace([word.format(program) for word in probes], "--in-flight", "--print", "arg0", command=command)
            done.check_code(code)
            shown = next(line["events"] for line in reversed(done.records) if line["type"] == "in_flight")
            first = 5000 if probes == SPAN else 0
            check_equal(sorted(event["args"][0] for event in shown), [first + n for n in range(threads)], f"{mode}: {done.describe()}")
            check(all(0.1e9 < event["duration_ns"] < 0.5e9 for event in shown), f"until it ended: {shown}")
            probe = done.summary["probes"][0]
            check_equal(probe.get("in_flight", probe["lost"].get("unfinished")), threads, f"{mode}: {probe}")
            check_equal(probe["lost"]["abandoned"], threads if probes == SPAN else 0, f"{mode}: {probe}")


@scenario
def what_ended_is_not_in_flight(run):
    shown, summary, notices = in_flight(run, build(run), "threads 20", *SPAN)
    check_equal((shown[-1], summary["probes"][0]["in_flight"]), ([], 0), notices)


@scenario
def what_is_in_flight_is_a_table_of_any_keys(run):
    """Rows are of beginnings, with their values and stacks, and for how long they have been open."""
    program, threads = build(run), 6

    def asked(key, where="duration > 1ms"):
        return run.trace([word.format(program) for word in SPAN], "--in-flight", "--by", key, "--max", "duration", "--where", where,
                         "-d", "1.5", command=[program, "hang", threads])

    def rows(key, *where):
        done = asked(key, *where)
        tables = [record["rows"] for record in done.records if record["type"] == "table"]
        check(tables, done.describe())
        return [(row["key"][0], row["count"], row["max"]) for row in tables[-1]]
    values = rows("arg0")
    check_equal(sorted(value for value, _, _ in values), [5000 + n for n in range(threads)], "values of the beginnings")
    check(all(count == 1 and 0.2e9 < open_for < 60e9 for _, count, open_for in values), f"for how long: {values}")
    check_equal([open_for for _, _, open_for in values], sorted((each[2] for each in values), reverse=True), "the largest first")
    check_equal(len(rows("tid")), threads, "threads")
    check_equal([(name, count) for name, count, _ in rows("comm")], [(program.name, threads)], "of one name")
    (stack, count, _), = rows("ustack")
    check_equal(count, threads, "of one stack")
    check("start_thread" in str(stack) or "clone" in str(stack), f"whole stacks: {stack}")
    check_equal(rows("arg0", "duration > 1m"), [], "none has been open for a minute")
    for question in (("nothing",), ("arg0", "nothing > 1")):
        refused = asked(*question)
        check(refused.code == 2 and "nothing: there is no such argument: never:start" in refused.stderr, refused.describe())


# Begins and ends what it is told to, and says where the memory is that it keeps.
TOLD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
__attribute__((noinline)) void *keeps(long size) { return malloc(size); }
__attribute__((noinline)) void *gives_back(long size) { return malloc(size); }
int main(void) {
  char what;
  long number;
  void *kept[64], *other;
  puts("ready");
  fflush(stdout);
  while (scanf(" %c %ld", &what, &number) == 2) {
    if (what == 'b') DTRACE_PROBE1(told, start, number);
    if (what == 'e') DTRACE_PROBE1(told, done, number);
    if (what != 'm') continue;
    for (long i = 0; i < 2 * number; i++) {
      if (i % 2) free((other = gives_back(100 * i + 1)));
      else kept[i / 2] = keeps(100 * i + 1);
    }
    for (long i = 0; i < number; i++) printf("%ld\n", (long)kept[i]);
    fflush(stdout);
  }
  return 0;
}
"""


def told_program(run):
    require_root()
    (run.dir / "told.c").write_text(TOLD)
    program = run.build("told", [run.dir / "told.c"], ["-O0", "-g"])
    process = run.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    return program, process


def shown_last(tracing):
    lines = [line for line in tracing.stdout().splitlines() if '"in_flight"' in line and line.endswith("}")]
    return [each["args"] for each in json.loads(lines[-1])["events"]] if lines else None


@scenario
def what_is_in_flight_is_shown_while_it_is(run):
    program, process = told_program(run)
    probes = [name.format(program).replace("never", "told") for name in SPAN]
    tracing = run.trace_start(probes, "--pair-by", "arg0", "--in-flight=3", "--interval", "0.2s", "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    steps = (("", []), ("b1 b2 b3 b4 b5", [1, 2, 3]), ("e1 e3", [2, 4, 5]), ("b6 e2 e2", [4, 5, 6]), ("e5 e6", [4]), ("e4", []))
    for words, numbers in steps:
        for word in words.split():  # further apart than the clocks of two processors are
            process.stdin.write(word.encode() + b"\n")
            time.sleep(0.01)
        wait_until(lambda: shown_last(tracing) == [[number] for number in numbers] or not tracing.alive(), f"{numbers} after {words}")
    process.stdin.close()
    tracing.signal(2)
    result = tracing.finish()
    result.check_code(0)
    [begins, ends] = result.summary["probes"]
    check_equal((begins["hits"], begins["paired"], begins["in_flight"], ends["unmatched"]), (6, 6, 0, 1), result.describe())


@scenario
def what_is_given_up_is_said_while_it_happens(run):
    program, process = told_program(run)
    probes = [name.format(program).replace("never", "told") for name in SPAN]
    tracing = run.trace_start(probes, "--pair-by", "arg0", "--latency", "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    notice = "spans have begun and not ended than there is room for"
    process.stdin.write(b"b1 e1\n")
    check(notice not in tracing.stderr(), tracing.stderr())
    process.stdin.write("".join(f"b{number}\n" for number in range(MORE)).encode())
    wait_until(lambda: notice in tracing.stderr() or not tracing.alive(), "a notice")
    check(tracing.alive(), "it is said while the trace goes on")
    process.stdin.close()
    process.wait()
    tracing.signal(2)
    result = tracing.finish()
    result.check_code(0)
    check_equal(result.stderr.count(notice), 1, "notices")
    begun_is_accounted_for(result.summary["probes"][0])


def begun_twice(run, pause):
    """The account of spans of which more begin, each twice, than there is room for, and of WHOLE ones behind them."""
    program, process = told_program(run)
    probes = [name.format(program).replace("never", "told") for name in SPAN]
    tracing = run.trace_start(probes, "--pair-by", "arg0", "--latency", "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    some = MANY // 2
    for first in range(0, ROOM + MANY, some):
        process.stdin.write("".join(f"b{number} b{number}\n" for number in range(first, first + some)).encode())
        time.sleep(pause)
    for number in range(WHOLE):
        process.stdin.write(f"b{-1 - number} e{-1 - number}\n".encode())
    process.stdin.close()
    process.wait()
    tracing.signal(2)
    result = tracing.finish()
    result.check_code(0)
    check_equal(result.summary["probes"][0]["paired"], WHOLE, f"spans behind them\n{result.stderr}")
    return result.summary["probes"][0]


@scenario
def spans_that_begin_twice_and_never_end_take_nobodys_room_for_good(run):
    """The first one of two has the account of both."""
    for pause in (0.5, 1, 2):  # a busy machine looks more seldom
        begins = begun_twice(run, pause)
        if begins["lost"]["calls_full"] == 0:
            break
    begun_is_accounted_for(begins)


@scenario
def memory_that_was_not_freed_is_in_flight_with_who_took_it(run):
    program, process = told_program(run)
    tracing = run.trace_start(["uretprobe:libc.so.6:malloc", "~~", "uprobe:libc.so.6:free"], "--pair-by", "retval ~~ arg0", "--in-flight",
                              "--ustack", "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    process.stdin.write(b"m 20\n")
    kept = [int(wait_line(process)) for _ in range(20)]
    tracing.signal(2)
    result = tracing.finish()
    result.check_code(0)
    open_ones = next(record for record in reversed(result.records) if record["type"] == "in_flight")["events"]
    taken = {each["return"]: [frame.get("function", "") for frame in each["ustack"]] for each in open_ones}
    own = {place: frames for place, frames in taken.items() if any(name in ("keeps", "gives_back") for name in frames)}
    check_equal(sorted(own), sorted(kept), f"what the program kept, of {taken}")
    check(all("keeps" in frames for frames in own.values()), f"who took it: {own}")


@scenario
def tables_of_latencies_are_ordered_by_the_time_in_all(run):
    trace = Traced(run, build(run), "skip 3000", "--latency", "--by", "arg0 % 7", probes=SPAN)
    totals = [row["total"] for row in trace.rows]
    check_equal(totals, sorted(totals, reverse=True), "rows")
    spans = Traced(run, build(run), "skip 3000", "--by", "arg0 % 7", "--sum", "duration", probes=SPAN)
    check_equal(len(spans.rows), len(trace.rows), "rows")
    for row in trace.rows:
        check(row["count"] * row["p50"] / 2.2 <= row["total"] <= row["count"] * row["max"], f"a total: {row}")


if __name__ == "__main__":
    main()
