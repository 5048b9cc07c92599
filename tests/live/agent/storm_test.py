#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A day of an agent in minutes (./run long storm: ten; here half of one): programs come, are replaced and go, files are read again and
again, the server is away longer than the spool has room, the agent is killed, and its clock is a day ahead. In the end every
hit that the programs say is with the server or in a count of losses, exactly, and the agent has grown by nothing."""

import collections
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "export"))
sys.path.insert(2, str(pathlib.Path(__file__).resolve().parent))

import puppet  # noqa: E402, F401 (finds the harness)
from agent import Agent, Usage, question  # noqa: E402
from collector import Collector, attributes_of  # noqa: E402
from harness import LONG, check, check_equal, main, require_program, require_root, scenario, wait_until, with_long  # noqa: E402

SECONDS, PERIOD = with_long((600, 25), (26, 13))
SPOOL_MEGABYTES = 1
HITS = 20_000  # of one program, in some eight seconds
PAUSE = 2  # seconds between their beginnings: some 10,000 hits a second
AWAY = with_long(range(8, 22), range(4, 11))  # the seconds of each period in which the server is not there

# It hits once somebody traces it: no hit is before that, and its number says how many there are.
PROGRAM = r"""
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
unsigned short storm_hit_semaphore __attribute__((section(".probes")));
unsigned short storm_other_semaphore __attribute__((section(".probes")));
int main(int argc, char **argv) {
  long first = atol(argv[1]), times = atol(argv[2]);
  for (int waited = 0; !*(volatile unsigned short *)&storm_hit_semaphore; waited++) {
    if (waited > 60000) return 3;
    usleep(1000);
  }
  usleep(200000); /* the kernel raises the semaphore first, and then writes the breakpoint (uprobe_write_opcode()) */
  for (long n = 0; n < times; n++) {
    STAP_PROBE2(storm, hit, first + n, n);
    if (n % 100 == 0) STAP_PROBE1(storm, other, n);
    if (n % 5 == 0) usleep(1600);
  }
  printf("%ld\n", times);
  return 0;
}
"""


class Server:
    """A collector that comes and goes at one port, and keeps numbers alone."""

    def __init__(self, run):
        self.run, self.port, self.numbers, self.collector = run, 0, collections.Counter(), None
        self.come()

    def come(self):
        self.collector = Collector(self.run, port=self.port)
        self.port = int(self.collector.url.rsplit(":", 1)[1])

    def go(self):
        self.collector.close()
        self.take()

    def take(self):
        """Moves what came into `numbers`."""
        for _, log in self.collector.take_logs():
            check_equal(log.event_name, "storm:hit", "the name, whichever file it is")
            self.numbers[attributes_of(log.attributes)["arg0"]] += 1


class Programs:
    """Starts programs of a file that is replaced each time, so that some are there at any moment; `hits`: all of theirs."""

    def __init__(self, run, built, hits):
        self.run, self.built, self.path, self.hits, self.failed = run, built, run.dir / "bin/service", hits, []
        self.path.parent.mkdir(exist_ok=True)
        self.living, self.goes_on = [], True
        self.thread = threading.Thread(target=self.start_again_and_again, daemon=True)
        self.thread.start()

    def start_again_and_again(self):
        while self.goes_on:
            shutil.copy(self.built, self.run.dir / "bin/new")
            os.rename(self.run.dir / "bin/new", self.path)
            self.living.append(subprocess.Popen([self.path, str(self.hits), str(HITS)], stdout=subprocess.PIPE, text=True))
            self.hits += HITS
            time.sleep(PAUSE)
            self.living = [each for each in self.living if each.poll() is None or self.end(each)]

    def end(self, program):
        said = program.communicate(timeout=90)[0]
        if (program.returncode, said.strip()) != (0, str(HITS)):
            self.failed.append((program.returncode, said))

    def finish(self, agent):
        self.goes_on = False
        self.thread.join()
        for program in self.living:
            self.end(program)
        check_equal(self.failed, [], f"programs that nobody traced in time; the agent says {agent.said[-20:]}")


def start_agent(run, path, server):
    agent = Agent(run, {"stays": question("stays", f"usdt:{path}:storm:hit", "print = 'arg0'")},
                  "--export", f"otlp=http://127.0.0.1:{server.port}", "--spool", run.dir / "spool", "--spool-size", str(SPOOL_MEGABYTES),
                  prefix=["unshare", "--time", "--monotonic", "86400", "--boottime", "86400", "--"])
    agent.wait_for("attached" if path.exists() else "waiting")
    return agent


def weather(agent, server, second):
    """Lets happen what is due in this second of the storm."""
    if second % 4 == 0:
        agent.write("changes", question("changes", "usdt:*service:storm:other", f"where = 'arg0 > {second}'", "by = 'arg0 % 3'"))
        agent.process.send_signal(signal.SIGHUP)
    if second % PERIOD == AWAY.start:
        server.go()
    if second % PERIOD == AWAY.stop:
        server.come()
    if second % PERIOD not in AWAY:
        server.take()
    agent.get("/metrics")


def live_through(run, built, server, first, kill):
    """One life of an agent. Returns the number of hits by its end, those lost in it, and what the agent took."""
    programs = Programs(run, built, first)
    wait_until(programs.path.exists, "a program")
    agent = start_agent(run, programs.path, server)
    usage = Usage(agent.process.pid)
    for second in range(SECONDS // 2):
        weather(agent, server, second)
        usage.look()
        time.sleep(1)
    usage.finish()
    programs.finish(agent)
    if (SECONDS // 2 - 1) % PERIOD in AWAY:
        server.come()
    time.sleep(4)  # the last batch, and another look at the account
    check_equal(agent.sum_of("usdt_stays_hits_total"), programs.hits - first, f"hits of this life, {agent.said[-20:]}")
    lost = sum(value for key, value in agent.metrics().items() if key[0] == "usdt_stays_lost_total")
    if kill:
        agent.end(signal.SIGKILL)
        return programs.hits, lost, usage
    wait_until(lambda: agent.sum_of("usdt_agent_spool_bytes") == 0, "an empty spool", 60)
    lost += agent.sum_of("usdt_agent_spool_lost_events_total")
    check_equal(agent.end(), 0, "exit code")
    return programs.hits, lost, usage


@scenario
def every_hit_of_a_storm_is_accounted_for(run):
    require_root()
    require_program("unshare")
    (run.dir / "storm.c").write_text(PROGRAM)
    built, server = run.build("storm", [run.dir / "storm.c"], ["-O1"]), Server(run)
    hits, lost_first, killed = live_through(run, built, server, 0, kill=True)
    hits, lost_then, ended = live_through(run, built, server, hits, kill=False)
    server.take()
    lost = lost_first + lost_then
    report((killed, ended), hits, lost, sum(times - 1 for times in server.numbers.values()))
    check_equal(len(server.numbers) + lost, hits, f"hits at the server ({len(server.numbers)}) and lost ones ({lost})")
    for usage in (killed, ended):
        early, late = usage.ends()
        check(not LONG or late <= early * 1.05, f"memory grows from {early} to {late} kB")


def report(usages, hits, lost, twice):
    print(f"{hits} hits in {SECONDS} s, {lost:.0f} of them lost and counted, {twice} twice at the server")
    for usage in usages:
        early, late = usage.ends()
        print(f"resident {early / 1024:.1f} MB in the first minute, {late / 1024:.1f} MB in the last; {100 * usage.share:.2f} % of a processor")


if __name__ == "__main__":
    main()
