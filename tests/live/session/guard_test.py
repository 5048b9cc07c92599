#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guards: what is left out on purpose is counted exactly, and what is estimated is what the program says it did."""

import math
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import LONG, Result, check, check_equal, main, require_root, scenario  # noqa: E402

PROBE = "usdt:{}:guards:work"
THREADS = 4
# Of each thread. An estimate from a tenth of 10^6 hits is known to 0.3 %, and four times as well from all of the long form.
HITS = 1_000_000 if LONG else 100_000
SURE = 5  # standard deviations: one run in a million is further off by chance


def build(run, source="session/guards.c"):
    require_root()
    return run.build(pathlib.Path(source).stem, [HERE / source], ["-O2", "-g"], libs=["-lpthread"])


class Traced(Result):
    """What a run told, and what the program said of itself."""

    said = ()

    @property
    def rows(self):
        table = [record for record in self.records if record["type"] == "table"][-1]
        return {tuple(row["key"]): row for row in table["rows"]}

    @property
    def probes(self):
        return self.summary["probes"]


def traced(run, program, arguments, probe, *options, code=0):
    log = run.dir / "said"
    probes = [each.format(program) for each in ([probe] if isinstance(probe, str) else probe)]
    done = subprocess.run([run.tool, *probes, "-f", "json", *map(str, options), "--", "sh", "-c",
                           f"exec {program} {arguments} > {log}"], capture_output=True, text=True, timeout=300)
    check_equal(done.returncode, code, done.stderr)
    result = Traced(done.returncode, done.stdout, done.stderr)
    result.said = [line.split() for line in log.read_text().splitlines()] if code == 0 else []
    return result


def accounts_add_up(account):
    """Each hit is in one number."""
    parts = [account.get(name, 0) for name in ("events", "not_sampled", "rejected", "undecided", "held_back")]
    check_equal(account["hits"], sum(parts) + sum(account["lost"].values()), f"hits: {account}")


def about(estimate, truth, deviation, what):
    check(abs(estimate - truth) <= SURE * deviation,
          f"{what}: {estimate} estimated, {truth} said ({(estimate - truth) / truth:+.3%}, sure to {SURE * deviation / truth:.3%})")


def deviation(weight, squares):
    """Of a sum of values whose squares sum up to that, each of which is there one time in `weight`, and then so often."""
    return math.sqrt((weight - 1) * squares)


@scenario
def a_sample_leaves_hits_out_by_chance_and_counts_them_exactly(run):
    result = traced(run, build(run), f"{THREADS} {HITS}", PROBE, "--by", "arg1", "--sum", "arg2", "--sample", "1/10")
    account = result.probes[0]
    check_equal(account["hits"], THREADS * HITS, "hits are counted, sampled or not")
    accounts_add_up(account)
    table = [record for record in result.records if record["type"] == "table"][-1]
    check_equal((table["sampled"], result.summary["sampled"]), (10, 10), "what says that it is estimated")
    check_equal(sum(row["count"] for row in result.rows.values()), 10 * account["events"], "weights of all rows")
    squares = sum(value * value for value in range(100)) * HITS // 100
    for thread, hits, total, _ in (map(int, line) for line in result.said[:THREADS]):
        row = result.rows[(thread,)]
        about(row["count"], hits, deviation(10, hits), f"hits of thread {thread}")
        about(row["sum"], total, deviation(10, squares), f"sum of thread {thread}")
    about(sum(row["count"] for row in result.rows.values()), THREADS * HITS, deviation(10, THREADS * HITS), "all hits")


@scenario
def a_sample_knows_no_rhythm(run):
    """The program does a hundred things in turn, and one in a hundred is sampled: each of them is, in turn."""
    result = traced(run, build(run), f"{THREADS} {HITS}", PROBE, "--by", "arg2", "--sample", "1/100")
    of_each = THREADS * HITS // 100
    check_equal(len(result.rows), 100, "different values")
    for key, row in result.rows.items():
        about(row["count"], of_each, deviation(100, of_each), f"hits with {key}")


@scenario
def each_event_says_how_many_it_stands_for(run):
    result = traced(run, build(run), "2 5000", PROBE, "--sample", "1/20", "--print", "arg1")
    events = [record for record in result.records if record["type"] == "event"]
    check_equal({event["weight"] for event in events}, {20}, "weights")
    check_equal(result.probes[0]["events"], len(events), "events")
    accounts_add_up(result.probes[0])
    about(sum(event["weight"] for event in events), 10_000, deviation(20, 10_000), "hits")
    check("not sampled (--sample 1/20): each event stands for 20" in result.stderr, result.stderr)


