# SPDX-License-Identifier: BSD-2-Clause
"""A library that is opened later, and traces that wait for it, for the tests of what comes while a trace runs."""

import re
import signal
import subprocess

import puppet
from harness import check, check_equal, require_root, wait_line, wait_until


class Later:
    """later.c, with the library it may open."""

    def __init__(self, run):
        require_root()
        self.run = run
        self.library = self.build("liblate.so")
        self.program = run.build("later", [puppet.HERE / "later.c"], ["-O1"], libs=["-ldl"])

    def build(self, name, *flags):
        return self.run.build(name, [puppet.HERE / "later_library.c"], ["-O1", "-shared", "-fPIC", *flags])

    def start(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = self.run.start(self.program, **pipes)
        self.order("close")  # it is up and mapped
        return self.process.pid

    def order(self, *words):
        self.process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        return int(wait_line(self.process, timeout=120))


def attach(run, probes, *options, ready="attached ", **more):
    tracing = run.trace_start(probes, *options, **more)
    wait_until(lambda: ready in tracing.stderr() or not tracing.alive(), ready)
    check(tracing.alive(), tracing.stderr())
    return tracing


def wait_followed(tracing, count=1):
    wait_until(lambda: tracing.stderr().count("followed: ") >= count or not tracing.alive(), f"followed {count} times")
    check_equal(tracing.stderr().count("followed: "), count, f"times something was followed\n{tracing.stderr()}")


def let_go(tracing):
    """Files of the notices so far."""
    return sum(1 if words == "a file" else int(words.split()[0])
               for words in re.findall(r"let go: (a file|\d+ files): ", tracing.stderr()))


def wait_let_go(tracing, count):
    wait_until(lambda: let_go(tracing) >= count or not tracing.alive(), f"{count} files let go")
    check_equal(let_go(tracing), count, f"files let go\n{tracing.stderr()}")


def finish(tracing):
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    return result


def followed(result):
    return [record for record in result.records if record["type"] == "followed"]


def numbers(result, name):
    return [event["args"][0] for event in result.by_name().get(name, [])]


def table(result):
    """The last one's rows by key."""
    return {tuple(row["key"]): row for row in [line for line in result.records if line["type"] == "table"][-1]["rows"]}


def expect_rows(result, counts):
    check_equal({key: row["count"] for key, row in table(result).items()}, counts, result.describe())
    check_equal((result.summary["events"], result.summary["hits"]), (sum(counts.values()),) * 2, "hits in the summary")
