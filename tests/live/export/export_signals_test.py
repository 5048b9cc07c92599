#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A signal amid a trace that exports in three forms at once: each file is whole up to its last line, or readable as a
recording, and has the hits of the program in their order."""

import csv
import itertools
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Result, check, check_equal, main, scenario, wait_until  # noqa: E402
from puppet import Puppet, beats, probe_of  # noqa: E402

LEAST = 20_000  # bytes in each file before the signal
BURST = 5_000


class Exported:
    """A trace that exports, and gets a signal while the traced program fires."""

    def __init__(self, run, number, pause):
        program = puppet.build(run)
        self.run, self.target = run, Puppet(run, program)
        self.files = {form: run.dir / f"{number}.{pause}.{form}" for form in ("json", "csv", "record")}
        for file in self.files.values():
            file.unlink(missing_ok=True)  # what one has of a trace before it keeps until answers begin
        exports = [f"--export={form}={file}" for form, file in self.files.items()]
        tracing = run.start(run.tool, probe_of(program), "-p", str(self.target.pid), *exports, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
        self.target.wait_attached()
        self.fired = 0
        wait_until(lambda: self.fire() and all(file.exists() and file.stat().st_size > LEAST for file in self.files.values()),
                   "bytes in all files")
        self.target.send(f"fire:{BURST}")
        time.sleep(pause)
        tracing.send_signal(number)
        _, self.said = tracing.communicate(timeout=60)
        self.code = tracing.returncode
        self.target.wait_clean()

    def fire(self):
        self.target.order("fire:500")
        self.fired += 500
        return True

    def lines(self, form):
        """Whole lines, and what is behind the last of them."""
        *lines, rest = self.files[form].read_text().split("\n")
        return lines, rest

    def numbers(self):
        """Of each file those of its hits that are whole, in its order."""
        events = [json.loads(line) for line in self.lines("json")[0]]
        heading, *rows = csv.reader(self.lines("csv")[0])
        place = heading.index("arg0")
        done = subprocess.run([self.run.tool, "--replay", self.files["record"], "-f", "json"], capture_output=True, text=True)
        replayed = Result(done.returncode, done.stdout, done.stderr)
        return {"json": [event["args"][0] for event in events if event["type"] == "event"],
                "csv": [int(row[place]) for row in rows],
                "record": [n for n, *_ in beats(replayed.events)]}, replayed

    def check_numbers(self):
        numbers, replayed = self.numbers()
        for form, seen in numbers.items():
            check(len(seen) > 100, f"{form}: {len(seen)} hits")
            check_equal(seen, list(range(seen[0], seen[0] + len(seen))), f"hits in {form}")
            check_equal(seen[0], 0, f"the first hit in {form}")
        return {form: len(seen) for form, seen in numbers.items()}, replayed


def ends_whole(run, number):
    for pause in (0, 0.002, 0.01):
        traced = Exported(run, number, pause)
        check_equal(traced.code, 0, traced.said)
        count, replayed = traced.check_numbers()
        check_equal([traced.lines(form)[1] for form in ("json", "csv")], ["", ""], "behind the last line")
        summary = json.loads(traced.lines("json")[0][-1])
        check_equal(summary["type"], "summary", "the last line of JSON")
        check_equal(count, {form: summary["events"] for form in count}, "hits in each file")
        check_equal(summary["hits"], summary["events"] + sum(summary["lost"].values()), "all hits have an event, or a reason")
        check(summary["events"] >= traced.fired, f"{summary['events']} of the {traced.fired} before the signal")
        check("cut" not in replayed.summary, f"the recording: {replayed.summary}")


@scenario
def files_are_whole_after_ctrl_c(run):
    ends_whole(run, signal.SIGINT)


@scenario
def files_are_whole_after_sigterm(run):
    ends_whole(run, signal.SIGTERM)


@scenario
def files_are_whole_up_to_their_last_line_after_sigkill(run):
    for pause in itertools.islice(itertools.cycle((0, 0.002, 0.01)), 6):
        traced = Exported(run, signal.SIGKILL, pause)
        check_equal(traced.code, -signal.SIGKILL, traced.said)
        _, replayed = traced.check_numbers()
        check("not finished" in replayed.summary["cut"] or "midst of a block" in replayed.summary["cut"],
              f"the recording: {replayed.summary}")


if __name__ == "__main__":
    main()
