# SPDX-License-Identifier: BSD-2-Clause
"""Files that somebody made to stop a tracer: time and memory follow the size of a file, and a signal ends the reading."""

import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from hostile_dwarf import DEBUG_INFORMATION
from hostile_elf import AMPLIFIERS

LIST, TRACE, PLAN, FUNCTIONS = (os.environ[name] for name in ("USDT_LIST", "USDT_TRACE", "PLAN_FILE", "FUNCTIONS_FILE"))
SEEDS = pathlib.Path(os.environ["USDT_SOURCE_DIR"]) / "tests/fuzz/corpus/notes"
MIB = 1 << 20
# Of files up to 4 MiB, for listing and for planning.
MOST_MEMORY = 100 * MIB

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
        files = {size: self.file_of(make, size) for size in (1, 2, 4)}
        for reader, command in readers.items():
            runs = {size: Run([word.format(path) for word in command]) for size, path in files.items()}
            figures = ", ".join(f"{size} MiB: {run.seconds:.2f} s, {run.memory // MIB} MiB" for size, run in runs.items())
            with self.subTest(reader=reader, figures=figures):
                for run in runs.values():
                    self.assertIn(run.code, (0, 1, 2), run.errors)
                self.assertLess(runs[4].memory, MOST_MEMORY)
                # What is linear takes four times as long; what is quadratic, sixteen times. The first tenth of a second
                # is the program's own, or another's on a busy machine.
                self.assertLess(runs[4].seconds, 0.1 + 7 * runs[1].seconds)


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
    def test_3000_of_them_are_read_in_bounded_time_and_memory(self):
        chance = random.Random(1)
        seeds = [seed.read_bytes() for seed in sorted(SEEDS.iterdir())]
        seeds += [make(6000) for make in AMPLIFIERS.values()]
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for number in range(3000):
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


SLOW_READS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
ssize_t pread64(int fd, void* to, size_t size, off64_t at) {
  static ssize_t (*real)(int, void*, size_t, off64_t);
  struct timespec moment = {0, 200000000};
  if (!real) real = (ssize_t (*)(int, void*, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
  nanosleep(&moment, 0);
  return real(fd, to, size, at);
}
ssize_t pread(int fd, void* to, size_t size, off_t at) { return pread64(fd, to, size, at); }
"""


class Signals(unittest.TestCase):
    """Planning is made slow by a pread() that sleeps: whatever the reason for it, nobody has to wait."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        source = pathlib.Path(cls.directory.name) / "slow.c"
        source.write_text(SLOW_READS)
        cls.shim = str(source.with_suffix(".so"))
        subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", cls.shim], check=True)
        cls.target = str(source.with_name("target.so"))
        pathlib.Path(cls.target).write_bytes(AMPLIFIERS["sections_of_one_note_each"](100_000))

    def ends_at_once(self, number, command):
        environment = {**os.environ, "LD_PRELOAD": self.shim}
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            time.sleep(0.7)
            self.assertIsNone(child.poll(), "it was done before the signal")
            child.send_signal(number)
            child.wait(timeout=1)
        finally:
            child.kill()
            child.wait()

    def test_the_first_one_ends_planning_within_a_second(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                self.ends_at_once(number, [TRACE, f"usdt:{self.target}:*:*"])

    def test_the_first_one_ends_planning_for_a_held_command(self):
        self.ends_at_once(signal.SIGINT, [TRACE, f"usdt:{self.target}:*:*", "--", "sleep", "100"])

    def test_the_first_one_ends_a_listing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                self.ends_at_once(number, [LIST, self.target])


if __name__ == "__main__":
    unittest.main()
