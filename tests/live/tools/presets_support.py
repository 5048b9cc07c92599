# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of presets share: asking one, and what was answered."""

import json
import os
import pathlib
import re
import signal
import subprocess

from harness import check, require_root

PYTHON = "/usr/bin/python3.11"


class Answers:
    """What a trace of a preset answered: {question: its JSON objects}, and its notices."""

    def __init__(self, preset, lines, said):
        self.preset, self.said, self.of = preset, said, {}
        for each in map(json.loads, lines):
            self.of.setdefault(each["question"], []).append(each)

    def objects(self, question, kind):
        return [each for each in self.of[question] if each["type"] == kind]

    def rows(self, question):
        """{keys, without a tuple if there is one: the row} of the table."""
        rows = self.objects(question, "table")[-1]["rows"]
        return {row["key"][0] if len(row["key"]) == 1 else tuple(row["key"]): row for row in rows}

    def counts(self, question):
        return {key: row["count"] for key, row in self.rows(question).items()}

    def named_counts(self, question):
        """The same with the names of numbers that have one."""
        rows = self.objects(question, "table")[-1]["rows"]
        named = [[row.get("names", {}).get(str(n), key) for n, key in enumerate(row["key"])] for row in rows]
        return {key[0] if len(key) == 1 else tuple(key): row["count"] for key, row in zip(named, rows)}

    def spans(self, question):
        """How many were in the table of latencies, or in the list."""
        return self.objects(question, "summary")[-1]["events"]

    def args(self, question):
        listed = [event for each in self.objects(question, "slowest") for event in each["events"]]
        return [event["args"] for event in self.objects(question, "event") + self.objects(question, "span") + listed]

    def named_args(self, question):
        """The same of events behind the name of each one's probe."""
        return [(event["probe"].split(":")[-1], *event["args"]) for event in self.objects(question, "event")]


def asked(*_):
    """Says which questions a scenario asks: "python.gc,imports". It stands above @scenario, which CMake looks for."""
    return lambda function: function


def questions_asked():
    """{preset: questions} that scenarios of these files say to ask."""
    found = {}
    for file in pathlib.Path(__file__).parent.glob("*_test.py"):
        for decorator in re.findall(r"^@asked\((.*)\)\n@scenario\ndef ", file.read_text(), re.M):
            for preset, questions in re.findall(r'"([^".]+)\.([^"]+)"', decorator):
                found.setdefault(preset, set()).update(questions.split(","))
    return found


def answers(run, preset, command=None, environment=None, options=(), work=None):
    """Asks a preset of a command, or of processes that are named in `options` while `work` is done."""
    require_root()
    file = run.dir / f"{preset}.answers"
    argv = [run.tool, "--preset", preset, "-f", "json", "-o", file, *options, *(["--", *command] if command else [])]
    told = {**os.environ, "USDT_PRESETS": str(run.dir / "presets"), **(environment or {})}
    process = run.adopt(subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                         stdin=subprocess.DEVNULL, env=told, cwd=run.dir))
    said = ""
    if work:
        wanted = preset.count(",") + 1
        while said.count("attached ") < wanted:
            line = process.stderr.readline()
            check(line != "", f"{preset}: ended\n{said}")
            said += line
        work()
        process.send_signal(signal.SIGINT)
    said += process.communicate(timeout=120)[1]
    check(process.returncode == 0, f"{preset}: {process.returncode}\n{said}")
    return Answers(preset, file.read_text().splitlines(), said)


def check_ready(run, pid, preset):
    """What usdt-list says of each question about a process that has all probes."""
    listed = subprocess.run([run.tool.with_name("usdt-list"), "--presets", "-p", str(pid), "-f", "json"], capture_output=True, text=True,
                            check=True, env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")}, cwd=run.dir)
    states = {each["question"]: each["state"] for each in map(json.loads, listed.stdout.splitlines()) if each["preset"] == preset}
    check(states and set(states.values()) == {"ready"}, f"{preset}: {states}")
