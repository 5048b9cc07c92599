# SPDX-License-Identifier: BSD-2-Clause
"""An agent and a program for it to trace, for the tests beside this."""

import collections
import importlib
import os
import pathlib
import re
import signal
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request

from collector import attributes_of
from harness import Skip, check, require_root, wait_line, wait_until

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
/* As many hits as each line of standard input says, with its pauses of so many microseconds, and a line when they are done. */
int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 0, times, pause;
  while (scanf("%ld %ld", &times, &pause) == 2) {
    for (; times > 0; times--, n++) {
      DTRACE_PROBE1(agent, hit, n);
      if (n % 2) DTRACE_PROBE1(agent, odd, n);
      if (pause) usleep(pause);
    }
    printf("%ld\n", n);
    fflush(stdout);
  }
  return 0;
}
"""


class Program:
    """One that hits as it is told; `first`: the number of its first hit."""

    def __init__(self, run, path, first=0):
        self.process = run.start(path, str(first), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def begin(self, times, pause=0):
        self.process.stdin.write(f"{times} {pause}\n".encode())

    def wait(self):
        """The number of the next hit."""
        return int(wait_line(self.process, 60))

    def hit(self, times, pause=0):
        self.begin(times, pause)
        return self.wait()


class Agent:
    """An agent whose questions are in run.dir / "questions"; `files`: name -> text; `prefix`: words before its own."""

    def __init__(self, run, files, *options, environment=None, prefix=(), tool=None):
        self.run, self.directory = run, run.dir / "questions"
        self.directory.mkdir(exist_ok=True)
        for name, text in files.items():
            self.write(name, text)
        self.said, self.page = [], None
        self.process = run.start(*prefix, tool or agent_of(run), "--listen", "0", *options, self.directory, stderr=subprocess.PIPE,
                                 text=True, env={**os.environ, **(environment or {})})
        threading.Thread(target=self.listen, daemon=True).start()
        self.page = self.wait_for("metrics are at ").split()[-1]

    def write(self, name, text):
        (self.directory / f"{name}.toml").write_text(text)

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))

    def wait_for(self, text, times=1):
        wait_until(lambda: sum(text in line for line in list(self.said)) >= times, f"{text!r} in {self.said}", 60)
        return next(line for line in self.said if text in line)

    def get(self, path):
        try:
            with urllib.request.urlopen(self.page.replace("/metrics", path), timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def metrics(self):
        """{(name, label value...): value}"""
        try:
            parser = importlib.import_module("prometheus_client.parser")
        except ImportError:
            raise Skip("no python3-prometheus-client") from None
        samples = {}
        for family in parser.text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.values()))
                check(key not in samples, f"{sample} is there twice")
                samples[key] = sample.value
        return samples

    def sum_of(self, name):
        return sum(value for key, value in self.metrics().items() if key[0] == name)

    def reload(self):
        before = self.sum_of("usdt_agent_reloads_total")
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.sum_of("usdt_agent_reloads_total") > before, "a reload")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)


class Usage:
    """Memory and processor time of a process, a look each second."""

    def __init__(self, pid):
        self.pid, self.resident, self.share = pid, [], None
        self.began = self.times()

    def look(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        self.resident.append(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)))

    def times(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return time.monotonic(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def finish(self):
        """The share of one processor is known from now on."""
        now = self.times()
        self.share = (now[1] - self.began[1]) / (now[0] - self.began[0])

    def ends(self):
        """kB in the first minute and in the last."""
        return statistics.mean(self.resident[5:65]), statistics.mean(self.resident[-60:])


def agent_of(run):
    return pathlib.Path(run.tool).parent / "usdt-agent"


def build(run, name="hits"):
    require_root()
    (run.dir / f"{name}.c").write_text(PROGRAM)
    return run.build(name, [run.dir / f"{name}.c"], ["-O1"])


def question(name, probe, *lines):
    return "\n".join([f"[question.{name}]", f"probes = ['{probe}']", *lines]) + "\n"


def numbers_of(collector, key="arg0"):
    """How often each number came."""
    return collections.Counter(attributes_of(log.attributes)[key] for _, log in collector.logs())


def once_each(numbers):
    return collections.Counter(range(numbers))
