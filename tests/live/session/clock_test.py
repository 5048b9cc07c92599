#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Times in a time namespace: the kernel's programs have the clock of the initial one, whatever the tracer's is."""

import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

PROGRAM = r"""
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 20; i++) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    volatile long ns = now.tv_sec * 1000000000L + now.tv_nsec;
    DTRACE_PROBE1(clocks, now, ns);
    usleep(1000);
  }
}
"""


def build(run):
    require_root()
    require_program("unshare")
    (run.dir / "clocks.c").write_text(PROGRAM)
    return run.build("clocks", [run.dir / "clocks.c"], ["-O1"])


def in_namespaces(run, *words):
    """usdt-trace in time namespaces that are ahead and behind, and in none: what each says."""
    for offset in (None, "1000000", "-100"):
        uptime = time.clock_gettime(time.CLOCK_MONOTONIC)
        if offset is not None and uptime + int(offset) < 0:
            continue
        unshare = [] if offset is None else ["unshare", "--time", "--fork", "--monotonic", offset]
        done = subprocess.run([*unshare, run.tool, *map(str, words)], capture_output=True, text=True, timeout=60)
        if offset is not None and "unshare" in done.stderr:
            raise Skip(done.stderr)
        check_equal(done.returncode, 0, done.stderr)
        yield done


@scenario
def times_of_day_are_those_of_the_program(run):
    program = build(run)
    for done in in_namespaces(run, f"usdt:{program}:clocks:now", "-f", "json", "--print", "arg0, elapsed", "--", program):
        events = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "event"]
        check_equal(len(events), 20, "events")
        for event in events:
            said, elapsed = event["args"]
            hours, minutes, seconds = re.search(r"T(\d+):(\d+):([\d.]+)", event["time"]).groups()
            shown = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            utc = time.gmtime(said // 10 ** 9)
            wanted = utc.tm_hour * 3600 + utc.tm_min * 60 + utc.tm_sec + said % 10 ** 9 / 1e9
            check(abs(shown - wanted) < 0.05 or abs(shown - wanted) > 86399, f"{event['time']} for {said}")
            check(0 < elapsed < 60 * 10 ** 9, f"elapsed {elapsed}")


@scenario
def elapsed_can_be_asked_about(run):
    program = build(run)
    for where, wanted in (("elapsed < 60s", 20), ("elapsed > 200h", 0)):
        for done in in_namespaces(run, f"usdt:{program}:clocks:now", "-f", "json", "--where", where, "--", program):
            events = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "event"]
            check_equal(len(events), wanted, where)


@scenario
def the_last_while_of_a_recording_is_the_last_while(run):
    program, file = build(run), run.dir / "last.rec"
    for _ in in_namespaces(run, f"usdt:{program}:clocks:now", "--record", file, "--last", "60s", "--dump-on",
                           "elapsed > 200h || arg0 < 0", "--", program):
        shown = subprocess.run([run.tool, "--replay", file, "-f", "json"], capture_output=True, text=True, timeout=60)
        events = [line for line in map(json.loads, shown.stdout.splitlines()) if line["type"] == "event"]
        check_equal(len(events), 20, "none of them was a reason to end, and all are kept")


if __name__ == "__main__":
    main()
