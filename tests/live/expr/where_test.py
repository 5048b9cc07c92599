#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--where: hits count that the program itself says are meant, and of the others it is known how many there were."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from where_hits import PROBE, QUESTIONS, Hit, build, expect  # noqa: E402
from harness import AT_ONCE, attach_at_once, check, check_equal, main, scenario  # noqa: E402

attach_at_once()


def traced(run, program, probe, where, *options):
    log = run.dir / "said"
    result = run.trace(probe.format(program), "--where", where, *options,
                       command=["sh", "-c", f"exec {program} > {log}"])
    result.check_code(0)
    hits = [Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    check_equal(len(hits), 500, "lines of the program")
    return result, hits


@scenario
def events_are_those_that_the_program_says_the_question_means(run):
    program = build(run)
    for where, holds in QUESTIONS:
        result, hits = traced(run, program, "usdt:{}:" + PROBE, where)
        expect(result, hits, holds, lambda hit: hit.short)


@scenario
def a_length_is_an_argument(run):
    program = build(run)
    result, hits = traced(run, program, "usdt:{}:" + PROBE, 'str(arg3, arg2) =~ "name-[35]*"')
    expect(result, hits, lambda h: h.byte >= 6 and h.name[5] in "35", lambda hit: hit.short)


@scenario
def words_for_the_probe_are_answered_for_each_of_them(run):
    program = build(run)
    log = run.dir / "said"
    for where, wanted in (('name == "numbers"', [0, 500]), ('provider == "uprobe"', [500, 0]),
                          ('name =~ "s*" || arg0 < 0', [500, 250])):
        done = subprocess.run([run.tool, f"uprobe:{program}:serve", f"usdt:{program}:{PROBE}", "--count", "--where", where,
                               *AT_ONCE, "-f", "json", "--", "sh", "-c", f"exec {program} > {log}"], capture_output=True, text=True,
                              timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        probes = json.loads(done.stdout.splitlines()[-1])["probes"]
        found = {probe["probe"].rsplit(":", 1)[-1]: probe["hits"] - probe["rejected"] for probe in probes}
        check_equal([found["serve"], found["numbers"]], wanted, where)


@scenario
def every_carrier_and_backend_asks_the_same(run):
    program = build(run)
    where, holds = "arg0 < -200 && str(arg3) == \"name-3-of-many-that-are-longer\" && arg4 < 0.5", \
        lambda h: h.short < -200 and h.name.startswith("name-3") and h.real < 0.5
    for carrier in ("table", "per-link", "ip-hash"):
        for backend in ("uprobe_multi", "perf_uprobe"):
            result, hits = traced(run, program, "usdt:{}:" + PROBE, where, "--carrier", carrier, "--backend", backend)
            expect(result, hits, holds, lambda hit: hit.short)


@scenario
def members_of_what_arguments_point_to_are_asked_for_without_being_shown(run):
    for level in ("-O0", "-O2"):
        program = build(run, level)
        where = "req->peer->port > 20000 && req->peer->flags < 0"
        result, hits = traced(run, program, "uprobe:{}:serve", where, "--print", "step")
        # Every fifth has no peer: there is no answer.
        expect(result, hits, lambda h: None if h.i % 5 == 0 else h.port > 20000 and h.flags < 0, lambda hit: hit.step)
        check(all(len(event["args"]) == 1 for event in result.events), "only what is printed is shown")


@scenario
def calls_are_asked_about_at_their_end(run):
    program = build(run)
    result, hits = traced(run, program, "ucall:{}:serve", "retval < 0 && step != 2", "--print", "step")
    expect(result, hits, lambda h: h.result < 0 and h.step != 2, lambda hit: hit.step)
    long_ones, _ = traced(run, program, "ucall:{}:serve", "duration > 1h")
    check_equal(len(long_ones.events), 0, "calls of an hour")
    all_of_them, _ = traced(run, program, "ucall:{}:serve", "duration < 1h")
    check_equal(len(all_of_them.events), 500, "calls")


@scenario
def calls_are_counted_at_their_end_where_only_that_knows_the_answer(run):
    program = build(run)
    for where, holds in (("retval < 0 && step != 2", lambda h: h.result < 0 and h.step != 2),
                         ("duration > 0 && step == 2", lambda h: h.step == 2), ("duration > 1h", lambda h: False),
                         ("step == 3", lambda h: h.step == 3)):
        result, hits = traced(run, program, "ucall:{}:serve", where, "--count")
        counts, wanted = result.summary["probes"][0], sum(map(holds, hits))
        check_equal((counts["hits"], counts["rejected"], counts["undecided"]), (500, 500 - wanted, 0), where)
        check_equal((counts["lost"]["calls_full"], counts["lost"]["unfinished"]), (0, 0), where)
        shown = subprocess.run([run.tool, f"ucall:{program}:serve", "--count", "--where", where, *AT_ONCE, "--", program],
                               capture_output=True, text=True, timeout=60)
        check((f" {wanted}  ucall:" in shown.stdout) == (wanted > 0), f"{where}: {wanted} in {shown.stdout}")
        check(f"{wanted} of 500 hits counted" in shown.stderr, f"{where}: {wanted} in {shown.stderr}")
    # Of a call that does not end there is no answer: it is in no count.
    result, _ = traced(run, program, "ucall:{}:main", "duration < 1h", "--count")
    counts = result.summary["probes"][0]
    check_equal((counts["hits"] - counts["lost"]["unfinished"], counts["rejected"]), (counts["hits"] and 1, 0), counts)


@scenario
def counts_are_of_what_the_question_means(run):
    program = build(run)
    log = run.dir / "said"
    done = subprocess.run([run.tool, f"usdt:{program}:{PROBE}", "--count", "--where", "arg0 < 0", "-f", "json", "--",
                           "sh", "-c", f"exec {program} > {log}"], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    check('"hits":500,"rejected":250,"undecided":0' in done.stdout.splitlines()[-1], done.stdout)


WRONG = [
    ("arg0 <", "expected a value at column 7"),
    ("arg9 == 1", "arg9: there is no such argument"),
    ('arg0 == "x"', "arg0 is no text"),
    ("arg4 + 1 > 2", "a real, which can only be compared"),
    ("duration > 10ms", "only calls have one"),
    ("str(arg3, 5) == \"name-\"", "the length of a text is an argument"),
    ("str(arg3 == 1", "a length, or ')' at column 14"),
    ('arg3 =~ "' + 63 * "?" + '"', "a pattern of more than 62 characters"),
    ("arg3 =~ comm", "a text matches a literal"),
    ("hex(arg0) == 3", "how a key of a table is shown"),
    ("name", "neither true nor false"),
]


@scenario
def what_cannot_be_asked_is_refused_with_the_place_and_the_reason(run):
    program = build(run)
    for where, reason in WRONG:
        done = subprocess.run([run.tool, f"usdt:{program}:{PROBE}", "--where", where, "--", program],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 2, where)
        check(reason in done.stderr, f"{where}: {done.stderr}")


if __name__ == "__main__":
    main()
