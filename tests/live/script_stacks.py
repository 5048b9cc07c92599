# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that write down their interpreter's own view of the stack at places where a tracer looks, too."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from puppet import HERE
from harness import Skip, Tracing, check, check_equal, require_root, require_x86_64, wait_line, wait_until

FULL = ("--ustack", "dwarf,500", "--ustack-size", "64")  # the whole native stack
PLACE = "uprobe:libc.so.6:getppid"
PYTHON = "/usr/bin/python3.11"
PYTHON_WALKERS = HERE / "stack/walkers.py"


def interpreter(variable, *paths):
    """The path that an environment variable has, so that those of other systems can be tried; else the first that is there."""
    there = [path for path in (os.environ.get(variable), *paths) if path and pathlib.Path(path).exists()]
    return there[0] if there else paths[0]


class Walkers:
    """A script (walkers.py, walkers.php, walkers.js), traced from before its first place to its end."""

    def __init__(self, run, ways, rounds, probe=PLACE, options=FULL, interpreter=PYTHON, script=PYTHON_WALKERS, prefix=(), output="json",
                 flags=(), early=None, before=None, named=True):
        """`early` is called with its number before the trace begins, `before` when it is attached."""
        views = pathlib.Path(tempfile.mkdtemp(dir=run.dir)) / "views"
        argv = [*prefix, interpreter, *flags, script, views, str(rounds), *ways]
        process = run.start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=views.parent)
        self.pid = process.pid
        self.directory = views.parent
        wait_line(process)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        traced = children[0] if prefix else str(process.pid)
        if early:
            early(int(traced))
        whose = ["-p", traced] if named else ["--where", f"pid == {traced}"]  # known before, or by its first hit
        form = "json" if output == "table" else output
        tracing = Tracing(run.tool_argv([probe], [*options, *whose], output=form), run.dir)
        run.adopt(tracing.process)
        wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
        if before:
            before(int(traced))
        process.stdin.write(b"go\n")
        wait_line(process, 150)
        # Its names are read while it lives.
        shown = {"json": '"type":"event"', "text": ":getppid"}
        places = len(views.read_text().splitlines())
        if output in shown and "--record" not in options:
            wait_until(lambda: tracing.stdout().count(shown[output]) >= places, "the events of all places", 60)
        else:
            time.sleep(3)
            if output == "table":
                tracing.signal(signal.SIGINT)
        process.stdin.write(b"end\n")
        check_equal(process.wait(timeout=150), 0, "exit code of the script")
        if not named:  # else it ends with the process
            tracing.signal(signal.SIGINT)
        self.result = tracing.finish(150)
        self.result.check_code(0)
        self.events = self.result.events
        self.views = [json.loads(line) for line in views.read_text().splitlines()]


def script_of(event):
    """The functions of a script, as the scripts write them."""
    return [[frame.get("function"), frame.get("source", {}).get("file"), frame.get("source", {}).get("line", 0)]
            for frame in event["ustack"] if "language" in frame]


def issues_of(event):
    return [frame["error"] for frame in event["ustack"] if "error" in frame and "address" not in frame]


def trace_pretender(run, name, version, rounds):
    """Traces a program that only looks like an interpreter, and says that it is of this version (an expression of C);
    returns what the tool says."""
    require_root()
    require_x86_64()
    source = HERE / f"stack/fake_{name.rstrip('.0123456789')}.c"
    program = run.build(name, [source], [f"-DVERSION={version}", "-O1", "-rdynamic", "-pthread"])
    process = run.start(program, str(rounds), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    tracing = run.trace_start([PLACE], "--ustack", "-p", str(process.pid))
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    process.stdin.write(b"go\n")
    check_equal(process.wait(timeout=60), 0, "exit code of the program")
    result = tracing.finish(60)
    result.check_code(0)
    check_equal(len(result.events), rounds, "hits")
    return result


def most_memory(pid):
    """Bytes that a process had at most so far."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def spent_by_programs(pid):
    """What each program of a process took so far, ns, and how often it ran (BPF_ENABLE_STATS)."""
    spent = {}
    for file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        fields = dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line)
        if "run_cnt" in fields:
            spent[fields["prog_id"]] = (int(fields["run_time_ns"]), int(fields["run_cnt"]))
    return spent


def functions_cost(run, interpreter, script):
    """Prints ns for each function, for a hit below 5 of them, and below 100: the difference of hits, divided by that of
    functions. The script goes so many levels down as a line of stdin says, calls getppid() there 200 times, and writes a
    line; another one when it begins."""
    enable, size = 32, 4
    kind = ctypes.c_uint32(0)
    libc = ctypes.CDLL(None, use_errno=True)
    stats = libc.syscall(321, enable, ctypes.byref(kind), size)
    if stats < 0:
        raise Skip("the kernel does not count what programs take (BPF_ENABLE_STATS)")
    process = run.start(interpreter, script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    tracing = run.trace_start([PLACE], "--ustack", "dwarf,128", "-p", str(process.pid))
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    took, shown = [], 0
    for levels in (3, 98, 3, 98, 3, 98):
        before = spent_by_programs(tracing.process.pid)
        process.stdin.write(f"{levels}\n".encode())
        wait_line(process)
        shown += 200  # the ring is empty for the next ones
        wait_until(lambda: tracing.stdout().count('"type":"event"') >= shown, "the events")
        after = spent_by_programs(tracing.process.pid)
        took += [(time_now - before[program][0]) / 200 for program, (time_now, runs) in after.items()
                 if runs - before[program][1] == 200]
    os.close(stats)
    tracing.signal(signal.SIGINT)
    tracing.finish()
    check_equal(len(took), 6, "times of 200 hits")
    few, many = min(took[0::2]), min(took[1::2])
    each = (many - few) / 95
    print(f"{each:.0f} ns for each function; {few:.0f} ns a hit below 5 of them, {many:.0f} ns below 100")
    check(0 < each < 2000, f"{each} ns for each function: {took}")
