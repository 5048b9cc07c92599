# SPDX-License-Identifier: BSD-2-Clause
"""Files that somebody made to stop a tracer: time and memory follow the size of a file."""

import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

from hostile_dwarf import DEBUG_INFORMATION
from hostile_elf import AMPLIFIERS

LIST, TRACE, PLAN, FUNCTIONS = (os.environ[name] for name in ("USDT_LIST", "USDT_TRACE", "PLAN_FILE", "FUNCTIONS_FILE"))
SEEDS = pathlib.Path(os.environ["USDT_SOURCE_DIR"]) / "tests/fuzz/corpus/notes"
LONG = os.environ.get("USDT_LONG") == "1"
MIB = 1 << 20
# Of files up to 4 MiB, for listing and for planning.
MOST_MEMORY = 112 * MIB  # by libraries of Debian 13, 101

READERS = {"usdt-list -vv": [LIST, "-vv", "{}"], "usdt-list -f json": [LIST, "-f", "json", "{}"],
           "plan": [PLAN, "0", "{}"], "plan, per-link": [PLAN, str(3 << 5), "{}"],
           "plan, by address": [PLAN, str(4 << 5), "{}"],
           "all functions": [FUNCTIONS, "*", "{}"], "no function": [FUNCTIONS, "B::nothing", "{}"]}
FUNCTIONS_OF = {"usdt-list -v, a function": [LIST, "-v", "uprobe:{}:nothing"],
                "usdt-list -v, all functions": [LIST, "-v", "uprobe:{}:*"]}


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (1024 * MIB, 1024 * MIB))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Run:
    """One run of a command: its exit code, processor time in seconds, and most memory in bytes."""

    def __init__(self, command):
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limited)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = self.code = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            self.errors = errors.read(2000).decode(errors="replace")
        self.seconds = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024


def is_linear(runs):
    """What is linear takes four times as long; what is quadratic, sixteen times. The first tenth of a second is the
    program's own, or another's on a busy machine."""
    return runs[4].seconds < 0.1 + 7 * runs[1].seconds


def quicker(one, other):
    """Of two runs; before it one that did not end as it should."""
    return min(one, other, key=lambda run: (run.code in (0, 1, 2), run.seconds))


class AmplifyingFiles(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def file_of(self, make, mebibytes):
        path = pathlib.Path(self.directory.name) / f"{mebibytes}.so"
        path.write_bytes(make(mebibytes * MIB))
        self.assertLess(path.stat().st_size, 1.25 * mebibytes * MIB)
        return str(path)

    def check(self, make, readers):
        files = {size: self.file_of(make, size) for size in ((1, 2, 4) if LONG else (1, 4))}
        for reader, command in readers.items():
            commands = {size: [word.format(path) for word in command] for size, path in files.items()}
            runs = {size: Run(each) for size, each in commands.items()}
            for _ in range(2):  # others on the machine add to a processor's time; what is quadratic stays so
                if not is_linear(runs):
                    runs = {size: quicker(run, Run(commands[size])) for size, run in runs.items()}
            figures = ", ".join(f"{size} MiB: {run.seconds:.2f} s, {run.memory // MIB} MiB" for size, run in runs.items())
            with self.subTest(reader=reader, figures=figures):
                for run in runs.values():
                    self.assertIn(run.code, (0, 1, 2), run.errors)
                self.assertLess(runs[4].memory, MOST_MEMORY)
                self.assertTrue(is_linear(runs))


def add_test(name, make, readers):
    setattr(AmplifyingFiles, f"test_{name}", lambda self: self.check(make, readers))


for amplifier, maker in AMPLIFIERS.items():
    add_test(amplifier, maker, READERS)
for amplifier, maker in DEBUG_INFORMATION.items():
    add_test(amplifier, maker, FUNCTIONS_OF)


class RefusedDebugInformation(unittest.TestCase):
    """Of functions that only debug information tells of, nobody is told that there are none."""

    REFUSED = {"units_times_abbreviations": "read the same abbreviations again and again",
               "units_whose_siblings_are_their_children": "leads in circles"}
    TOOLS = [LIST], [TRACE, "--explain"]

    def said(self, command, file, function):
        done = subprocess.run([*command, f"uprobe:{file}:{function}"], capture_output=True, text=True, timeout=60)
        return done.stderr

    def each_refused(self):
        for name, reason in self.REFUSED.items():
            with tempfile.NamedTemporaryFile(suffix=".so") as file:
                file.write(DEBUG_INFORMATION[name](100_000))
                file.flush()
                for command in self.TOOLS:
                    yield command, file.name, reason

    def test_that_it_was_refused_is_said_where_nothing_is_found(self):
        for command, file, reason in self.each_refused():
            said = self.said(command, file, "nothing")
            self.assertIn("no function matches", said)
            self.assertEqual(said.count(reason), 1, said)

    def test_that_it_was_refused_is_said_where_something_is_found(self):
        for command, file, reason in self.each_refused():
            said = self.said(command, file, "main")
            self.assertIn("functions or types may be missing", said)
            self.assertEqual(said.count(reason), 1, said)

    def test_that_it_was_refused_is_said_beside_another_file_that_has_it(self):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(sys.executable, f"{directory}/has_it")
            for name, reason in self.REFUSED.items():
                pathlib.Path(directory, "refused.so").write_bytes(DEBUG_INFORMATION[name](100_000))
                for command in self.TOOLS:
                    said = self.said(command, f"{directory}/*", "_start")
                    self.assertNotIn("no function matches", said)
                    self.assertEqual(said.count(reason), 1, said)

    def test_where_there_is_none_nothing_is_missing(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(AMPLIFIERS["functions_of_short_names"](1000))
            file.flush()
            for command in self.TOOLS:
                said = self.said(command, file.name, "nothing")
                self.assertIn("no function matches", said)
                self.assertNotIn("missing", said)


class DamagedFiles(unittest.TestCase):
    def test_that_they_are_read_in_bounded_time_and_memory(self):
        chance = random.Random(1)
        seeds = [seed.read_bytes() for seed in sorted(SEEDS.iterdir())]
        seeds += [make(6000) for make in AMPLIFIERS.values()]
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for number in range(3000 if LONG else 500):
                data = bytearray(chance.choice(seeds))
                for _ in range(chance.randint(1, 8)):
                    at = chance.randrange(len(data)) if chance.random() < 0.5 else chance.randrange(min(64, len(data)))
                    data[at] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
                paths.append(os.path.join(directory, str(number)))
                pathlib.Path(paths[-1]).write_bytes(data)
            for reader, command in READERS.items():
                run = Run([*command[:-1], *paths])
                self.assertIn(run.code, (0, 1, 2), run.errors)
                self.assertLess(run.memory, MOST_MEMORY)
                self.assertLess(run.seconds, 15)


if __name__ == "__main__":
    unittest.main()
