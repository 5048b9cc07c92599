#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spans in the forms that answers have: what became of their ends, whose they are, and who ended them, as JSON says it."""

import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tools")]

import puppet  # noqa: E402, F401 (finds the harness)
from collector import Collector, attributes_of  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402
from house import House  # noqa: E402
from metric_pages import read_text  # noqa: E402

PROGRAM = r"""
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
static sem_t given;
static void *take(void *unused) {
  prctl(PR_SET_NAME, "tak\\er");
  for (long i = 0; i < 20; i++) {
    sem_wait(&given);
    if (i % 4) DTRACE_PROBE1(jobs, taken, i);
  }
  DTRACE_PROBE1(jobs, taken, 99L);
  return unused;
}
/* Of twenty jobs fifteen are taken, by another thread, and one that nobody gave. */
int main(void) {
  pthread_t thread;
  sem_init(&given, 0, 0);
  pthread_create(&thread, NULL, take, NULL);
  for (long i = 0; i < 20; i++) {
    DTRACE_PROBE1(jobs, given, i);
    sem_post(&given);
  }
  pthread_join(thread, NULL);
  return 0;
}
"""


def build(run, name="jobs"):
    require_root()
    (run.dir / "jobs.c").write_text(PROGRAM)
    return run.build(name, [run.dir / "jobs.c"], ["-O1", "-pthread"])


def trace(run, program, *words, env=None):
    """The lines of JSON."""
    done = subprocess.run([run.tool, f"usdt:{program}:jobs:given ~~ usdt:{program}:jobs:taken", "--pair-by", "arg0", "-f", "json", "-o",
                           run.dir / "out.json", *words, "--", program], capture_output=True, text=True, timeout=60, env=env)
    check_equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]


PAIRING = ("paired", "in_flight", "unmatched", "unpaired")


@scenario
def the_ledger_says_how_ends_and_beginnings_came_together(run):
    program, house, collector = build(run), House(), Collector(run)
    lines = trace(run, program, "--export", f"prometheus={run.dir}/out.prom", "--export", f"otlp={collector.url}", "--export",
                  f"clickhouse={house.url}")
    ledger = {probe["probe"]: probe for probe in lines[-1]["probes"]}
    given, taken = (f"usdt:{program}:jobs:{name}" for name in ("given", "taken"))
    check_equal({name: (ledger[given][name], ledger[taken][name]) for name in PAIRING},
                {"paired": (15, 0), "in_flight": (5, 0), "unmatched": (0, 1), "unpaired": (0, 0)}, "what the program did, in JSON")
    samples, metrics = read_text((run.dir / "out.prom").read_text()), collector.metrics()
    for name in ("hits", "events", *PAIRING):
        expected = {probe: told[name] for probe, told in ledger.items()}
        page = samples[f"usdt_{name}" + ("" if name == "in_flight" else "_total")]
        check_equal({dict(labels)["probe"]: value for labels, value in page.items()}, expected, f"{name} in Prometheus")
        data = metrics[f"usdt_{name}"].gauge if name == "in_flight" else metrics[f"usdt_{name}"].sum
        check_equal({attributes_of(point.attributes)["probe"]: point.as_int for point in data.points}, expected, f"{name} in OTLP")
    rows = {(row["probe"], row["role"], row["name"]): row["value"] for row in house.rows["usdt_ledger"] if row["last"]}
    check_equal({key[::2]: value for key, value in rows.items() if key[1] == "pairing"},
                {(given, "paired"): 15, (given, "in_flight"): 5, (taken, "unmatched"): 1}, "ClickHouse")
    check_equal(rows[taken, "events", "events"], 15, "events of the probe that ends them")


@scenario
def a_service_is_the_program_that_is_traced(run):
    program, house, collector = build(run), House(), Collector(run)
    trace(run, program, "--export", f"otlp={collector.url}", "--export", f"clickhouse={house.url}")
    check_equal([resource["service.name"] for resource, _ in collector.spans()], ["jobs"] * 15, "spans")
    check_equal({resource["service.name"] for resource, _ in collector.metrics_and_resources()}, {"jobs"}, "metrics")
    for table in ("usdt_events", "usdt_ledger"):
        check_equal({row["service"] for row in house.rows[table]}, {"jobs"}, table)


@scenario
def each_program_has_a_service_of_its_own(run):
    programs = [build(run, name) for name in ("first", "second")]
    house, collector = House(), Collector(run)
    words = [f"usdt:{program}:jobs:given" for program in programs]
    for env, services in (({}, {"first", "second"}), ({"OTEL_SERVICE_NAME": "shop"}, {"shop"})):
        done = subprocess.run([run.tool, *words, "-o", run.dir / "shown", "--export", f"otlp={collector.url}", "--export",
                               f"clickhouse={house.url}", "--", "sh", "-c", " && ".join(map(str, programs))],
                              capture_output=True, text=True, timeout=60, env={**os.environ, **env})
        check_equal(done.returncode, 0, done.stderr)
        logs = [(resource["service.name"], attributes_of(log.attributes)["usdt.probe"]) for resource, log in collector.take_logs()]
        rows = [(row["service"], row["probe"]) for row in house.rows.pop("usdt_events")]
        of_one = "".join(services) if len(services) == 1 else None
        expected = {(of_one or program.name, word): 20 for program, word in zip(programs, words)}
        check_equal(collections.Counter(logs), expected, "OTLP")
        check_equal(collections.Counter(rows), expected, "ClickHouse")
        check_equal({row["service"] for row in house.rows.pop("usdt_ledger")}, {of_one or "usdt"}, "numbers of both")


if __name__ == "__main__":
    main()
