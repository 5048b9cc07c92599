# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that write down their interpreter's own view of the stack at places where a tracer looks, too."""

import json
import pathlib
import subprocess
import tempfile
import time

from puppet import HERE
from harness import Tracing, check_equal, wait_line, wait_until

FULL = ("--ustack", "dwarf,500", "--ustack-size", "64")  # the whole native stack
PLACE = "uprobe:libc.so.6:getppid"
PYTHON = "/usr/bin/python3.11"
PYTHON_WALKERS = HERE / "stack/walkers.py"


class Walkers:
    """A script (walkers.py, walkers.php, walkers.js), traced from before its first place to its end."""

    def __init__(self, run, ways, rounds, probe=PLACE, options=FULL, interpreter=PYTHON, script=PYTHON_WALKERS, prefix=(), output="json",
                 flags=(), early=None, before=None):
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
        tracing = Tracing(run.tool_argv([probe], [*options, "-p", traced], output=output), run.dir)
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
        process.stdin.write(b"end\n")
        check_equal(process.wait(timeout=150), 0, "exit code of the script")
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
