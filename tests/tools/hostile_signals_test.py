# SPDX-License-Identifier: BSD-2-Clause
"""Files that somebody made to stop a tracer: a signal ends the reading."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from hostile_elf import AMPLIFIERS

LIST, TRACE = (os.environ[name] for name in ("USDT_LIST", "USDT_TRACE"))

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
