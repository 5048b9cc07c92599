# SPDX-License-Identifier: BSD-2-Clause
"""A usdt-broker of the test's own, users without privileges, and programs that run as these."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import puppet  # noqa: E402
from elf_view import Memory, note  # noqa: E402
from harness import Result, Skip, Tracing, check, check_equal, require_program, wait_line, wait_until  # noqa: E402

ANNA, BERT = 61001, 61002  # numbers that nobody has


def as_user(uid, gid=None):
    gid = uid if gid is None else gid
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--inh-caps=-all"]


class Service:
    """A running usdt-broker, and the tools where every user may execute them."""

    def __init__(self, run, *options):
        puppet.require_root()
        require_program("setpriv")
        self.run = run
        run.dir.chmod(0o755)
        self.bin = run.dir / "bin"
        self.bin.mkdir(exist_ok=True)
        for tool in ("usdt-trace", "usdt-broker"):
            source = run.tool.with_name(tool)
            if tool == "usdt-broker" and "USDT_BROKER_PROGRAM" in os.environ:
                source = pathlib.Path(os.environ["USDT_BROKER_PROGRAM"])  # of a build with sanitizers: ./run long broker
            if not source.exists():
                raise Skip(f"{tool} is not built")
            if not (self.bin / tool).exists():
                shutil.copy(source, self.bin)
        self.socket = run.dir / "socket"
        self.log = (run.dir / "broker.log").open("a+")
        # A process that serves a client may not do what a look for leaks takes.
        # What is freed is kept for a while by the sanitizer, and copied with the process for each client: little of it.
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:quarantine_size_mb=4",
                       "UBSAN_OPTIONS": "halt_on_error=1"}
        self.process = run.start(self.bin / "usdt-broker", "--socket", self.socket, *options, stderr=self.log,
                                 env=environment)
        wait_until(lambda: self.socket.exists() or self.process.poll() is not None, "the socket of the broker")
        if self.process.poll() is not None and "6.10" in self.said():
            raise Skip(self.said())
        check(self.process.poll() is None, self.said())

    def said(self):
        self.log.flush()
        return (self.run.dir / "broker.log").read_text(errors="replace")

    def argv(self, uid, *words):
        return [*as_user(uid), "env", f"USDT_BROKER={self.socket}", self.bin / "usdt-trace", "-f", "json", *map(str, words)]

    def trace(self, uid, *words, timeout=60):
        # A command may end its process group (kill 0), which is not that of the user's other tests.
        done = subprocess.run(self.argv(uid, *words), capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, process_group=0)
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, uid, *words, ready="attached "):
        """A trace that runs beside the test, from when it is attached, or says something else."""
        tracing = Tracing([str(word) for word in self.argv(uid, *words)], self.run.dir, process_group=0)
        self.run.adopt(tracing.process)
        wait_until(lambda: ready in tracing.stderr() or not tracing.alive(), "the trace is attached")
        check(tracing.alive(), tracing.stderr())
        return tracing


def refuses(result, *words):
    check_equal(result.code, 1, f"exit code of what is refused\n{result.describe()}")
    for word in words:
        check(word in result.stderr, f"{word!r} is not said\n{result.describe()}")
    check_equal(result.events, [], "events of what is refused")


def own_program(run, uid, name="puppet", flags=()):
    """A puppet that belongs to a user."""
    program = puppet.build(run, name, flags)
    os.chown(program, uid, uid)
    program.chmod(0o755)
    return program


def build_shared(run):
    """The library, which is root's, and the path that programs find it by."""
    library = run.build("libhits.so", [HERE / "hits.c"], ["-O2", "-shared", "-fPIC"])
    library.chmod(0o755)
    return library


def build_changing(run, name="changing", setuid=False):
    program = run.build(name, [HERE / "changing.c"], ["-O2"], libs=[str(run.dir / "libhits.so")])
    program.chmod(0o4755 if setuid else 0o755)
    return program


class Changing:
    """changing.c, or another program that answers orders, under a test's hand."""

    def __init__(self, run, program, uid, first_order="fire:0"):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.library = run.dir / "libhits.so"
        self.process = run.start(*as_user(uid), program, **pipes)
        self.pid = self.process.pid
        self.order(first_order)

    def order(self, order):
        self.process.stdin.write(f"{order}\n".encode())
        return wait_line(self.process)

    def attached(self):
        """Whether a breakpoint is in its memory, which root may read whatever it executes."""
        return Memory(self.pid, self.library).attached(note(self.library, "hit"))

    def semaphore(self):
        return Memory(self.pid, self.library).semaphore(note(self.library, "hit"))


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def links():
    """The kernel's links of uprobes, by number: bpftool's own list."""
    require_program("bpftool")
    listed = subprocess.run(["bpftool", "-j", "link"], capture_output=True, text=True, check=True)
    return {each["id"] for each in json.loads(listed.stdout or "[]")}
