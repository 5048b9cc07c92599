#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Texts that calls are passed: what is asked about, a key or shown is the text at their beginning, whatever became of the
memory by their return. call_texts.c says what it passed, and changes all of it."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import Skip, at_once, check, check_equal, main, require_root, scenario  # noqa: E402

CALLS = 60
# How both ends of a call are seen: one program, or two; by the kernel's return probe, or by RET instructions; in the memory of
# the command alone, which is what the tool does of itself ("auto"), or in everybody's.
WAYS = [["--backend", "auto"], ["--ret-probes"], ["--backend", "auto", "--no-ret-probes"], ["--backend", "perf_uprobe"],
        ["--backend", "perf_uprobe", "--no-ret-probes"], ["--no-ret-probes"]]
CARRIERS = [["--carrier", carrier] for carrier in ("table", "per-link", "ip-hash")]  # no cookie has room for a text
# Those of calls in the kernel, by the prefix.
KERNEL_WAYS = [("kcall", []), ("ksession", []), ("ksession", ["--backend", "kprobe_multi"]),
               ("ksession", ["--backend", "perf_kprobe"]), ("fsession", [])]


def build(run):
    require_root()
    return run.build("call_texts", [HERE / "expr/call_texts.c"], ["-O1", "-g", "-Wno-use-after-free"])


class Traced:
    """What one run told: events and rows by what they say; and what the program said, by function."""

    def __init__(self, lines, log):
        self.events = [line for line in lines if line["type"] == "event"]
        self.tables = [line for line in lines if line["type"] == "table"]
        self.summary = lines[-1] if lines else None  # of a recording there are none
        self.said = collections.defaultdict(list)
        for line in log.splitlines():
            function, _, rest = line.partition(" ")
            self.said[function].append(rest)

    def rows(self):
        return sorted((*row["key"], row["count"]) for row in self.tables[-1]["rows"])

    def args(self):
        return [event["args"] for event in self.events]


def traced(run, program, probe, *options, calls=CALLS):
    """Nothing: this kernel cannot see such calls so."""
    log = run.dir / "said"
    options = [*map(str, options), *at_once([probe], options)]
    done = subprocess.run([run.tool, probe.format(program), "-f", "json", *options, "--", "sh", "-c",
                           f"exec {program} {calls} > {log}"], capture_output=True, text=True, timeout=120)
    if done.returncode != 0 and ("this kernel has no" in done.stderr or "not supported: " in done.stderr):
        return None
    check_equal(done.returncode, 0, f"{options}: {done.stderr}")
    trace = Traced([json.loads(line) for line in done.stdout.splitlines()], log.read_text())
    check_equal(len(trace.said["overwrite"]), calls, "calls that the program says of")
    return trace


def ways_here(run, program):
    """Those of WAYS that this kernel has."""
    return [way for way in WAYS if traced(run, program, OVERWRITE, "--by", "arg1", *way, calls=1)]


def as_rows(texts):
    """One row for each text."""
    return sorted((text, count) for text, count in collections.Counter(texts).items())


OVERWRITE, REUSE, COUNTED, HANDLE, FILL = (f"ucall:{{}}:{name}" for name in ("overwrite", "reuse", "counted", "handle", "fill"))
QUESTIONS = [
    ('str(arg0) == "question 17 of the beginning"', lambda n: n == 17),
    ('str(arg0) != "question 17 of the beginning"', lambda n: n != 17),
    ('str(arg0) =~ "question 1*"', lambda n: str(n)[0] == "1"),
    ('str(arg0) =~ "*4 of the beg*"', lambda n: n % 10 == 4),
    ('str(arg0) =~ "overwritten*"', lambda n: False),
    ('str(arg0) == str(retval)', lambda n: False),
    ('str(arg0) =~ "question 1*" && arg0 != 0 && arg1 > 12 && duration > 0', lambda n: 12 < n < 20),
    ('str(arg0) =~ "question 5*" && str(retval) == "answer 53 of the end"', lambda n: n == 53),
]


def check_questions(run, program, options):
    for where, holds in QUESTIONS:
        trace = traced(run, program, OVERWRITE, "--where", where, "--print", "str(arg0), arg1, str(retval)", *options)
        wanted = [[trace.said["overwrite"][n], n, trace.said["overwritten"][n]] for n in range(CALLS) if holds(n)]
        check_equal(trace.args(), wanted, f"{where} {options}")
        check_equal((trace.summary["rejected"], trace.summary["undecided"]), (CALLS - len(wanted), 0), f"{where} {options}")


def check_each_way(run, check_one):
    """Of seeing returns."""
    program = build(run)
    for way in ways_here(run, program):
        check_one(run, program, way)


