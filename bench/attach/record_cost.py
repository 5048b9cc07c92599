#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What recording costs the tracer: its processor time while a program hits a probe of three numbers at a steady rate,
beside showing and counting the same events, and the bytes an event takes in the file.

Usage: record_cost.py USDT_TRACE [RATE [SECONDS]]     by default 100000 hits a second, 8 s for each way
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

PROGRAM = """
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
int main(int argc, char** argv) {
  struct timespec begin, now, pause = {0, 1000000};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long n = 0;;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    long due = ((now.tv_sec - begin.tv_sec) + (now.tv_nsec - begin.tv_nsec) / 1e9) * atol(argv[1]);
    for (; n < due; n++) DTRACE_PROBE3(rate, tick, n, n * 7, (int)(n % 1000));
    nanosleep(&pause, NULL);
  }
}
"""
WAYS = {
    "recorded": ["--record", "FILE"],
    "the last 5 s kept": ["--record", "FILE", "--last", "5s"],
    "JSON, to /dev/null": ["--format", "json", "-o", "/dev/null"],
    "counted": ["--count"],
}


def processor_time(pid):
    """Seconds, of all threads (proc(5): utime and stime are fields 14 and 15)."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(tool, directory, way, rate, seconds):
    file = directory / "recording"
    hits = subprocess.Popen([directory / "rate", str(rate)])
    argv = [tool, "-p", str(hits.pid), f"usdt:{directory / 'rate'}:rate:tick"]
    tracer = subprocess.Popen(argv + [str(file) if word == "FILE" else word for word in way],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    before, began = processor_time(tracer.pid), time.monotonic()
    time.sleep(seconds)
    share = (processor_time(tracer.pid) - before) / (time.monotonic() - began)
    tracer.send_signal(2)
    said = next(line for line in tracer.communicate()[1].splitlines() if " hit" in line)
    hits.kill()
    hits.wait()
    return share, file.stat().st_size / int(said.split()[0]) if "FILE" in way else None, said


def main():
    tool, rate, seconds = sys.argv[1], int((sys.argv[2:] + ["100000"])[0]), float((sys.argv[3:] + ["8"])[0])
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", directory / "rate"], input=PROGRAM, text=True, check=True)
        for label, way in WAYS.items():
            share, size, said = measure(tool, directory, way, rate, seconds)
            print(f"{label:<20} {share:6.2%} of a processor{f', {size:.1f} bytes an event' if size else ''}; {said}",
                  flush=True)


if __name__ == "__main__":
    main()
