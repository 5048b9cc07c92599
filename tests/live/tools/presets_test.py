#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets asked of the distribution's programs: their numbers are what the programs did."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Result, check, check_equal, main, require_file, require_program, require_root, scenario  # noqa: E402


def ask(run, preset, *command, environment=None, options=()):
    """{question: its JSON objects}, and the notices."""
    require_root()
    argv = [run.tool, "--preset", preset, "-f", "json", "-o", run.dir / "answers", *options, "--", *command]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "USDT_PRESETS": str(run.dir / "none"), **(environment or {})})
    check(done.returncode == 0, f"{preset}: {done.returncode}\n{done.stderr}")
    answers = {}
    for line in (run.dir / "answers").read_text().splitlines():
        each = json.loads(line)
        answers.setdefault(each["question"], []).append(each)
    return answers, done.stderr


def rows(answers, question):
    """{keys: the row} of the last table of a question."""
    tables = [each for each in answers[question] if each["type"] == "table"]
    check(tables, f"{question}: no table in {answers[question]}")
    return {tuple(row["key"].values()) if isinstance(row["key"], dict) else tuple(row["key"]): row for row in tables[-1]["rows"]}


PYTHON = "/usr/bin/python3.11"


@scenario
def python_is_asked_for_collections_imports_and_calls(run):
    require_file(PYTHON)
    (run.dir / "program.py").write_text("""
import gc, sys
gc.disable()
def callee(n): return n + 1
for n in range(300): callee(n)
for _ in range(7): gc.collect(1)
gc.collect()
import colorsys
""")
    answers, said = ask(run, "python.gc,imports,calls", PYTHON, "-S", run.dir / "program.py")
    print(json.dumps({key: value[:3] for key, value in answers.items()}, indent=1)[:6000], said)


if __name__ == "__main__":
    main()
