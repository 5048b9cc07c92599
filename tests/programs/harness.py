# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: build an emitter, run usdt-trace, read what it says.

A test file declares scenarios with @scenario and ends with main(). `FILE --list` names them, which is how CMake
registers each as a CTest test of its own; `FILE --tool PATH NAME` runs one. Exit codes: 0 passed, 1 failed,
77 skipped (the reason is printed).
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
SKIP_CODE = 77
LONG = os.environ.get("USDT_LONG") == "1"  # `./run long`: the whole numbers, minutes of them


def with_long(whole, short):
    """Compilers, levels or builds: in `./run long` the whole list."""
    return whole if LONG else short


class Skip(Exception):
    """The machine lacks what a scenario needs; the text says what."""


class Failure(Exception):
    """A scenario's expectation does not hold; the text gives both sides."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def check_equal(actual, expected, what):
    check(actual == expected, f"{what}: got {actual!r}, expected {expected!r}")


# --- scenarios ------------------------------------------------------------------------------------------------------

_scenarios = {}


def scenario(function):
    """Registers `function(run)` under its own name."""
    _scenarios[function.__name__] = function
    return function


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default=os.environ.get("USDT_TRACE", "usdt-trace"))
    parser.add_argument("--list", action="store_true", help="print the scenarios' names")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(_scenarios))
        return
    names = options.names or list(_scenarios)
    outcomes = [_run_scenario(name, options) for name in names]
    if 1 in outcomes:
        sys.exit(1)
    sys.exit(SKIP_CODE if set(outcomes) == {SKIP_CODE} else 0)


def _run_scenario(name, options):
    tool = shutil.which(options.tool)
    run = Run(pathlib.Path(tool).resolve() if tool else None)
    try:
        if run.tool is None:
            raise Failure(f"usdt-trace not found: {options.tool}")
        _scenarios[name](run)
    except Skip as reason:
        print(f"SKIP {name}: {reason}", flush=True)
        return SKIP_CODE
    except Exception:  # a scenario's failure must not hide the next one's outcome
        traceback.print_exc()
        print(f"FAIL {name}", flush=True)
        return 1
    finally:
        run.close(keep=options.keep)
    print(f"PASS {name}", flush=True)
    return 0


# --- what a machine must offer --------------------------------------------------------------------------------------


def require_root():
    if os.geteuid() != 0:
        raise Skip("needs root (attaching uprobes)")


def require_program(*names):
    for name in names:
        if shutil.which(name) is None:
            raise Skip(f"{name} is not installed")


def require_file(path):
    if not pathlib.Path(path).exists():
        raise Skip(f"{path} is not installed")


@functools.cache
def why_no_m32(compiler="gcc"):
    """Why programs of i386 can not be made or run, since not every kernel starts them; empty: they can."""
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/m32"
        language, header = ("c++", "cstdio") if "++" in compiler else ("c", "stdio.h")
        argv = [compiler, "-m32", "-x", language, "-", "-o", program]
        if subprocess.run(argv, input=f"#include <{header}>\nint main(){{}}".encode(), capture_output=True).returncode != 0:
            return f"{compiler} -m32 does not link here ({compiler}-multilib is not installed)"
        try:
            subprocess.run([program], check=False)
        except OSError as error:
            return f"programs of i386 do not start here ({error.strerror})"
    return ""


def require_m32():
    if why_no_m32():
        raise Skip(why_no_m32())


def require_x86_64():
    if os.uname().machine != "x86_64":
        raise Skip(f"x86-64 machine code, this machine is {os.uname().machine}")


# --- what the tool says ---------------------------------------------------------------------------------------------


def _no_constant(text):
    raise Failure(f"not JSON: {text}")


def parse_json_line(line):
    """One object of the version 1 contract; bare NaN and Infinity are not JSON."""
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Failure(f"not JSON ({error}): {line[:200]}") from error
    check_equal(record.get("v"), 1, f"contract version of {line[:200]}")
    return record


@dataclasses.dataclass
class Result:
    """A finished usdt-trace: its records, its notices and its exit code."""

    code: int
    stdout: str
    stderr: str

    def __post_init__(self):
        lines = [line for line in self.stdout.splitlines() if line.startswith("{")]
        self.records = [parse_json_line(line) for line in lines]
        self.events = [record for record in self.records if record["type"] == "event"]
        summaries = [record for record in self.records if record["type"] == "summary"]
        self.summary = summaries[-1] if summaries else None

    def describe(self):
        return f"exit {self.code}\nstdout (end): {self.stdout[-600:]}\nstderr (end): {self.stderr[-1500:]}"

    def check_code(self, expected):
        check(self.code == expected, f"exit code {self.code}, expected {expected}\n{self.describe()}")

    def check_accounted(self, hits, lost=None):
        """Every hit is either delivered or counted as lost; `lost` fixes the second number."""
        check(self.summary is not None, f"no summary\n{self.describe()}")
        lost_now = sum(self.summary["lost"].values())
        check_equal(self.summary["events"], len(self.events), "events in the summary")
        check_equal(len(self.events) + lost_now, hits, f"delivered + lost {self.summary['lost']}, program's own count")
        check_equal(self.summary["hits"], hits, "hits in the summary")
        for key in ("events", "hits"):
            by_probe = sum(probe[key] for probe in self.summary["probes"])
            check_equal(by_probe, self.summary[key], f"sum of {key} by probe")
        if lost is not None:
            check_equal(lost_now, lost, f"lost {self.summary['lost']}")

    def by_name(self):
        """Events of each probe name in time order."""
        groups = {}
        for event in sorted(self.events, key=lambda event: event["ts"]):
            groups.setdefault(event["probe"].rsplit(":", 1)[1], []).append(event)
        return groups


class Tracing:
    """A usdt-trace that runs beside the test. Its output goes to files, so it can never block on a full pipe."""

    def __init__(self, argv, directory, **popen):
        self.argv = argv
        self._out = tempfile.TemporaryFile("w+", dir=directory, errors="replace")
        self._err = tempfile.TemporaryFile("w+", dir=directory, errors="replace")
        self.process = subprocess.Popen(argv, stdout=self._out, stderr=self._err, stdin=subprocess.DEVNULL, **popen)

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self, timeout=60):
        """Waits for the end; a tool that hangs is killed and reported."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.wait()
            raise Failure(f"usdt-trace did not end within {timeout} s: {self.argv}\nstderr: {self.stderr()}") from error
        return Result(self.process.returncode, self._text(self._out), self.stderr())

    def stdout(self):
        return self._text(self._out)

    def stderr(self):
        return self._text(self._err)

    @staticmethod
    def _text(file):
        file.flush()
        with open(f"/proc/self/fd/{file.fileno()}", encoding="utf-8", errors="replace") as reader:
            return reader.read()


