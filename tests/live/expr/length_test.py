#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions about texts that have a length and no NUL behind them. lengths.cpp says each of its texts itself."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import AT_ONCE, check, check_equal, main, require_root, scenario  # noqa: E402

INCLUDE = HERE.parent.parent / "provider" / "include"
KEY = 63  # bytes of a text that is the only key

# Probes by the name that the program says them by, and the argument that is a text.
PROBES = [
    ("view", "uprobe:{}:texts::view", "what"),
    ("text", "uprobe:{}:texts::text", "what"),
    ("java", "usdt:{}:hotspot:class__loaded", "arg0"),
    ("described", "usdt:{}:lengths:described", "what"),
    ("member", "uprobe:{}:texts::member", "named.name"),
]

QUESTIONS = [
    ('{} == ""', lambda t: t == b""),
    ('{} == "G"', lambda t: t == b"G"),
    ('{} == "GET"', lambda t: t == b"GET"),
    ('{} != "GET"', lambda t: t != b"GET"),
    ('{} =~ "GE*"', lambda t: t.startswith(b"GE")),
    (r'{} == "a\0b"', lambda t: t == b"a\0b"),
    (r'{} =~ "a\x00b*"', lambda t: t.startswith(b"a\0b")),
    (r'str({}) == "a\0"', lambda t: t == b"a\0"),
    ('{} == "GET /index.html"', lambda t: t == b"GET /index.html"),
    ('{} == "GET /index.html t"', lambda t: t == b"GET /index.html t"),
    ('{} =~ "GET /index.html that goes on and on, much longer than the longes*"', lambda t: len(t) >= 64),
]

# Of an array of 8 characters.
ARRAYS = [
    ('{} == ""', lambda t: t == b""),
    ('{} == "GET"', lambda t: t == b"GET"),
    ('{} != "GET"', lambda t: t != b"GET"),
    ('{} =~ "GE*"', lambda t: t.startswith(b"GE")),
    ('{} == "GET /ind"', lambda t: t == b"GET /ind"),
    ('{} =~ "GET /ind*"', lambda t: t == b"GET /ind"),
]


def questions(name):
    return ARRAYS if name == "member" else QUESTIONS


def build(run):
    require_root()
    return run.build("lengths", [], ["-g", "-O2", "-std=c++20", f"-I{INCLUDE}", str(HERE / "expr/lengths.cpp")], "g++")


def said(program):
    texts = collections.defaultdict(list)
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        probe, _, text = line.partition(" ")
        texts[probe].append(bytes.fromhex(text))
    return texts


def ask(run, program, *options):
    """The lines of a run, or of a recording where there is no program to run."""
    behind = [*AT_ONCE, "--", "sh", "-c", f"exec {program} > /dev/null"] if program else []
    done = subprocess.run([run.tool, *options, "-f", "json", *behind], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_filtered(lines, texts, holds, undecided):
    shown = sum(holds(text) for text in texts)
    check(0 < shown < len(texts), "the question tells texts apart")
    summary = lines[-1]
    check_equal((summary["events"], summary["rejected"], summary["undecided"]),
                (shown, len(texts) - shown, undecided), "delivered, rejected, undecided")


def rows(lines):
    return {row["key"][0]: row["count"] for row in lines[-2]["rows"]}


def wanted_rows(texts):
    return dict(collections.Counter(text[:KEY].decode() for text in texts))


@scenario
def filters_see_as_much_of_a_text_as_it_is_long(run):
    program = build(run)
    texts = said(program)
    for name, probe, value in PROBES:
        for question, holds in questions(name):
            print(name, question)
            lines = ask(run, program, probe.format(program), "--where", question.format(value))
            check_filtered(lines, texts[name], holds, int(name == "java"))


@scenario
def keys_of_tables_are_as_long_as_their_texts_nuls_and_all(run):
    program = build(run)
    texts = said(program)
    for name, probe, value in PROBES:
        print(name)
        lines = ask(run, program, probe.format(program), "--by", f"str({value})")
        check_equal(rows(lines), wanted_rows(texts[name]), name)
        check_equal(lines[-1]["undecided"], int(name == "java"), "texts of no length that a text can have")


@scenario
def a_recording_answers_the_same(run):
    program = build(run)
    texts = said(program)
    for name, probe, value in PROBES:
        print(name)
        recording = run.dir / f"{name}.usdt"
        shown = ["--print", value] if "." in value else []  # members are recorded where they are shown
        subprocess.run([run.tool, probe.format(program), "--record", recording, "--string-size", "256", *shown, "--", "sh", "-c", f"exec {program} > /dev/null"], check=True, timeout=60,
                       capture_output=True)
        check_equal(rows(ask(run, None, "--replay", recording, "--by", f"str({value})")), wanted_rows(texts[name]), name)
        for question, holds in questions(name):
            print(name, question)
            lines = ask(run, None, "--replay", recording, "--where", question.format(value))
            check_filtered(lines, texts[name], holds, int(name == "java"))


if __name__ == "__main__":
    main()
