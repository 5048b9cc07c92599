#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spans: what the kernel pairs is what the program began and ended by its own words."""

import json
import math
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import AT_ONCE, LONG, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

SPAN = ["usdt:{0}:spans:begin", "~~", "usdt:{0}:spans:end"]
# 10^6 pairs on 8 threads; in CI a tenth of them.
PAIRS_EACH = 125_000 if LONG else 12_500
THREADS = 8


def build(run):
    require_root()
    return run.build("spans", [HERE / "spans.c"], ["-O2", "-g"], libs=["-lpthread"])


class Traced:
    """What one run told: events, tables, the summary; and what the program said."""

    def __init__(self, done, said):
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.spans = [line for line in lines if line["type"] == "span"]
        self.tables = [line for line in lines if line["type"] == "table"]
        self.slowest = [line["events"] for line in lines if line["type"] == "slowest"]
        self.summary = lines[-1]
        self.notices = done.stderr
        self.said = [list(map(int, line.split())) for line in said.splitlines()]
        probes = self.summary.get("probes", [])
        self.begin, self.end = probes if len(probes) == 2 else (None, None)  # one: calls

    def rows(self):
        return {tuple(row["key"]): row for row in self.tables[-1]["rows"]}


def traced(run, program, mode, *options, probes=None, code=0):
    log = run.dir / "said"
    names = [name.format(program) for name in probes or SPAN]
    done = subprocess.run([run.tool, *names, "-f", "json", *map(str, options), "--", "sh", "-c",
                           f"exec {program} {mode} > {log}"], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, code, done.stderr)
    return Traced(done, log.read_text()) if code == 0 else done