# Options of a trace whose command has many sites, or which is one of many. A command's own breakpoints, which nobody else
# has, take the kernel 45 ms each to remove, one after the other; these, which everybody has, are gone at once. What is read
# is the same.
AT_ONCE = ("--backend", "uprobe_multi")
_all_at_once = False


def attach_at_once():
    """Says that a file's scenarios are about values, whoever has the breakpoints: its traces of commands are AT_ONCE."""
    global _all_at_once
    _all_at_once = True


def at_once(probes, options):
    """AT_ONCE, for traces of commands that name no backend themselves; else no options."""
    of_files = all(str(each).startswith(("usdt:", "uprobe:", "uretprobe:", "ucall:")) for each in probes)
    return AT_ONCE if of_files and "--backend" not in options else ()


# --- one scenario's run ---------------------------------------------------------------------------------------------


class Run:
    """A scratch directory, the tool, and every process started; close() ends them."""

    def __init__(self, tool, starts_programs=True):
        """`starts_programs`: those that it builds; else a guest does, which starts programs of i386, too."""
        self.tool = tool
        self.starts_programs = starts_programs
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="usdt-test-"))
        self._processes = []

    def close(self, keep=False):
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):  # it leads no group
                    os.killpg(process.pid, signal.SIGKILL)  # its children, too: whoever reads our output waits for them
                process.kill()
                process.wait()
        if keep:
            print(f"kept {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def build(self, name, sources, flags=(), compiler="gcc", libs=()):
        """Compiles files of tests/programs (or paths) into the scratch directory; returns the result's path."""
        require_program(compiler)
        if "-m32" in flags and self.starts_programs:
            require_m32()
        out = self.dir / name
        paths = [str(HERE / source) for source in sources]
        argv = [compiler, "-g0", f"-I{HERE}", *flags, *paths, "-o", str(out), *libs]
        built = subprocess.run(argv, capture_output=True, text=True)
        if built.returncode != 0 and "sys/sdt.h" in built.stderr:
            raise Skip("sys/sdt.h is not installed (systemtap-sdt-dev)")
        check(built.returncode == 0, f"{' '.join(argv)}\n{built.stderr}")
        return out

    def start(self, *argv, **popen):
        """Starts a program that lives as long as the scenario, as do the processes that it starts."""
        argv = [word if isinstance(word, bytes) else str(word) for word in argv]
        if not popen.get("start_new_session"):
            popen["process_group"] = 0
        return self.adopt(subprocess.Popen(argv, **popen))

    def adopt(self, process):
        """A process that ends with the scenario at the latest."""
        self._processes.append(process)
        return process

    def tool_argv(self, probes, options=(), command=None, output="json"):
        probes = [probes] if isinstance(probes, str) else list(probes)
        if _all_at_once and command:
            options = [*options, *at_once(probes, options)]
        argv = [str(self.tool), *probes, "--format", output, *[str(option) for option in options]]
        return argv + (["--", *[str(word) for word in command]] if command else [])

    def trace_start(self, probes, *options, command=None, **popen):
        tracing = Tracing(self.tool_argv(probes, options, command), self.dir, **popen)
        self.adopt(tracing.process)
        return tracing

    def trace(self, probes, *options, command=None, timeout=60, **popen):
        """Runs the tool to its end."""
        return self.trace_start(probes, *options, command=command, **popen).finish(timeout)


def wait_until(condition, what, timeout=20.0, every=0.005):
    """Polls; a condition that never holds fails the scenario with `what`."""
    deadline = time.monotonic() + timeout
    while not condition():
        check(time.monotonic() < deadline, f"{what}: not within {timeout} s")
        time.sleep(every)


def free_port():
    """A port of this host that nobody has at the moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_line(process, timeout=20.0):
    """The next line of a started program's binary stdout pipe (bufsize=0), without its newline."""
    line = b""
    deadline = time.monotonic() + timeout
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        check(bool(ready), f"no line from {process.args} within {timeout} s")
        byte = os.read(process.stdout.fileno(), 1)
        check(byte != b"", f"{process.args} ended without a line")
        line += byte
    return line.decode().strip()


def interrupt_all(process):
    """Ctrl-C, as a terminal sends it: to the whole foreground process group of a start_new_session process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
