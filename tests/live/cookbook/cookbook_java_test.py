#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about OpenJDK: what they tell is what its log, its management interface and the program say."""

import re
import subprocess

from recipes import HERE, Recipe, check_near
from harness import Skip, check, check_equal, main, require_program, scenario, wait_line


class Java:
    """App.java in a virtual machine that has probes, waiting for its order."""

    def __init__(self, run, *options):
        require_program("java", "javac")
        version = subprocess.run(["java", "-XshowSettings:properties", "-version"], capture_output=True, text=True).stderr
        home = re.search(r"java\.home = (.*)", version)[1]
        library = f"{home}/lib/server/libjvm.so"
        if "gc__begin" not in subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout:
            raise Skip(f"{library} has no probes")
        built = subprocess.run(["javac", "-d", run.dir, HERE / "App.java"], capture_output=True, text=True)
        check(built.returncode == 0, built.stderr)
        self.log = run.dir / "vm.log"
        self.process = run.start("java", "-XX:+UseSerialGC", "-Xmx32m", f"-Xlog:safepoint:file={self.log}", *options, "-cp", run.dir,
                                 "App", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        check_equal(wait_line(self.process), "ready", "the program")

    def work(self):
        """Blocked threads, for how many milliseconds in all, calls of Ledger.add."""
        self.process.stdin.write(b"\n")
        return [int(word) for word in wait_line(self.process, 60).split()]

    def pauses(self):
        """In seconds, as the log has them: by whether it was a full collection."""
        lines = re.findall(r'Safepoint "GenCollect(\w+)".* At safepoint: +(\d+) ns', self.log.read_text())
        return [(int(why == "Full"), int(ns) / 1e9) for why, ns in lines]


@scenario
def pauses_for_garbage_are_those_of_the_log(run):
    java = Java(run)
    before = len(java.pauses())
    recipe = Recipe(run, "How long does a Java program stand still for its garbage collector?").start(java.pid)
    java.work()
    result = recipe.stop()
    pauses = java.pauses()[before:]
    for full in (0, 1):
        theirs = [seconds for kind, seconds in pauses if kind == full]
        row = result.rows[(full,)]
        check_equal((row["count"], len(theirs) >= 3), (len(theirs), True), f"pauses, full: {full}")
        check(row["max"] / 1e9 <= max(theirs), f"what is logged is around the probes: {row['max']} ns, {max(theirs)} s")
        check_near(row["max"] / 1e9, max(theirs), "the longest pause")


@scenario
def waits_for_monitors_are_those_the_threads_were_blocked(run):
    java = Java(run, "-XX:+DTraceMonitorProbes")
    recipe = Recipe(run, "Which Java objects do threads wait for, and how long?").start(java.pid)
    blocked, milliseconds, _ = java.work()
    result = recipe.stop()
    row = result.rows[("App$Ledger",)]
    check_equal((row["count"], blocked), (4, 4), "waits, and those the threads count")
    check_near(row["sum"] / 1e9, milliseconds / 1000, "time blocked")


@scenario
def calls_of_java_methods_are_those_the_program_counts(run):
    java = Java(run, "-XX:+DTraceMethodProbes")
    recipe = Recipe(run, "Which Java methods are called most?").start(java.pid)
    *_, added = java.work()
    counts = recipe.stop().counts()
    check_equal((counts.get(("App$Ledger", "add")), counts.get(("App$Ledger", "check"))), (added, added), "calls")


if __name__ == "__main__":
    main()
