# SPDX-License-Identifier: BSD-2-Clause
"""puppet.c under a test's hand: orders in, known hits out."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "programs"), str(HERE.parent / "tools")]

from elf_view import Memory, note  # noqa: E402
from harness import check_equal, require_root, wait_line, wait_until  # noqa: E402

PROBE = "puppet:beat"


def build(run, name="puppet", flags=(), compiler="gcc"):
    require_root()
    return run.build(name, [HERE / "puppet.c"], ["-O2", "-pthread", *flags], compiler)


class Puppet:
    """A running puppet that waits for orders."""

    def __init__(self, run, program, mapped_as=None, argv=None, **popen):
        """`program` is the file to read notes from; `argv` starts it some other way, mapped under another name."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = run.start(*(argv or [program]), **pipes, **popen)
        self.pid = self.process.pid
        self.site = note(program, "beat")
        self.memory = Memory(self.pid, program, mapped_as)
        self.order("fire:0")  # it is up and mapped

    def send(self, order):
        self.process.stdin.write(f"{order}\n".encode())

    def order(self, order):
        """Gives one order and waits for its answer."""
        self.send(order)
        return int(wait_line(self.process))

    def attached(self):
        return self.memory.attached(self.site)

    def semaphore(self):
        return self.memory.semaphore(self.site)

    def wait_attached(self):
        wait_until(lambda: self.attached() and self.semaphore() == 1, "breakpoint and semaphore in the program")

    def wait_clean(self):
        """Nothing may be left in the program: the nop is back, the semaphore is down."""
        wait_until(lambda: not self.attached() and self.semaphore() == 0, "program as it was before the trace")
        check_equal(self.memory.site(self.site), b"\x90", "byte at the site")


def probe_of(program):
    return f"usdt:{program}:{PROBE}"


def beats(events):
    """Arguments of the events, as [(n, text or address, 3n)] in time order."""
    return [event["args"] for event in sorted(events, key=lambda event: event["ts"])]


def check_beats(events, numbers):
    """The default print: two numbers and a pointer; the pointer is checked only to be one."""
    seen = beats(events)
    check_equal([[n, last] for n, _, last in seen], [[n, 3 * n] for n in numbers], "values of beat")
    for _, pointer, _ in seen:
        check_equal(isinstance(pointer, int) and pointer > 0, True, f"pointer argument {pointer!r}")