def check_each_carrier(run, check_one):
    """With both kinds of returns."""
    program = build(run)
    for carrier in CARRIERS:
        check_one(run, program, carrier)
        check_one(run, program, [*carrier, "--no-ret-probes"])


@scenario
def questions_about_texts_are_answered_by_what_was_passed(run):
    check_each_way(run, check_questions)


@scenario
def questions_are_answered_so_whatever_carries_the_specs(run):
    check_each_carrier(run, check_questions)


def check_rows(run, program, options):
    trace = traced(run, program, OVERWRITE, "--by", "str(arg0)", *options)
    check_equal(trace.rows(), as_rows(trace.said["overwrite"]), f"rows {options}")
    trace = traced(run, program, REUSE, "--by", "str(arg0)", *options)
    check_equal(trace.rows(), as_rows(trace.said["reuse"]), f"rows of memory that is freed {options}")


@scenario
def keys_of_rows_are_the_texts_that_were_passed(run):
    check_each_way(run, check_rows)


@scenario
def keys_are_so_whatever_carries_the_specs(run):
    check_each_carrier(run, check_rows)


VIEWS = [["--latency"], ["--hist", "duration"], ["--max", "arg1"], ["--sum", "arg1"], ["--hist", "arg1"]]


@scenario
def each_kind_of_table_has_them(run):
    program = build(run)
    for view in VIEWS:
        for way in ([], ["--no-ret-probes"]):
            trace = traced(run, program, OVERWRITE, *view, "--by", "str(arg0)", *way)
            check_equal(trace.rows(), as_rows(trace.said["overwrite"]), f"{view} {way}")
    trace = traced(run, program, OVERWRITE, "--by", "str(arg0), arg1 % 2", "--where", 'str(arg0) =~ "*3 of*" && duration > 0')
    wanted = [(text[:47], n % 2, 1) for n, text in enumerate(trace.said["overwrite"]) if n % 10 == 3]
    check_equal(trace.rows(), sorted(wanted), "with a question")
    trace = traced(run, program, OVERWRITE, "--by", "str(arg0), str(retval)")
    texts = zip(trace.said["overwrite"], trace.said["overwritten"])
    check_equal(trace.rows(), sorted((a[:31], b[:31], 1) for a, b in texts), "texts of both ends, of 31 bytes")
    trace = traced(run, program, OVERWRITE, "--distinct", "str(arg0)", "--where", 'str(arg0) =~ "question *"')
    [row] = trace.tables[-1]["rows"]
    check_equal((row["count"], 55 <= row["distinct"] <= 65), (CALLS, True), f"different ones: {row}")
    trace = traced(run, program, OVERWRITE, "--by", "str(arg0), ustack")
    check_equal(sorted(row["key"][0] for row in trace.tables[-1]["rows"]), sorted(text[:39] for text in trace.said["overwrite"]),
                "beside a stack")


@scenario
def calls_are_counted_by_what_was_passed(run):
    program = build(run)
    for way in ([], ["--ret-probes"], ["--no-ret-probes"]):
        for where, holds in QUESTIONS:
            trace = traced(run, program, OVERWRITE, "--count", "--where", where, *way)
            [probe] = trace.summary["probes"]
            wanted = sum(map(holds, range(CALLS)))
            check_equal((probe["hits"] - probe.get("rejected", 0), probe.get("undecided", 0)), (wanted, 0), f"{where} {way}")


@scenario
def texts_with_a_length_and_texts_of_structs_are_kept(run):
    program = build(run)
    for way in ways_here(run, program):
        trace = traced(run, program, COUNTED, "--by", "str(bytes, size)", *way)
        wanted = collections.Counter(bytes.fromhex(text.split()[1]).decode() for text in trace.said["counted"])
        check_equal(trace.rows(), sorted(wanted.items()), f"as many bytes as an argument says {way}")
        trace = traced(run, program, COUNTED, "--where", r'str(bytes, size) =~ "counted\0000*"', "--print", "size", *way)
        check_equal(len(trace.events), sum(bytes.fromhex(text.split()[1])[8:9] == b"0" for text in trace.said["counted"]), "with NULs")
        trace = traced(run, program, HANDLE, "--by", "str(request->path), str(request->method)", *way)
        check_equal(trace.rows(), sorted((*line.split(" "), 1) for line in trace.said["handle"]), f"members {way}")
        where = 'str(request->method) == "GET" && str(request->path) =~ "/path/*0"'
        trace = traced(run, program, HANDLE, "--where", where, "--print", "str(request->path), str(request->method), retval", *way)
        check_equal(trace.args(), [[f"/path/{n}", "GET", n] for n in range(0, CALLS, 10)], where)


