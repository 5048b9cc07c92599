#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Comma-separated values, hits a second, threads in lines: judged by Python's csv, by JSON of the same trace, and by what
the program says of itself."""

import csv
import io
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const char *const texts[] = {"plain", "with, comma", "\"quoted\"", "two\nlines", "", "a;b|c\td"};
static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void *work(void *of) {
  long n = (long)of;
  printf("thread %ld %ld\n", n, (long)syscall(SYS_gettid));
  fflush(stdout);
  DTRACE_PROBE1(forms, thread, n);
  return NULL;
}
int main(int argc, char **argv) {
  for (int i = 0; i < 60; i++) {
    const char *volatile text = texts[i % 6];
    volatile int number = i - 30;
    volatile double real = i / 8.0;
    DTRACE_PROBE3(forms, hit, number, text, real);
    DTRACE_PROBE1(forms, other, text);
  }
  for (long i = 0; i < 3; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)i);
    pthread_join(thread, NULL);
  }
  DTRACE_PROBE1(forms, thread, 3L);
  /* 1 for 0.6 s, and 2 then, twice as often. */
  long begin = now();
  for (volatile int key = 1; argc > 1 && key <= 2; key++)
    for (long until = now() + 600000000; now() < until; usleep(key == 1 ? 2000 : 500)) DTRACE_PROBE1(forms, beat, key);
  printf("beats %ld\n", now() - begin);
  return argv == NULL;
}
"""


def build(run):
    require_root()
    (run.dir / "forms.c").write_text(PROGRAM)
    return run.build("forms", [run.dir / "forms.c"], ["-O1", "-pthread"])


