#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is asked through usdt-broker is answered as it is without it: spans, tables by stacks, questions about elements of
lists, alternatives, and texts as they were where a call or span began. The programs say themselves what is true."""

import collections
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import (ANNA, BERT, Changing, Service, as_user, build_changing, build_shared, own_program,  # noqa: E402
                     refuses)
from harness import check, check_equal, main, scenario  # noqa: E402
from puppet import HERE, Puppet, probe_of  # noqa: E402

CALLS = 60


class Asker:
    """A service, and a program of a user's that says what it does into a file."""

    def __init__(self, run, source, flags, libs=(), owner=ANNA):
        self.service = Service(run)
        compiler = "g++" if str(source).endswith(".cpp") else "gcc"
        self.program = run.build(pathlib.Path(source).stem, [HERE / source], flags, compiler, libs=list(libs))
        self.program.chmod(0o755)
        os.chown(self.program, owner, owner)
        self.room = run.dir / "room"
        self.room.mkdir()
        os.chown(self.room, ANNA, ANNA)

    def ask(self, probes, mode, *options):
        """The trace, and the lines that the program said."""
        log = self.room / "said"
        names = [probe.format(self.program) for probe in probes]
        result = self.service.trace(ANNA, *names, *options, "--", "sh", "-c", f"exec {self.program} {mode} > {log}")
        result.check_code(0)
        return result, log.read_text().splitlines()


def spans(run):
    return Asker(run, "spans.c", ["-O2", "-g"], ["-lpthread"])


def rows_of(result):
    return [row for record in result.records if record["type"] == "table" for row in record["rows"]]


PAIRS = ["usdt:{0}:spans:begin", "~~", "usdt:{0}:spans:end"]
TEXTS = ["usdt:{0}:spans:ask~~usdt:{0}:spans:answer"]