def recorded(run, program, mode):
    """A recording of one run, and the lines that were shown meanwhile."""
    file, shown = run.dir / "recording", run.dir / "shown"
    names = [name.format(program) for name in SPAN]
    done = subprocess.run([run.tool, *names, "-f", "json", "--record", file, "-o", shown, "--", program, *mode.split()],
                          capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    return file, [json.loads(line) for line in shown.read_text().splitlines()]


def replayed(run, file, *options):
    done = subprocess.run([run.tool, "--replay", file, "-f", "json", *options], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    return Traced(done, "")


def accounts_add_up(trace):
    """Each hit is in one number of its probe's account."""
    begin, end = trace.begin, trace.end
    check_equal(begin["hits"], begin["paired"] + begin["lost"]["calls_full"] + begin["lost"]["abandoned"] + begin["in_flight"] +
                begin["unpaired"],
                f"hits that begin: {begin}")
    lost = sum(end["lost"].values()) + end.get("faster", 0)
    check_equal(end["hits"], end["events"] + end.get("rejected", 0) + end.get("undecided", 0) + lost + end["unmatched"] +
                end["unpaired"], f"hits that end: {end}")


@scenario
def each_span_has_what_both_its_ends_said(run):
    trace = traced(run, build(run), "pairs 2 300")
    check_equal(len(trace.spans), 600, "spans")
    for span in trace.spans:
        work, thread = span["args"]
        check_equal(span["end_args"], [work, work % 10_000_000 % 1000 - 300], f"the end of {span}")
        check_equal(work // 10_000_000, thread, "the thread of the work")
        check(0 < span["duration_ns"] < 10_000_000_000, f"a duration: {span}")
        check(span["pc"] != span["end_pc"], f"places: {span}")
        check(" ~~ " in span["probe"], span["probe"])
    check_equal(len({span["tid"] for span in trace.spans}), 2, "threads")
    accounts_add_up(trace)
    check_equal((trace.begin["paired"], trace.begin["in_flight"], trace.end["unmatched"]), (600, 0, 0), "accounts")


@scenario
def count_sum_and_largest_of_many_pairs_on_eight_threads_are_exact(run):
    program = build(run)
    trace = traced(run, program, f"pairs {THREADS} {PAIRS_EACH}", "--by", "arg1", "--sum", "end.arg1")
    rows = trace.rows()
    for thread, pairs, total, _ in trace.said:
        check_equal((rows[(thread,)]["count"], rows[(thread,)]["sum"]), (pairs, total), f"thread {thread}")
    check_equal(len(rows), THREADS, "rows")
    check_equal(trace.begin["paired"], THREADS * PAIRS_EACH, "pairs")
    accounts_add_up(trace)
    largest = traced(run, program, f"pairs 4 {PAIRS_EACH // 10}", "--by", "arg1", "--max", "arg0 + end.arg1")
    for thread, _, _, most in largest.said:
        check_equal(largest.rows()[(thread,)]["max"], most, f"largest of thread {thread}")


@scenario
def spans_within_each_other_end_the_innermost(run):
    trace = traced(run, build(run), "nested 60 20")
    check_equal(len(trace.spans), 60 * 20, "spans")
    ended = {}
    for span in trace.spans:
        work, depth = span["args"]
        check_equal(span["end_args"], [work, depth * (depth + 1) // 2], f"the end of {span}")
        ended[work] = (span["ts"], span["ts"] + span["duration_ns"])
    for work, (begin, end) in ended.items():
        if work % 1000 > 0:
            outer = ended[work - 1]
            check(outer[0] < begin and end < outer[1], f"{work} is within the one around it")
    accounts_add_up(trace)
    check_equal(trace.begin["in_flight"] + trace.end["unmatched"], 0, "unpaired")


@scenario
def ends_without_beginning_and_beginnings_without_end_are_counted_exactly(run):
    program = build(run)
    # Paired by the work's number nothing but that pairs them; a beginning whose end never comes stays in flight.
    trace = traced(run, program, "unmatched 3000", "--pair-by", "arg0")
    begins, ends, paired = trace.said[0]
    check_equal(len(trace.spans), paired, "spans")
    check_equal((trace.begin["hits"], trace.begin["paired"], trace.begin["in_flight"]), (begins, paired, begins - paired),
                "beginnings")
    check_equal((trace.end["hits"], trace.end["unmatched"]), (ends, ends - paired), "ends")
    accounts_add_up(trace)
    check(f"{begins - paired} in flight, {ends - paired} that ended nothing" in trace.notices, trace.notices)


@scenario
def spans_that_are_given_up_for_others_are_counted(run):
    trace = traced(run, build(run), "unmatched 240000", "--pair-by", "arg0")
    begins, ends, paired = trace.said[0]
    check(trace.begin["lost"]["abandoned"] > 0, f"beginnings without room: {trace.begin}")
    check_equal(trace.begin["hits"], begins, "beginnings")
    check_equal(trace.end["hits"], ends, "ends")
    accounts_add_up(trace)
    check_equal((len(trace.spans), trace.begin["paired"]), (paired, paired), "spans: those that began last are whole")


@scenario
def one_thread_ends_what_another_began(run):
    trace = traced(run, build(run), "across 2000", "--pair-by", "arg0 ~~ arg0")
    check_equal(sorted(span["args"][0] for span in trace.spans), list(range(2000)), "spans")
    for span in trace.spans:
        work = span["args"][0]
        check_equal((span["args"][1], span["end_args"]), (2 * work, [work, 3 * work]), f"{span}")
    accounts_add_up(trace)
    by_thread = traced(run, build(run), "across 200")
    check_equal((by_thread.begin["paired"], by_thread.end["unmatched"]), (0, 200), "paired by thread")


@scenario
def who_pairs_by_thread_what_goes_across_threads_is_told_of_pair_by(run):
    program = build(run)
    hint = "--pair-by pairs them across threads"
    trace = traced(run, program, "across 2000")
    check((trace.begin["paired"], hint in trace.notices) == (0, True), trace.notices)
    check_equal(trace.notices.count(hint), 1, "times it is said")
    for mode, options in (("across 2000", ("--pair-by", "arg0 ~~ arg0")), ("pairs 2 2000", ()), ("nested 5 100", ())):
        check(hint not in traced(run, program, mode, *options).notices, f"{mode} {options}")


@scenario
def texts_are_those_of_their_own_moment(run):
    program = build(run)
    probes = ["usdt:{0}:spans:ask~~usdt:{0}:spans:answer"]
    trace = traced(run, program, "texts 200", "--print", "str(arg0), end.arg0, str(end.arg1)", probes=probes)
    check_equal(len(trace.spans), 200, "spans")
    for n, span in enumerate(trace.spans):
        check_equal(span["args"], [f"question {n} of the beginning", n, f"answer {n} of the end"], "texts")
    wanted = traced(run, program, "texts 200", "--where", 'str(end.arg1) =~ "answer 1*"', probes=probes)
    check_equal([span["end_args"][0] for span in wanted.spans], [n for n in range(200) if str(n)[0] == "1"], "answers")


@scenario
def what_pointers_of_the_end_lead_to_is_read_there_by_whatever_cast(run):
    """"answer N of the end" is in the memory that the second argument of the end points to."""
    program = build(run)
    probes = ["usdt:{0}:spans:ask~~usdt:{0}:spans:answer"]
    trace = traced(run, program, "texts 20", "--print", "*(u8 *)end.arg1, ((char *)end.arg1)[7], end.arg0, str(&((char *)end.arg1)[7])", probes=probes)
    check_equal([span["args"] for span in trace.spans], [[ord("a"), ord(str(n)[0]), n, f"{n} of the end"] for n in range(20)], "values")
    where = f"((char *)end.arg1)[7] == {ord('1')} && *(u8 *)arg0 == {ord('q')}"
    wanted = traced(run, program, "texts 20", "--where", where, "--print", "end.arg0", probes=probes)
    check_equal([span["args"] for span in wanted.spans], [[n] for n in range(20) if str(n)[0] == "1"], where)
    rows = traced(run, program, "texts 20", "--by", "((char *)end.arg1)[7]", "--sum", "end.arg0", probes=probes).rows()
    digits = {str(n)[0] for n in range(20)}
    check_equal({key[0]: row["sum"] for key, row in rows.items()},
                {ord(digit): sum(n for n in range(20) if str(n)[0] == digit) for digit in digits}, "rows")


@scenario
def texts_of_the_beginning_are_asked_about_as_they_were_there(run):
    """The program overwrites each before its end."""
    program = build(run)
    probes = ["usdt:{0}:spans:ask~~usdt:{0}:spans:answer"]
    said = [f"question {n} of the beginning" for n in range(200)]
    for where, wanted in [('str(arg0) == "question 17 of the beginning"', [17]),
                          ('str(arg0) =~ "question 1? of*"', list(range(10, 20))),
                          ('str(arg0) =~ "question 19*" && arg0 != 0 && end.arg0 > 192', list(range(193, 200))),
                          ('str(arg0) == str(end.arg1)', []), ('str(arg0) =~ "*-"', [])]:
        trace = traced(run, program, "texts 200", "--where", where, "--print", "str(arg0), end.arg0", *AT_ONCE, probes=probes)
        check_equal([span["args"] for span in trace.spans], [[said[n], n] for n in wanted], where)
        check_equal((trace.end["rejected"], trace.end.get("undecided", 0)), (200 - len(wanted), 0), where)
        accounts_add_up(trace)
    rows = traced(run, program, "texts 200", "--latency", "--by", "str(arg0)", probes=probes).rows()
    check_equal(sorted((*key, row["count"]) for key, row in rows.items()), sorted((text, 1) for text in said), "rows")
    rows = traced(run, program, "texts 200", "--by", "str(end.arg1), str(arg0), arg1 % 2", "--sum", "end.arg0", probes=probes).rows()
    check_equal(sorted((*key, row["sum"]) for key, row in rows.items()),
                sorted((f"answer {n} of the end", said[n][:23], n % 2, n) for n in range(200)), "texts of both ends, of 23 bytes")
    [row] = traced(run, program, "texts 200", "--distinct", "str(arg0)", probes=probes).tables[-1]["rows"]
    check(190 <= row["distinct"] <= 210, f"different ones of 200: {row}")


@scenario
def what_a_record_has_not_all_of_decides_no_question_about_a_text(run):
    program = build(run)
    probes = ["usdt:{0}:spans:ask~~usdt:{0}:spans:answer"]
    trace = traced(run, program, "texts 50", "--string-size", "16", "--where", 'str(arg0) =~ "*of the end"', probes=probes)
    check_equal((len(trace.spans), trace.end["rejected"], trace.end["undecided"]), (0, 0, 50), "of texts that are cut")
    accounts_add_up(trace)


WHERES = [
    ("end.arg1 > 100", lambda span: span["end_args"][1] > 100),
    ("arg1 == 1 && end.arg1 < 0", lambda span: span["args"][1] == 1 and span["end_args"][1] < 0),
    ("arg0 == end.arg0", lambda span: True),
    ("duration > 1h", lambda span: False),
]
VIEWS = [["--by", "arg1, end.arg1 % 3", "--sum", "end.arg1"], ["--hist", "end.arg1"], ["--by", "probe"]]


@scenario
def questions_are_answered_alike_by_the_kernel_and_by_a_replay(run):
    program = build(run)
    file, shown = recorded(run, program, "pairs 2 500")
    again = replayed(run, file)
    events = again.spans
    check_equal(len(events), 1000, "recorded spans")
    check_equal(events, shown[:-1], "what is replayed")
    check_equal(again.summary["probes"], shown[-1]["probes"], "the accounts of a replay")
    for where, holds in WHERES:
        wanted = [span["args"] + span["end_args"] for span in events if holds(span)]
        live = traced(run, program, "pairs 2 500", "--where", where, *AT_ONCE)
        again = replayed(run, file, "--where", where)
        for trace in (live, again):
            check_equal(sorted(span["args"] + span["end_args"] for span in trace.spans), sorted(wanted), where)
            check_equal(trace.end["rejected"], len(events) - len(wanted), f"rejected by {where}")
        accounts_add_up(live)
    for view in VIEWS:
        live = traced(run, program, "pairs 2 500", *view, *AT_ONCE)
        again = replayed(run, file, *view)
        check_equal(again.tables[-1]["rows"], live.tables[-1]["rows"], f"rows of {view}")


def span_rows(spans, key):
    rows = {}
    for span in spans:
        rows[tuple(span[each] for each in key)] = rows.get(tuple(span[each] for each in key), 0) + 1
    return rows


@scenario
def who_began_a_span_can_be_asked_and_is_a_key(run):
    """The end is in another thread: what is known of the beginning must not be taken from there."""
    program = build(run)
    file = run.dir / "across"
    names = [name.format(program) for name in SPAN]
    pair = ["--pair-by", "arg0"]
    done = subprocess.run([run.tool, *names, "-f", "json", "--record", file, *pair, "--", program, "across", "300"],
                          capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    for keys in (["comm"], ["pid", "tid"], ["tid", "comm", "cpu"]):
        again = replayed(run, file, "--by", ", ".join(keys))
        wanted = {tuple(key): count for key, count in span_rows(replayed(run, file).spans, keys).items()}
        check_equal({key: row["count"] for key, row in again.rows().items()}, wanted, f"replayed by {keys}")
    live = traced(run, program, "across 300", *pair, "--by", "pid, tid, comm, cpu").rows()
    check_equal(sum(row["count"] for row in live.values()), 300, "spans")
    for pid, tid, comm, cpu in live:
        check_equal((pid, comm), (tid, "spans"), "the first thread begins all of them")
        check(0 <= cpu < os.cpu_count(), f"a processor: {cpu}")
    cgroup = os.stat("/sys/fs/cgroup" + next(line for line in open("/proc/self/cgroup") if line.startswith("0::"))
                     .strip()[3:]).st_ino if os.path.exists("/sys/fs/cgroup/cgroup.procs") else None
    asked = [("comm == \"spans\" && tid == pid", 300), ("comm =~ \"sp*s\"", 300), ("comm != \"spans\"", 0),
             ("tid != pid", 0), ("uid == 0 && gid == 0", 300), ("uid == 1 || gid == 1", 0), ("cpu < 0", 0),
             ("nsecs - duration > 0 && end.arg0 == arg0 && pid > 1", 300)]
    asked += [(f"cgroup == {cgroup}", 300), (f"cgroup == {cgroup} + 1", 0)] if cgroup else []
    for where, spans in asked:
        trace = traced(run, program, "across 300", *pair, "--where", where, *AT_ONCE)
        check_equal(len(trace.spans), spans, where)
        accounts_add_up(trace)


@scenario
def numbers_of_processes_in_a_pid_namespace_are_those_it_has(run):
    """The tracer is in one of its own: what events say, questions and keys mean, and the program says of itself, too."""
    require_program("unshare")
    program = build(run)
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    begin, end = SPAN[0].format(program), SPAN[2].format(program)
    log = run.dir / "own"

    def told(*words):
        command = ["sh", "-c", f"echo $$ > {log}; exec {program} across 100"]
        done = subprocess.run([*inside, run.tool, "-f", "json", *words, "--", *command], capture_output=True, text=True,
                              timeout=120)
        check_equal(done.returncode, 0, done.stderr)
        return int(log.read_text()), [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    pair = [begin, "~~", end, "--pair-by", "arg0"]
    for words, kind in (([begin], "event"), (pair, "span")):
        own, lines = told(*words)
        check(own < 100, f"the first processes of a namespace have small numbers: {own}")
        check_equal({(line["pid"], line["tid"]) for line in lines if line["type"] == kind}, {(own, own)}, f"{kind}s")
        # A command gets the same number again where the tracer has as many threads: as for the same events.
        _, lines = told(*words, "--where", f"pid == {own} && tid == {own}")
        check_equal(sum(line["type"] == kind for line in lines), 100, f"{kind}s asked for by number")
        own, lines = told(*words, "--by", "pid, tid")
        check_equal([(row["key"], row["count"]) for row in lines[-2]["rows"]], [([own, own], 100)], f"keys of {kind}s")
    own, lines = told(*pair, "--latency", "--by", "pid, tid")
    check_equal(lines[-2]["rows"][0]["key"], [own, own], "keys of latencies")


def durations_of(spans):
    return [span["duration_ns"] for span in spans]


def are_the_slowest(shown, count, timed):
    """By what the program itself measured: of each work the shortest and the longest that it can have taken."""
    check_equal((len(shown), len({span["args"][0] for span in shown})), (count, count), "spans that are shown")
    check_equal(durations_of(shown), sorted(durations_of(shown), reverse=True), "their order")
    for span in shown:
        work, thread = span["args"]
        check_equal((span["end_args"], thread), ([work, work % 10_000_000 % 1000 - 300], work // 10_000_000), f"ends of {span}")
        least, most = timed.pop(work)
        check(least <= span["duration_ns"] <= most, f"{least} <= {span['duration_ns']} <= {most}")
    longest = max(timed.items(), key=lambda each: each[1][0])
    check(longest[1][0] <= shown[-1]["duration_ns"], f"it is not shown, and took longer than {shown[-1]}: {longest}")


@scenario
def the_slowest_are_those_by_the_programs_own_clock(run):
    program, each = build(run), PAIRS_EACH // 2
    trace = traced(run, program, f"slow {THREADS} {each}", "--slowest", "20")
    timed = {work: (least, most) for work, least, most in trace.said}
    check_equal(len(timed), THREADS * each, "spans by the program's own count")
    [shown] = trace.slowest
    are_the_slowest(shown, 20, dict(timed))
    accounts_add_up(trace)
    check_equal((trace.begin["paired"], sum(trace.end["lost"].values())), (THREADS * each, 0), "spans")
    check(f"the 20 slowest of {THREADS * each} spans; lost: 0 ring_full" in trace.notices, trace.notices)
    print(f"  {trace.end['events']} of {THREADS * each} spans left the kernel")
    asked = traced(run, program, f"slow 4 {each}", "--slowest", "7", "--where", "arg1 in {1, 2} && duration >= 1us")
    timed = {work: (least, most) for work, least, most in asked.said if work // 10_000_000 in (1, 2)}
    are_the_slowest(asked.slowest[0], 7, timed)
    accounts_add_up(asked)
    check_equal(asked.begin["paired"], 4 * each, "spans")
    check(asked.end["rejected"] >= 2 * each, f"those of the other threads: {asked.end}")


@scenario
def spans_are_added_up_by_the_stacks_that_they_began_with(run):
    """For as long as the program itself measured; what had no row is in the account."""
    program, each = build(run), 300
    trace = traced(run, program, f"slow 4 {each}", "--by", "ustack, arg1", "--sum", "duration", "--where", "arg1 in {1, 2}")
    rows = {row["key"][1]: row for row in trace.tables[-1]["rows"]}
    check_equal(sorted(rows), [1, 2], "threads")
    for thread, row in rows.items():
        check("slow" in [frame.get("function") for frame in row["key"][0]], f"the stack: {row}")
        timed = [(least, most) for work, least, most in trace.said if work // 10_000_000 == thread]
        check_equal((row["count"], len(timed)), (each, each), "spans")
        least, most = (sum(times) for times in zip(*timed))
        check(least <= row["sum"] <= most, f"{least} <= {row['sum']} <= {most}")
    accounts_add_up(trace)
    check_equal((trace.end["events"], trace.end["rejected"]), (2 * each, 2 * each), "the account")
    few = traced(run, program, f"slow 2 {each}", "--by", "ustack, arg0", "--max-rows", "10")
    check_equal((len(few.tables[-1]["rows"]), few.end["events"], few.end["lost"]["table_full"]), (10, 10, 2 * each - 10), "with room for ten rows")
    accounts_add_up(few)


@scenario
def the_slowest_so_far_are_shown_again_and_again(run):
    trace = traced(run, build(run), f"slow 2 {4 * PAIRS_EACH}", "--slowest", "5", "--interval", "0.1")
    check(len(trace.slowest) > 2, f"times: {len(trace.slowest)}")
    for before, after in zip(trace.slowest, trace.slowest[1:]):
        for n, span in enumerate(before):
            check(span in after or durations_of(after)[-1] >= span["duration_ns"], f"{n}: {span} in {after}")
    are_the_slowest(trace.slowest[-1], 5, {work: (least, most) for work, least, most in trace.said})


@scenario
def a_recording_has_the_slowest_of_all_its_spans(run):
    program = build(run)
    file, shown = recorded(run, program, "slow 3 3000")
    spans = [line for line in shown if line["type"] == "span"]
    for where, spans in ((), spans), (("--where", "arg1 == 2"), [span for span in spans if span["args"][1] == 2]):
        wanted = sorted(spans, key=lambda span: (-span["duration_ns"], span["ts"], span["tid"]))
        for count in (1, 10, 1000):
            again = replayed(run, file, "--slowest", str(count), *where)
            check_equal(again.slowest, [wanted[:count]], f"the {count} slowest {where}")
            accounts_add_up(again)
    few = replayed(run, file, "--slowest", "10", "--where", "arg1 == 7")
    check_equal(few.slowest, [[]], "of none")
    lines = subprocess.run([run.tool, "--replay", file, "--slowest", "3", "--print", "end.arg1"], capture_output=True, text=True,
                           timeout=60).stdout.splitlines()
    check_equal(lines[0].split(), ["TOOK", "TIME", "COMMAND", "PID", "TID", "PROBE", "ARGUMENTS"], "heading")
    wanted = sorted((line for line in shown if line["type"] == "span"), key=lambda span: -span["duration_ns"])
    check_equal([line.split()[3:5] + line.split()[-1:] for line in lines[1:]],
                [[str(span["pid"]), str(span["tid"]), f"end.arg1={span['end_args'][1]}"] for span in wanted[:3]], "lines")


@scenario
def the_slowest_calls_are_shown_with_their_stacks(run):
    program = build(run)
    trace = traced(run, program, "nested 5 200", "--slowest", "8", "--ustack", "--print", "depth, work, retval",
                   probes=["ucall:{0}:nested"])
    [probe] = trace.summary["probes"]
    check_equal(probe["hits"], probe["events"] + probe["faster"], f"hits: {probe}")
    check_equal(probe["hits"], 1000, "calls")
    [shown] = trace.slowest
    check_equal(durations_of(shown), sorted(durations_of(shown), reverse=True), "their order")
    check_equal(len(shown), 8, "calls that are shown")
    for call in shown:
        depth, work, result = call["args"]
        check_equal((work % 1000, result), (5 - depth, depth * (depth + 1) // 2), f"{call}")
        check_equal([frame.get("function") for frame in call["ustack"]][:2], ["nested", "nested" if depth < 5 else "main"],
                    f"the stack of {call}")


def rank(durations, permille):
    return sorted(durations)[math.ceil(len(durations) * permille / 1000) - 1]


@scenario
def percentiles_are_within_a_sixteenth_and_the_largest_is_exact(run):
    program = build(run)
    file, _ = recorded(run, program, "pairs 2 4000")
    durations = [span["duration_ns"] for span in replayed(run, file).spans]
    row = replayed(run, file, "--latency").rows()[()]
    check_equal((row["count"], row["max"]), (len(durations), max(durations)), "count and largest")
    for name, permille in (("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)):
        exact = rank(durations, permille)
        check(exact <= row[name] <= exact * 17 / 16, f"{name}: {row[name]}, exactly {exact}")
    live = traced(run, program, "pairs 2 4000", "--latency", "--by", "arg1").rows()
    check_equal({key: row["count"] for key, row in live.items()}, {(0,): 4000, (1,): 4000}, "spans by thread")
    for row in live.values():
        check(0 < row["p50"] <= row["p90"] <= row["p99"] <= row["p99.9"] <= row["max"], f"{row}")


@scenario
def points_of_different_kinds_begin_and_end(run):
    program = build(run)
    for probes in (["usdt:{0}:spans:begin ~~ uretprobe:{0}:nested"], ["uprobe:{0}:nested ~~ usdt:{0}:spans:end"],
                   ["uprobe:{0}:nested ~~ uretprobe:{0}:nested"]):
        trace = traced(run, program, "nested 5 40", probes=probes)
        check_equal(trace.begin["paired"], 200, f"{probes}: {trace.summary}")
        accounts_add_up(trace)
    trace = traced(run, program, "nested 5 40", probes=["raw_tp:sys_enter ~~ raw_tp:sys_exit"])
    check(trace.begin["paired"] > 10, f"system calls: {trace.begin}")
    for span in trace.spans:
        check("end.ret" not in span, "positions")
    accounts_add_up(trace)


WRONG = [
    (["usdt:{0}:spans:begin ~~ usdt:{0}:spans:begin"], [], "both begins and ends"),
    (["usdt:{0}:spans:begin ~~"], [], "missing on one side"),
    (["a:b ~~ c:d ~~ e:f"], [], "'~~' twice"),
    (SPAN, ["--pair-by", "arg7"], "arg7: there is no such argument"),
    (SPAN, ["--pair-by", "arg0 ~~ comm"], "not of the same types"),
    (SPAN, ["--where", "end.arg9 == 1"], "there is no such argument"),
    (SPAN, ["--where", "pid + tid + cpu + uid + gid + cgroup + arg0 > 0"], "more than 6 different values"),
    (SPAN, ["--count"], "--count is of hits"),
    (["ucall:{0}:nested ~~ usdt:{0}:spans:end"], [], "a call is a span itself"),
    (["usdt:{0}:spans:begin"], ["--pair-by", "arg0"], "--pair-by is about spans"),
    (["usdt:{0}:spans:begin"], ["--slowest", "3"], "spans:begin is one moment"),
    (["uretprobe:{0}:nested"], ["--slowest", "3"], "is one moment"),
    (SPAN, ["--slowest", "0"], "--slowest"),
    (SPAN, ["--slowest", "1001"], "--slowest"),
    (SPAN, ["--slowest", "3", "--latency"], "a table has none"),
    (SPAN, ["--slowest", "3", "-M", "5"], "--max-events does not go with it"),
    (SPAN, ["--slowest", "3", "--record", "/dev/null"], "--slowest goes with its --replay"),
    (SPAN, ["--slowest", "3", "--sample", "1/2"], "--slowest looks at all of them"),
    (SPAN, ["--slowest", "3", "--max-rate", "9/s"], "--slowest looks at all of them"),
]


@scenario
def what_makes_no_span_is_refused_with_the_reason(run):
    program = build(run)
    for probes, options, reason in WRONG:
        done = traced(run, program, "pairs 1 1", *options, probes=probes, code=2)
        check(reason in done.stderr, f"{probes} {options}: {done.stderr}")


if __name__ == "__main__":
    main()