@scenario
def a_question_is_asked_of_the_sample(run):
    program = build(run)
    result = traced(run, program, f"{THREADS} {HITS}", PROBE, "--where", "arg2 < 25", "--count", "--sample", "1/10")
    account = result.probes[0]
    check_equal(account["hits"], THREADS * HITS, "hits")
    held = account["hits"] - account["not_sampled"] - account["rejected"] - account["undecided"]
    about(10 * held, THREADS * HITS // 4, deviation(10, THREADS * HITS // 4), "hits that it holds for")
    text = subprocess.run([run.tool, PROBE.format(program), "--where", "arg2 < 25", "--count", "--sample", "1/10", "--",
                           program, "1", "10000"], capture_output=True, text=True, timeout=60)
    check("estimated from one in 10 hits" in text.stdout, text.stdout)


@scenario
def calls_are_sampled_at_their_beginning_and_are_whole(run):
    for options in ([], ["--by", "retval", "--sum", "duration"]):
        result = traced(run, build(run), "4 10000", "ucall:{}:serve", "--sample", "1/8", *options)
        account = result.probes[0]
        check_equal((account["hits"], account["lost"]["unfinished"]), (40_000, 0), "calls")
        accounts_add_up(account)
        about(8 * account["events"], 40_000, deviation(8, 40_000), "calls")
        for event in (record for record in result.records if record["type"] == "event"):
            check(event["duration_ns"] > 0, f"both ends: {event}")


@scenario
def spans_are_sampled_at_their_beginning_and_end_where_they_began(run):
    span = ["usdt:{}:spans:begin", "~~", "usdt:{}:spans:end"]
    result = traced(run, build(run, "spans.c"), "nested 60 200", span, "--sample", "1/4")
    begin, end = result.probes[:2]
    spans = [record for record in result.records if record["type"] == "span"]
    for each in spans:
        work, depth = each["args"]
        check_equal(each["end_args"], [work, depth * (depth + 1) // 2], f"the end of {each}")
    check_equal(begin["hits"], begin["paired"] + begin["not_sampled"] + begin["in_flight"] + begin["unpaired"] +
                begin["lost"]["calls_full"] + begin["lost"]["abandoned"], f"hits that begin: {begin}")
    check_equal((begin["paired"], begin["in_flight"], end["unmatched"]), (len(spans), 0, 0), "spans")
    check_equal((end["hits"], end["not_sampled"]), (60 * 200, begin["not_sampled"]), "ends")
    accounts_add_up(end)
    about(4 * len(spans), 60 * 200, deviation(4, 60 * 200), "spans")


@scenario
def no_more_events_a_second_come_than_are_asked_for(run):
    rate = 1000
    result = traced(run, build(run), f"2 {4 * HITS}", PROBE, "--max-rate", f"{rate}/s", "--print", "arg1")
    account, took = result.probes[0], float(result.said[-1][0])
    check_equal(account["hits"], 8 * HITS, "hits")
    accounts_add_up(account)
    # A second's worth at once, then as time goes by; each processor may once be early by one.
    most, least = rate * (1 + took) + os.cpu_count(), rate * took
    check(account["events"] <= most, f"{account['events']} events in {took:.2f} s, at most {most:.0f}")
    check(account["events"] >= least * 0.99, f"{account['events']} events in {took:.2f} s, at least {least:.0f}")
    check(f"held back (--max-rate {rate}/s)" in result.stderr, result.stderr)


@scenario
def nothing_is_held_back_of_a_program_that_keeps_to_the_rate(run):
    # 200 hits at once, four times a second.
    result = traced(run, build(run), "1 800 250000 200", PROBE, "--max-rate", "1000/s", "--print", "arg1")
    account = result.probes[0]
    check_equal((account["events"], account["held_back"]), (800, 0), "events")


@scenario
def all_guards_together_leave_each_hit_in_one_account(run):
    result = traced(run, build(run), f"{THREADS} {HITS}", [PROBE, "ucall:{}:serve"], "--sample", "1/3", "--max-rate",
                    "200/s", "--where", "tid % 2 == 0 || cpu >= 0", "--max-events", 300)
    for account in result.probes:
        accounts_add_up(account)
    check_equal(result.summary["events"], 300, "events")
    check(min(result.summary["not_sampled"], result.summary["held_back"]) > 0, f"guards: {result.summary}")


@scenario
def guards_that_guard_nothing_are_refused(run):
    program = build(run)
    for options, why in ((["--sample", "1/10", "--count"], "counts every hit"), (["--sample", "10"], "not 1/N"),
                         (["--sample", "1/0"], "not 1/N"), (["--sample", "1/1000001"], "not 1/N"),
                         (["--max-rate", "10/s", "--by", "arg1"], "about events"),
                         (["--max-rate", "10/s", "--count"], "about events"), (["--max-rate=-1/s"], "not N/s"),
                         (["--max-rate", "0/s"], "not N/s"), (["--max-rate", "10/m"], "not N/s")):
        result = traced(run, program, "1 1", PROBE, *options, code=2)
        check(why in result.stderr, f"{options}: {result.stderr}")


main()