@scenario
def spans_have_what_both_their_ends_said(run):
    result, _ = spans(run).ask(PAIRS, "pairs 2 300")
    ended = [record for record in result.records if record["type"] == "span"]
    check_equal(len(ended), 600, "spans")
    for span in ended:
        work, thread = span["args"]
        check_equal(span["end_args"], [work, work % 10_000_000 % 1000 - 300], f"the end of {span}")
        check_equal(work // 10_000_000, thread, "the thread of the work")
    begin, end = result.summary["probes"]
    check_equal((begin["paired"], begin["in_flight"], end["unmatched"]), (600, 0, 0), "accounts")


@scenario
def spans_of_other_threads_nested_ones_and_those_without_an_end_are_paired_as_without_a_broker(run):
    asker = spans(run)
    result, _ = asker.ask(PAIRS, "across 2000", "--pair-by", "arg0 ~~ arg0")
    ended = [record for record in result.records if record["type"] == "span"]
    check_equal(sorted((span["args"][0], *span["end_args"]) for span in ended), [(n, n, 3 * n) for n in range(2000)], "spans")
    result, said = asker.ask(PAIRS, "unmatched 3000", "--pair-by", "arg0")
    begins, ends, paired = map(int, said[0].split())
    begin, end = result.summary["probes"]
    check_equal((begin["hits"], begin["paired"], end["hits"], end["unmatched"]), (begins, paired, ends, ends - paired), "accounts")
    result, _ = asker.ask(PAIRS, "nested 20 20")
    check_equal(len([record for record in result.records if record["type"] == "span"]), 400, "nested spans")


@scenario
def tables_of_spans_have_exact_sums(run):
    asker = spans(run)
    result, said = asker.ask(PAIRS, "pairs 4 5000", "--by", "arg1", "--sum", "end.arg1", "--where", "duration > 0")
    rows = {row["key"][0]: row for row in rows_of(result)}
    for line in said:
        thread, pairs, total, _ = map(int, line.split())
        check_equal((rows[thread]["count"], rows[thread]["sum"]), (pairs, total), f"thread {thread}")
    result, said = asker.ask(PAIRS, "pairs 4 500", "--by", "arg1", "--max", "arg0 + end.arg1")
    rows = {row["key"][0]: row for row in rows_of(result)}
    for line in said:
        thread, _, _, most = map(int, line.split())
        check_equal(rows[thread]["max"], most, f"largest of thread {thread}")


@scenario
def texts_of_a_spans_beginning_are_asked_about_as_they_were_there(run):
    """The program overwrites each before its end."""
    asker = spans(run)
    said = [f"question {n} of the beginning" for n in range(200)]
    for where, wanted in [('str(arg0) == "question 17 of the beginning"', [17]),
                          ('str(arg0) =~ "question 1? of*"', list(range(10, 20))),
                          ('str(arg0) =~ "question 19*" && arg0 != 0 && end.arg0 > 192', list(range(193, 200))),
                          ('str(arg0) == str(end.arg1)', []), ('str(end.arg1) =~ "answer 19*"', [19, *range(190, 200)])]:
        result, _ = asker.ask(TEXTS, "texts 200", "--where", where, "--print", "str(arg0), end.arg0")
        ended = [record["args"] for record in result.records if record["type"] == "span"]
        check_equal(ended, [[said[n], n] for n in wanted], where)
    result, _ = asker.ask(TEXTS, "texts 200", "--by", "str(arg0)", "--sum", "end.arg0")
    check_equal(sorted((row["key"][0], row["sum"]) for row in rows_of(result)), sorted((said[n], n) for n in range(200)), "rows")


@scenario
def texts_that_calls_were_passed_are_asked_about_as_they_were_passed(run):
    # It is root's: the broker reads its debug information for itself.
    asker = Asker(run, "expr/call_texts.c", ["-O1", "-g", "-Wno-use-after-free"], owner=0)
    probe = ["ucall:{0}:overwrite"]
    for where, holds in [('str(arg0) == "question 17 of the beginning"', lambda n: n == 17),
                         ('str(arg0) =~ "*4 of the beg*"', lambda n: n % 10 == 4),
                         ('str(arg0) =~ "overwritten*"', lambda n: False),
                         ('str(arg0) =~ "question 5*" && str(retval) == "answer 53 of the end"', lambda n: n == 53)]:
        result, said = asker.ask(probe, CALLS, "--where", where, "--print", "str(arg0), arg1")
        passed = [line.split(" ", 1)[1] for line in said if line.startswith("overwrite ")]
        check_equal([event["args"] for event in result.events], [[passed[n], n] for n in range(CALLS) if holds(n)], where)
        counted, _ = asker.ask(probe, CALLS, "--where", where, "--count")
        check_equal(counted.summary["hits"] - counted.summary["rejected"], len(list(filter(holds, range(CALLS)))), f"--count {where}")
    result, _ = asker.ask(probe, CALLS, "--by", "str(arg0)")
    check_equal(sorted((row["key"][0], row["count"]) for row in rows_of(result)), sorted((text, 1) for text in passed), "rows")
    result, said = asker.ask(["ucall:{0}:counted"], CALLS, "--by", "str(arg0, arg1)")
    check_equal(sum(row["count"] for row in rows_of(result)), CALLS, "texts with a length")


@scenario
def tables_by_stacks_have_the_functions_that_called(run):
    service = Service(run)
    program = own_program(run, ANNA, flags=["-O0", "-fno-omit-frame-pointer"])
    traced = Puppet(run, program, argv=[*as_user(ANNA), program])
    library, changing = build_shared(run), build_changing(run)
    other = Changing(run, changing, BERT)
    tracing = service.start(ANNA, probe_of(program), "--by", "ustack", "--sum", "arg0", "-p", traced.pid)
    traced.order("fire:5")
    other.order("fire:100:0")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    [row] = rows_of(result)
    check_equal((row["count"], row["sum"]), (5, 10), f"the one row {row}")
    names = [frame.get("function", "") for frame in row["key"][0]]
    check(names[0] == "beat" and "main" in names, f"functions {names}")
    own = Changing(run, changing, ANNA)
    calls = service.start(ANNA, f"ucall:{library}:pass", "--by", "ustack, arg0", "--max", "retval", "-p", own.pid)
    own.order("fire:3:7")
    own.order("fire:3:7")
    calls.signal(signal.SIGINT)
    rows = rows_of(calls.finish())
    check_equal(sorted((row["key"][1], row["count"], row["max"]) for row in rows), [(n, 2, 2 * n) for n in (7, 8, 9)], "rows")
    for row in rows:
        check("fire_hits" in [frame.get("function", "") for frame in row["key"][0]], f"{row}")


@scenario
def questions_are_about_elements_that_there_are(run):
    asker = Asker(run, "resolve/lists.cpp", ["-g", "-O2", "-std=c++20"], [])
    probe = ["uprobe:{0}:vectors*"]
    for asked, shown, undecided in [("by_reference[1] == -2", [[1, -2, 3]], 1), ("by_reference[3] != 12345", [], 2),
                                    ("by_reference.size == 3", [[1, -2, 3]], 0),
                                    ("by_reference.size == 0 || by_reference[0] > 0", [[1, -2, 3], []], 0),
                                    ("by_copy.size > 3 && by_copy[99] < 0", [[1, -2, 3]], 0)]:
        result, _ = asker.ask(probe, "", "--where", asked, "--print", "by_reference")
        check_equal([event["args"][0] for event in result.events], shown, asked)
        check_equal(result.summary["undecided"], undecided, asked)
    result, _ = asker.ask(probe, "", "--by", "by_reference.size", "--sum", "bytes[1] + bytes.size")
    check_equal(sorted((row["key"], row["sum"]) for row in rows_of(result)), [([0], 258), ([3], 258)], "keys and sums")
    result, _ = asker.ask(["uprobe:{0}:kinds*"], "", "--where", 'texts[0] == "one"', "--print", "texts[0]")
    check_equal([event["args"] for event in result.events], [["one"]], "texts of a list")


OPTIONALS = """
#include <optional>
__attribute__((noinline)) void take(const std::optional<int>& maybe) { __asm__ volatile("" : : "r"(&maybe) : "memory"); }
int main() {
  for (int n = 0; n < 10; ++n) take(n % 2 ? std::optional<int>(n) : std::nullopt);
}
"""


@scenario
def questions_about_alternatives_are_undecided_where_they_are_not_there(run):
    source = run.dir / "optionals.cpp"
    source.write_text(OPTIONALS)
    asker = Asker(run, source, ["-g", "-O1", "-std=c++20"])
    probe = ["uprobe:{0}:take*"]
    result = asker.service.trace(ANNA, probe[0].format(asker.program), "--where", "maybe.value > 4", "--", asker.program)
    result.check_code(0)
    check_equal((len(result.events), result.summary["undecided"]), (3, 5), "5, 7 and 9; of five calls there is none")


@scenario
def a_question_may_be_long_and_one_that_is_too_long_is_refused_with_a_sentence(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own = Changing(run, program, ANNA)
    long = "arg0 in {" + ", ".join(str(2 * n) for n in range(300)) + "}"
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "--where", long, "-p", own.pid)
    own.order("fire:100:550")
    tracing.signal(signal.SIGINT)
    check_equal([event["args"][0] for event in tracing.finish().events], list(range(550, 599, 2)), "even ones below 600")
    # Each number that it is compared with takes the whole of it once more.
    too_long = f"{'~' * 50}cpu in {{{', '.join(map(str, range(200)))}}}"
    refuses(service.trace(ANNA, f"usdt:{library}:shared:hit", "--where", too_long, "-p", own.pid),
            "through usdt-broker: a question of", "at most 8192")


@scenario
def of_maps_a_user_gets_no_more_within_an_hour_than_the_share_over_connections_that_are_closed(run):
    service = Service(run, "--memory-of-user", "20")
    program = own_program(run, ANNA)
    options = ["--ring-size", "4", probe_of(program), "--", program, "fire:2"]
    granted = collections.Counter(service.trace(ANNA, *options).code == 0 for _ in range(6))
    check_equal(granted[True], 4, f"traces with a ring of 4 MiB, of 20 in all: {granted}")
    refuses(service.trace(ANNA, *options), "within the last hour", "MiB", "--memory-of-user")
    theirs = own_program(run, BERT, "theirs")
    service.trace(BERT, "--ring-size", "4", probe_of(theirs), "--", theirs, "fire:2").check_accounted(2, lost=0)


@scenario
def who_learns_to_trace_may_do_so_for_an_hour(run):
    """A trace a minute, of calls and their values, is what the usual share is enough for."""
    share, traces = 1024, 60
    service = Service(run, "--memory-of-user", str(share // traces))
    library, program = build_shared(run), build_changing(run)
    own = Changing(run, program, ANNA)
    for asked in (["--print", "arg0, retval"], ["--latency"], ["--by", "arg0"]):
        result = service.trace(ANNA, f"ucall:{library}:pass", "-p", own.pid, "-d", "0.1", *asked)
        result.check_code(0)
        service.process.terminate()
        service.process.wait()
        service.socket.unlink(missing_ok=True)
        service = Service(run, "--memory-of-user", str(share // traces))


if __name__ == "__main__":
    main()