@scenario
def a_text_whose_length_is_the_result_is_that_of_the_return(run):
    program = build(run)
    for way in ways_here(run, program):
        trace = traced(run, program, FILL, "--by", "str(to, retval)", *way)
        check_equal(trace.rows(), as_rows(trace.said["fill"]), f"keys {way}")
        trace = traced(run, program, FILL, "--where", 'str(to, retval) =~ "filled 3*"', "--print", "str(to, retval)", *way)
        check_equal(trace.args(), [[text] for text in trace.said["fill"] if text.startswith("filled 3")], f"events {way}")
        trace = traced(run, program, FILL, "--by", "str(to)", *way)
        check_equal(trace.rows(), [("nothing of worth", CALLS)], f"without the length it is that of the beginning {way}")


@scenario
def what_comes_to_be_where_an_argument_points_to_is_no_text_that_was_passed(run):
    program = build(run)
    for way in ways_here(run, program):
        trace = traced(run, program, "ucall:{}:appear", "--strings", "auto", *way)
        said = [int(line.split()[0]) for line in trace.said["appear"]]
        check_equal(trace.args(), [[address, n] for n, address in enumerate(said)], f"the words {way}")
        check("appeared" not in json.dumps(trace.events), f"the words alone {way}: {trace.events[0]}")
        trace = traced(run, program, "ucall:{}:appear", "--where", 'str(where) =~ "it*"', *way)
        check_equal((len(trace.events), trace.summary["undecided"]), (0, CALLS), f"a question about it {way}")


@scenario
def a_longer_text_than_is_kept_decides_what_its_beginning_does(run):
    program = build(run)
    short = ["--string-size", "16", "--print", "arg1"]
    trace = traced(run, program, OVERWRITE, "--where", 'str(arg0) =~ "*of the end"', *short)
    check_equal((len(trace.events), trace.summary["rejected"], trace.summary["undecided"]), (0, 0, CALLS), "its end is asked about")
    trace = traced(run, program, OVERWRITE, "--where", 'str(arg0) == "question"')
    check_equal((len(trace.events), trace.summary["rejected"], trace.summary["undecided"]), (0, CALLS, 0), "its beginning")
    trace = traced(run, program, OVERWRITE, "--where", 'str(arg0) =~ "question 7*"', "--string-size", "80", "--print", "arg1")
    check_equal(trace.args(), [[7]], "a prefix")


@scenario
def what_a_record_has_no_place_for_is_refused_with_the_reason(run):
    """A record has each text once, up to its NUL or so many bytes of it."""
    program = build(run)
    for probe, shown, where in ((COUNTED, "str(bytes)", 'str(bytes, size) == "x"'), (FILL, "str(to, retval)", 'str(to) == "x"')):
        done = subprocess.run([run.tool, probe.format(program), "--print", shown, "--where", where, "--", program, "1"],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 2, f"{shown} {where}: {done.stderr}")
        check("it is asked about with another length than it is shown with" in done.stderr, done.stderr)


@scenario
def a_recording_answers_the_same(run):
    program = build(run)
    recording = run.dir / "recording"
    trace = traced(run, program, OVERWRITE, "--print", "str(arg0), arg1, str(retval)", "--record", recording)

    def replayed(*options):
        done = subprocess.run([run.tool, "--replay", recording, "-f", "json", *options], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    lines = replayed("--by", "str(arg0)")
    check_equal(sorted((*row["key"], row["count"]) for row in lines[-2]["rows"]), as_rows(trace.said["overwrite"]), "rows")
    for where, holds in QUESTIONS:
        check_equal(replayed("--where", where)[-1]["events"], sum(map(holds, range(CALLS))), where)


@scenario
def a_buffer_that_the_kernel_fills_is_asked_about_as_it_was_given(run):
    program = build(run)
    ways = 0
    for prefix, way in KERNEL_WAYS:
        probe, mine = f"{prefix}:vfs_read", 'comm == "call_texts" && count == 7'
        said = [f"asked {n}" for n in range(20)]
        trace = traced(run, program, probe, "--where", mine, "--by", "str(buf)", *way, calls=20)
        if trace is None:
            continue
        ways += 1
        check_equal(trace.rows(), as_rows(said), f"rows {prefix} {way}")
        trace = traced(run, program, probe, "--where", f'{mine} && str(buf) =~ "asked 1*"', "--print",
                       "str(buf), retval", *way, calls=20)
        check_equal(trace.args(), [[text, 7] for text in said if text.startswith("asked 1")], f"events {prefix} {way}")
        trace = traced(run, program, probe, "--where", f'{mine} && str(buf, retval) == "what th"', "--print",
                       "str(buf, retval)", *way, calls=20)
        check_equal(trace.args(), [["what th"]] * 20, f"of the length that was read {prefix} {way}")
    if ways == 0:
        raise Skip("this kernel has neither kprobes nor trampolines")


if __name__ == "__main__":
    main()
