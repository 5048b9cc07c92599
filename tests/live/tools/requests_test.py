#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The example application (examples/requests): what it prints against the log that the traced server keeps itself."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # finds the harness  # noqa: E402
from harness import check, check_equal, main, scenario, wait_until  # noqa: E402

REQUESTS = 300


class Traced:
    """The application on a copy of the server, in a directory of its own."""

    def __init__(self, run, application):
        puppet.require_root()
        self.bin = pathlib.Path(run.tool).parent
        for name in (application, "request-server"):
            check((self.bin / name).exists(), f"{name} is not built")
        self.home = tempfile.TemporaryDirectory()
        self.server = pathlib.Path(self.home.name) / "request-server"
        shutil.copy(self.bin / "request-server", self.server)
        self.logs, self.pids = [], []
        self.out = open(self.server.with_name("out"), "w+")
        self.notices = open(self.server.with_name("notices"), "w+")
        self.process = subprocess.Popen([self.bin / application, self.server], stdout=self.out, stderr=self.notices)
        self.wait_attached(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.home.cleanup()

    def text(self, file):
        return pathlib.Path(file.name).read_text()

    def wait_attached(self, times):
        wait_until(lambda: self.text(self.notices).count("sites\n") == times or self.process.poll() is not None,
                   f"attached {times} times")
        check(self.process.poll() is None, f"the application ended:\n{self.text(self.notices)}")

    def serve(self):
        log = self.server.with_name(f"log{len(self.logs)}")
        server = subprocess.Popen([self.server, log, str(REQUESTS)])
        check_equal(server.wait(timeout=60), 0, "exit code of the server")
        self.logs.append(log.read_text())
        self.pids.append(server.pid)

    def end(self, by):
        self.process.send_signal(by)
        check_equal(self.process.wait(timeout=30), 0, f"exit code\n{self.text(self.notices)}")
        check_equal(self.text(self.notices).splitlines()[-1], "request-log: 0 lost", "last notice")

    def compare(self):
        """Each request of each run once, with its path and status; no longer than the server itself took for it."""
        expected = {}
        for pid, log in zip(self.pids, self.logs):
            for line in log.splitlines():
                request, path, status, micros = line.split()
                expected[pid, int(request)] = (path, int(status), int(micros))
        check_equal(len(expected), REQUESTS * len(self.pids), "requests in the server's logs")
        seen = set()
        for line in self.text(self.out).splitlines():
            pid, request, path, status, micros = line.split()
            key = int(pid), int(request)
            check(key in expected and key not in seen, f"no such request, or seen before: {line}")
            seen.add(key)
            check_equal((path, int(status)), expected[key][:2], f"path and status of request {key}")
            check(50 <= int(micros) <= expected[key][2], f"{line}: the server took {expected[key][2]} us")
        check_equal(len(seen), len(expected), "requests seen")


def pairs_through_restarts(run, application):
    with Traced(run, application) as traced:
        traced.serve()
        traced.serve()  # restarted
        successor = traced.server.with_name("new")
        shutil.copy(traced.bin / "request-server", successor)
        os.rename(successor, traced.server)  # and upgraded
        traced.wait_attached(2)
        traced.serve()
        traced.end(signal.SIGTERM)
        traced.compare()


@scenario
def requests_are_paired_through_restart_and_upgrade_of_the_server(run):
    pairs_through_restarts(run, "request-log")


@scenario
def requests_are_paired_by_a_program_written_for_libbpf(run):
    pairs_through_restarts(run, "request-log-libbpf")


@scenario
def sigterm_in_the_middle_of_requests_leaves_a_server_that_runs_on(run):
    with Traced(run, "request-log") as traced:
        log = traced.server.with_name("log")
        server = subprocess.Popen([traced.server, log, "10000"])
        wait_until(lambda: traced.text(traced.out).count("\n") > 50, "50 requests")
        traced.end(signal.SIGTERM)
        check(server.poll() is None, "the server has ended before the trace")
        seen = traced.text(traced.out).splitlines()
        check(all(len(line.split()) == 5 for line in seen), "a line is not whole")
        time.sleep(0.05)
        check_equal(len(traced.text(traced.out).splitlines()), len(seen), "lines after the end")
        check_equal(server.wait(timeout=60), 0, "exit code of the server")
        check_equal(len(log.read_text().splitlines()), 10000, "requests served")


if __name__ == "__main__":
    main()
