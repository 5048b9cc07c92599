# SPDX-License-Identifier: BSD-2-Clause
"""The recipes of docs/cookbook.md, as they are written there: a heading that asks, and a line that answers.

A test names the question, and runs its line with two changes: 4711 is the number of the process that it has started, and
the output is JSON, so that numbers can be compared. COOKBOOK_SHOW=1 shows what people see instead of comparing it: that is
where the output in the document is from.
"""

import os
import pathlib
import re
import shlex
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests/programs")]

from harness import Failure, Result, Skip, Tracing, check, require_root, wait_until  # noqa: E402

DOCUMENT = ROOT / "docs/cookbook.md"
ANY_PROCESS = "4711"
CLOSE = 0.02
# Programs of the distribution, not of a version manager in somebody's home.
ENVIRONMENT = {**os.environ, "PATH": f"/usr/bin:/bin:{os.environ.get('PATH', '')}", "LC_ALL": "C.UTF-8"}


def recipes():
    """Questions, each with the words of its line; before "usdt-trace" there may be words for its environment."""
    found = {}
    for section in re.split(r"^### ", DOCUMENT.read_text(), flags=re.M)[1:]:
        question, _, rest = section.partition("\n")
        lines = re.findall(r"^# ((?:\w+=\S+ )*usdt-trace (?:.*\\\n)*.*)$", rest, re.M)
        check(len(lines) == 1, f"one line of usdt-trace below '{question}': {lines}")
        check(question not in found, f"twice: {question}")
        found[question] = shlex.split(lines[0].replace("\\\n", " "))
    return found


def plain_key(part):
    """Of a stack the functions' names."""
    return tuple(frame.get("function", "") for frame in part) if isinstance(part, list) else part


class Traced(Result):
    """What a recipe's run said: also its spans, and the rows of its table by their keys."""

    def __post_init__(self):
        super().__post_init__()
        self.spans = [record for record in self.records if record["type"] == "span"]
        tables = [record for record in self.records if record["type"] == "table"]
        self.rows = {tuple(map(plain_key, row["key"])): row for row in tables[-1]["rows"]} if tables else {}

    def counts(self):
        return {key: row["count"] for key, row in self.rows.items()}

    def program_said(self):
        """What a command printed, whose output is in between."""
        return [line for line in self.stdout.splitlines() if not line.startswith("{")]


class Recipe:
    """One recipe under a test's hand. Relative paths in its line are in the scenario's directory."""

    def __init__(self, run, question):
        require_root()
        known = recipes()
        check(question in known, f"docs/cookbook.md does not ask '{question}' but {list(known)}")
        self.run, self.question = run, question
        at = known[question].index("usdt-trace")
        self.environment = dict(word.split("=", 1) for word in known[question][:at])
        self.words = known[question][at + 1:]
        self.shown = bool(os.environ.get("COOKBOOK_SHOW"))

    STARTED = []  # by this process, which runs one scenario after the other

    def show_all(self):
        """What people see of this line, and of others that run beside it."""
        for each in self.STARTED:
            if each is not self:
                each.tracing.signal(signal.SIGINT)
            result = each.tracing.finish()
            print(f"### {each.question}\n{result.stderr}{result.stdout}")
        self.STARTED.clear()
        raise Skip("shown, not compared")

    def start(self, pid=None, **environment):
        """Starts the line; with the number of a process returns when it is attached."""
        words = [str(pid) if word == ANY_PROCESS and pid is not None else word for word in self.words]
        form = [] if self.shown else ["--format", "json"]
        argv = [str(self.run.tool), *form, *words]
        tracing = Tracing(argv, self.run.dir, cwd=self.run.dir, env={**ENVIRONMENT, **self.environment, **environment})
        self.run.adopt(tracing.process)
        self.tracing = tracing
        self.STARTED.append(self)
        if pid is not None:
            wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
            if not tracing.alive():
                raise Failure(f"it ended: {tracing.finish().describe()}")
        return self

    def stop(self):
        """As Ctrl-C does."""
        self.tracing.signal(signal.SIGINT)
        return self.finish()

    def finish(self, timeout=60):
        """When the line ends by itself, since its command or process does."""
        if self.shown:
            self.show_all()
        result = self.tracing.finish(timeout)
        traced = Traced(result.code, result.stdout, result.stderr)
        traced.check_code(0)
        print(next((line for line in traced.stderr.splitlines() if "attached" in line), "nothing attached"))
        return traced


def check_near(ours, theirs, what):
    """Two durations in seconds, of the same thing by different clocks: between a look at one and at the other the processor
    may be given to somebody else for a while."""
    check(abs(ours - theirs) <= CLOSE, f"{what}: {ours:.6f} s, the program says {theirs:.6f} s, more than {CLOSE} s apart")