def said(run, *words):
    done = subprocess.run([run.tool, *map(str, words)], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


def csv_of(run, *words):
    """The last of `words` is the command."""
    said(run, *words[:-1], "-f", "csv", "-o", run.dir / "out.csv", *words[-1])
    return list(csv.DictReader(io.StringIO((run.dir / "out.csv").read_text())))


def json_of(run, *words):
    said(run, *words[:-1], "-f", "json", "-o", run.dir / "out.json", *words[-1])
    return [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]


@scenario
def events_are_lines_of_comma_separated_values(run):
    program = build(run)
    command = ["--", program]
    printed = ["--print", "arg0, str(arg1), arg2"]
    rows = csv_of(run, f"usdt:{program}:forms:hit", *printed, command)
    events = [line for line in json_of(run, f"usdt:{program}:forms:hit", *printed, command) if line["type"] == "event"]
    check_equal(len(rows), 60, "lines")
    for row, event in zip(rows, events):
        check_equal(list(row), ["time", "pid", "tid", "cpu", "comm", "probe", "duration", "arg0", "str(arg1)", "arg2"], "names")
        number, text, real = event["args"]
        check_equal((int(row["arg0"]), row["str(arg1)"], float(row["arg2"])), (number, text, real), "values")
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", row["time"]), row["time"])
        check_equal((row["comm"], row["probe"], row["duration"]), ("forms", "forms:hit", ""), "what every event has")
    rows = csv_of(run, f"usdt:{program}:forms:*", command)
    check_equal(len(rows), 124, "lines of all probes, with arguments of their own")
    check({"arg0", "arg1", "arg2"} <= set(rows[0]), f"{list(rows[0])}")
    check_equal(rows[1]["arg1"], "", "what a probe does not have")


@scenario
def tables_have_the_rows_that_json_has(run):
    program = build(run)
    command = ["--", program]
    for options in (["--by", "str(arg1)", "--sum", "arg0"], ["--by", "str(arg1)", "--hist", "arg0"], ["--lhist", "arg2:0:8:1"],
                    ["--distinct", "arg0"]):
        rows = csv_of(run, f"usdt:{program}:forms:hit", *options, command)
        table = [line for line in json_of(run, f"usdt:{program}:forms:hit", *options, command) if line["type"] == "table"][-1]
        if "buckets" in table["rows"][0]:
            wanted = [(*row["key"], *[float(n) for n in list(bucket.values())]) for row in table["rows"] for bucket in row["buckets"]]
            ours = [(*list(row.values())[:-3], *[float(n) for n in list(row.values())[-3:]]) for row in rows]
        else:
            numbers = [name for name in table["rows"][0] if name not in ("key", "truncated")]
            wanted = [(*row["key"], *[row[name] for name in numbers]) for row in table["rows"]]
            ours = [(*list(row.values())[:-len(numbers)], *[int(n) for n in list(row.values())[-len(numbers):]]) for row in rows]
        check_equal(ours, wanted, f"{options}")
    counted = csv_of(run, f"usdt:{program}:forms:*", "--count", command)
    check_equal({row["probe"].rsplit(":", 1)[1]: int(row["hits"]) for row in counted}, {"hit": 60, "other": 60, "thread": 4}, "counts")


@scenario
def lines_name_the_thread_where_it_is_not_the_first(run):
    program = build(run)
    log = run.dir / "said"
    shown = said(run, f"usdt:{program}:forms:thread", "--", "sh", "-c", f"exec {program} > {log}")
    threads = dict(re.findall(r"^thread (\d+) (\d+)$", log.read_text(), re.M))
    lines = re.findall(r"^\S+ forms +(\d+)(?:/(\d+))? +forms:thread arg0=(\d+)", shown, re.M)
    check_equal(len(lines), 4, shown)
    for pid, tid, number in lines:
        check_equal(tid or pid, threads.get(number, pid), f"the thread of {number}: {shown}")
    check_equal([tid for _, tid, number in lines if number == "3"], [""], "the first thread is the process")


@scenario
def hits_a_second_are_those_of_the_program(run):
    program = build(run)
    log = run.dir / "said"
    command = ["--", "sh", "-c", f"exec {program} beats > {log}"]
    for options in (["--interval", "0.2"], ["--interval", "0.2", "--rate"], ["--rate"]):
        tables = [line for line in json_of(run, f"usdt:{program}:forms:beat", "--by", "arg0", *options, command) if line["type"] == "table"]
        seconds = int(re.search(r"beats (\d+)", log.read_text())[1]) / 1e9
        check(len(tables) >= (3 if "--interval" in options else 1), f"{len(tables)} tables")
        for before, table in zip(tables, tables[1:-1]):
            counts = {row["key"][0]: row["count"] for row in before["rows"]}
            for row in table["rows"]:
                grown = row["count"] - counts.get(row["key"][0], 0)
                check(0.5 * grown <= row["per_second"] * 0.2 <= 1.5 * grown + 1, f"{grown} more, {row['per_second']} a second")
            check(any(row["count"] > counts.get(row["key"][0], 0) for row in table["rows"]) or len(table["rows"]) == 0, "some beat")
        for row in tables[-1]["rows"]:
            check(0.3 * row["count"] <= row["per_second"] * seconds <= 1.1 * row["count"], f"of the whole trace: {row} in {seconds} s")
        if "--rate" in options:
            for table in tables:
                rates = [row["per_second"] for row in table["rows"]]
                check_equal(rates, sorted(rates, reverse=True), "those with most first")
    text = said(run, f"usdt:{program}:forms:beat", "--by", "arg0", "--rate", *command)
    check(re.search(r"^PER SECOND +COUNT +arg0$", text, re.M), text)
    for refused in (["--rate"], ["--rate", "--hist", "arg0"], ["--rate", "--folded"]):
        done = subprocess.run([run.tool, "--explain", f"usdt:{program}:forms:beat", *refused], capture_output=True, text=True)
        check_equal(done.returncode, 2, f"{refused}: {done.stderr}")


NAMESAKES = r"""
#include <sys/sdt.h>
__attribute__((noinline)) long work(long n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(void) {
  for (long i = 0; i < 5; i++) DTRACE_PROBE1(uprobe, work, i);
  for (long i = 0; i < 3; i++) work(i);
  for (long i = 0; i < 2; i++) DTRACE_PROBE1(kretprobe, work, i);
}
"""


LEAVES = r"""
#include <stdio.h>
#include <sys/sdt.h>
static volatile int done;
#define LEAF(name)                                   \
  __attribute__((noinline)) static void name(int i) { \
    DTRACE_PROBE1(leaves, hit, i);                   \
    done = i;                                        \
  }
LEAF(first)
LEAF(second)
LEAF(third)
__attribute__((noinline)) static void between(int which, int i) {
  if (which == 0) first(i);
  if (which == 1) second(i);
  if (which == 2) third(i);
  done = i;
}
int main(void) {
  int hits[3] = {0}, sums[3] = {0};
  for (int i = 0; i < 300; i++) {
    int which = i % 7 < 4 ? i % 2 : 2;
    if (i % 3) between(which, i);
    else if (which == 0) first(i);
    else if (which == 1) second(i);
    else third(i);
    hits[which]++;
    sums[which] += i;
  }
  printf("first %d %d\nsecond %d %d\nthird %d %d\n", hits[0], sums[0], hits[1], sums[1], hits[2], sums[2]);
  return 0;
}
"""


def numbers_of_leaves(text, beginning):
    """{leaf: sum of the numbers} of folded stacks, which all begin with `beginning`."""
    numbers = {}
    for line in text.splitlines():
        stack, number = line.rsplit(" ", 1)
        frames = stack.split(";")
        check_equal(frames[:len(beginning)], beginning, line)
        numbers[frames[-1]] = numbers.get(frames[-1], 0) + int(number)
    return numbers


@scenario
def folded_stacks_have_the_numbers_of_each_leaf(run):
    """The program says how often it was in each of three functions, and with which numbers in all."""
    require_root()
    (run.dir / "leaves.c").write_text(LEAVES)
    program = run.build("leaves", [run.dir / "leaves.c"], ["-O1", "-g", "-fno-omit-frame-pointer"])
    file = run.dir / "folded"
    for options, column, beginning in ((["--by", "ustack"], 0, []), (["--by", "comm, ustack"], 0, ["leaves"]),
                                       (["--by", "ustack", "--sum", "arg0"], 1, []), (["--ustack"], 0, [])):
        done = said(run, f"usdt:{program}:leaves:hit", *options, "-o", run.dir / "shown", "--export", f"folded={file}", "--", program)
        said_by_program = {words[0]: int(words[1 + column]) for words in map(str.split, done.splitlines())}
        check_equal(sorted(said_by_program), ["first", "second", "third"], done)
        check_equal(numbers_of_leaves(file.read_text(), beginning), said_by_program, options)
    refused = subprocess.run([run.tool, f"usdt:{program}:leaves:hit", "--by", "pid", "-f", "folded", "--", program],
                             capture_output=True, text=True, timeout=60)
    check_equal(refused.returncode, 2, refused.stderr)
    check("are of stacks" in refused.stderr, refused.stderr)


def build_deep(run):
    """A program that hits 20,000 times with as many stacks, each of about 4 KiB as a text."""
    names = ["a" * 240, "b" * 240]
    steps = "".join(f"""
__attribute__((noinline)) void {name}(unsigned i, int d) {{
  if (d == 0) {{ DTRACE_PROBE1(deep, hit, i); }}
  else if (i >> (d - 1) & 1) {names[0]}(i, d - 1);
  else {names[1]}(i, d - 1);
  __asm__ volatile("" ::: "memory");
}}""" for name in names)
    (run.dir / "deep.c").write_text(f"""#include <sys/sdt.h>
#include <unistd.h>
void {names[1]}(unsigned i, int d);
{steps}
int main(void) {{
  for (unsigned i = 0; i < 20000; i++) {{
    {names[0]}(i, 16);
    if (i % 50 == 0) usleep(1000);
  }}
  return 0;
}}
""")
    return run.build("deep", [run.dir / "deep.c"], ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"])


@scenario
def stacks_with_sums_below_0_are_said_not_to_be_drawn(run):
    program = build(run)
    file = run.dir / "sums.folded"
    done = subprocess.run([run.tool, f"usdt:{program}:forms:hit", "--by", "ustack", "--sum", "arg0 - 1000", "--export",
                           f"folded={file}", "--", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    check("are below 0 or no numbers" in done.stderr, done.stderr)
    check_equal(file.read_text(), "", "lines that no reader would take")


@scenario
def events_whose_stacks_there_is_no_room_for_are_counted(run):
    require_root()
    program, file = build_deep(run), run.dir / "folded"
    done = subprocess.run([run.tool, f"usdt:{program}:deep:hit", "--ustack=fp", "--ring-size", "64", "-f", "folded", "-o", file, "--", program],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    ledger = re.search(r"^(\d+) events of 20000 hits; lost: (.*)$", done.stderr, re.M)
    check(ledger, done.stderr)
    lost = {reason: int(number) for number, reason in re.findall(r"(\d+) (\w+)", ledger[2])}
    check(lost["folded_full"] > 1000, lost)
    check_equal(int(ledger[1]) + sum(lost.values()), 20000, "hits")
    with file.open() as lines:
        check_equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines), int(ledger[1]), "events in stacks")
    check(file.stat().st_size < 64 << 20, "the bound")


@scenario
def a_provider_may_be_called_as_a_prefix_is(run):
    require_root()
    (run.dir / "namesakes.c").write_text(NAMESAKES)
    program = run.build("namesakes", [run.dir / "namesakes.c"], ["-O1"])
    probes = [f"usdt:{program}:uprobe:work", f"uprobe:{program}:work", f"usdt:{program}:kretprobe:work"]
    counted = csv_of(run, *probes, "--count", ["--", program])
    check_equal({row["probe"]: int(row["hits"]) for row in counted}, dict(zip(probes, (5, 3, 2))), "hits")
    events = [line for line in json_of(run, *probes, ["--", program]) if line["type"] == "event"]
    for probe, hits in zip(probes, (5, 3, 2)):
        named = {event["probe"] for event in events}
        check_equal(sum(event["probe"] == probe for event in events) or sum(event["probe"] == "uprobe:work" for event in events), hits,
                    f"events of {probe}: {named}")
        again = [line for line in json_of(run, probe, ["--", program]) if line["type"] == "event"]
        name = again[0]["probe"]
        check_equal(len([line for line in json_of(run, name, ["--", program]) if line["type"] == "event"]), hits, f"{name}, pasted")


if __name__ == "__main__":
    main()
