#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What usdt-agent takes beside bpftrace (`--bpftrace COMMAND`, which may have words; `--bpftrace ''`: the agent alone) with the
same question: memory and processor time while many processes, each of a file of its own with many sites, are traced and hit; the
agent's page is read every fifteen seconds, as Prometheus does, and every second."""

import pathlib
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attach"))
import paired  # noqa: E402 (makes the tests' modules importable)

sys.path.insert(1, str(paired.ROOT / "tests/live/agent"))
sys.path.insert(2, str(paired.ROOT / "tests/live/export"))
from agent import Agent, Usage, question  # noqa: E402
from harness import Run, wait_until  # noqa: E402

SITE = "  STAP_PROBE1(fleet, hit, n); wait_a_while();\n"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
static struct timespec pause_;
static void wait_a_while(void) { nanosleep(&pause_, NULL); }
int main(int argc, char **argv) {
  const long each = atol(argv[1]);
  pause_.tv_sec = each / 1000000000, pause_.tv_nsec = each %% 1000000000;
  for (long n = 0;; n++) {
%s  }
}
"""


class Fleet:
    """`processes` programs of as many files, with `sites` in each, that make `rate` hits a second together."""

    def __init__(self, run, processes, sites, rate):
        (run.dir / "fleet.c").write_text(PROGRAM % (SITE * sites))
        built = run.build("fleet", [run.dir / "fleet.c"], ["-O1"])
        self.directory = run.dir / "bin"
        self.directory.mkdir()
        for n in range(processes):
            path = self.directory / f"service{n}"
            shutil.copy(built, path)
            run.start(path, str(1_000_000_000 * processes // rate), stdout=subprocess.DEVNULL)

    def path(self, name="*"):
        return self.directory / name


def said_by(log):
    return log.read_text(errors="replace")


def look(pid, seconds, scrape=lambda second: None):
    usage = Usage(pid)
    for second in range(seconds):
        scrape(second)
        time.sleep(1)
        usage.look()
    usage.finish()
    return usage.resident[-1] / 1024, 100 * usage.share


def of_agent(run, tool, fleet, asked, seconds, scraped_every):
    began = time.monotonic()
    agent = Agent(run, {"fleet": question("fleet", f"usdt:{fleet.path()}:fleet:hit", *asked)},
                  tool=pathlib.Path(tool).parent / "usdt-agent")
    agent.wait_for("attached")
    attached = time.monotonic() - began
    found = look(agent.process.pid, seconds, lambda second: second % scraped_every or agent.get("/metrics"))
    hits = agent.sum_of("usdt_fleet_hits_total")
    agent.end()
    return (attached, *found, hits)


def of_bpftrace(run, command, fleet, seconds, most_probes):
    log = run.dir / "log"
    began = time.monotonic()
    with open(log, "wb") as out:
        asked = f"usdt:{fleet.path()}:fleet:hit {{ @[comm] = count(); }} BEGIN {{ printf(\"begun\\n\"); }}"
        tracer = run.start("env", f"BPFTRACE_MAX_PROBES={most_probes}", f"BPFTRACE_MAX_BPF_PROGS={most_probes}",
                           *shlex.split(command), "-e", asked, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    wait_until(lambda: "begun" in said_by(log) or tracer.poll() is not None, "bpftrace attached", 600)
    if tracer.poll() is not None:
        return said_by(log)[-300:]
    attached = time.monotonic() - began
    found = look(tracer.pid, seconds)
    tracer.send_signal(2)
    tracer.wait(300)
    hits = sum(int(line.rsplit(":", 1)[1]) for line in said_by(log).splitlines() if line.startswith("@["))
    return (attached, *found, hits)


def show(what, found):
    if isinstance(found, str):
        print(f"{what:28} did not trace: {found}")
    else:
        print(f"{what:28} attached after {found[0]:6.1f} s, {found[1]:6.1f} MB resident, {found[2]:5.2f} % of a processor, {found[3]:.0f} hits")


def main():
    given = paired.options(__doc__, processes=200, sites=250, rate=10_000, seconds=20, bpftrace="bpftrace")
    run = Run(given.tool)
    try:
        fleet = Fleet(run, given.processes, given.sites, given.rate)
        print(f"{given.processes * given.sites} sites in {given.processes} processes, {given.rate} hits a second")
        for every in (15, 1):
            show(f"usdt-agent, scraped every {every} s", of_agent(run, given.tool, fleet, ["by = 'comm'"], given.seconds, every))
        if given.bpftrace:
            show("bpftrace, @[comm]", of_bpftrace(run, given.bpftrace, fleet, given.seconds, 2 * given.processes * given.sites))
    finally:
        run.close()


if __name__ == "__main__":
    main()
