#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spans in the forms that answers have: what became of their ends, whose they are, and who ended them, as JSON says it."""

import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tools")]

import puppet  # noqa: E402, F401 (finds the harness)
from collector import Collector, attributes_of  # noqa: E402
from harness import check, check_equal, main, require_program, require_root, scenario  # noqa: E402
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
/* Another thread takes fifteen jobs of twenty, and one that nobody gave. */
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


def enders(lines):
    """Of each job in JSON."""
    return sorted((line["args"][0], *line["ended_by"].values()) for line in lines if line["type"] == "span")


@scenario
def who_ended_a_span_is_in_every_form(run):
    program, house, collector, forms = build(run), House(), Collector(run), run.dir
    exports = lambda name, *more: (f for form, place in (("csv", forms / f"{name}.csv"), ("text", forms / f"{name}.text"), *more)  # noqa: E731
                                   for f in ("--export", f"{form}={place}"))
    lines = trace(run, program, *exports("live", ("otlp", collector.url), ("clickhouse", house.url), ("record", forms / "jobs.rec")))
    expected = enders(lines)
    check_equal((len(expected), {comm for *_, comm in expected}), (15, {"tak\\er"}), "JSON")
    check(all(line["ended_by"]["tid"] != line["tid"] for line in lines if line["type"] == "span"), "another thread")
    subprocess.run([run.tool, "--replay", forms / "jobs.rec", *exports("again")], check=True, capture_output=True, timeout=60)
    for name in ("live", "again"):
        with open(forms / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        check_equal(sorted((int(row["arg0"]), int(row["ended_by_pid"]), int(row["ended_by_tid"]), row["ended_by_comm"]) for row in rows),
                    expected, f"CSV, {name}")
        said = re.findall(r" arg0=(\d+) .*ended_by=(\d+)/(\d+) \"(.*)\"$", (forms / f"{name}.text").read_text(), re.M)
        check_equal(sorted((*map(int, numbers), comm.replace("\\\\", "\\")) for *numbers, comm in said), expected, f"text, {name}")
    told = [attributes_of(span.attributes) for _, span in collector.spans()]
    names = [f"usdt.ended_by.{name}" for name in ("pid", "tid", "comm")]
    check_equal(sorted((each["arg0"], *(each[name] for name in names)) for each in told), expected, "OTLP")
    rows = [{**row["nums"], **row["args"]} for row in house.rows["usdt_events"]]
    check_equal(sorted((each["arg0"], *(each[name] for name in names)) for each in rows), expected, "ClickHouse")


@scenario
def a_thread_of_another_pid_namespace_ends_spans_without_numbers_and_name(run):
    """Whom the tracer cannot number, and who has no name either, has ended it all the same."""
    require_program("unshare")
    (run.dir / "jobs.c").write_text(PROGRAM.replace('"tak\\\\er"', '""'))
    program = run.build("jobs", [run.dir / "jobs.c"], ["-O1", "-pthread"])
    require_root()
    question = [f"usdt:{program}:jobs:given ~~ usdt:{program}:jobs:taken", "--pair-by", "arg0"]
    # The tracer is in a namespace of its own, and the program is not in it.
    tracing = run.start("unshare", "--pid", "--fork", "--mount-proc", run.tool, *question, "-f", "json", "-o", run.dir / "out.json", "--export",
                        f"record={run.dir}/jobs.rec", "-M", "15", stderr=subprocess.PIPE)
    while b"attached" not in (line := tracing.stderr.readline()):
        check(line, "the trace ended")
    subprocess.run([program], check=True, timeout=60)
    check_equal(tracing.wait(60), 0, tracing.stderr.read())
    read = lambda text: [each.get("ended_by") for each in map(json.loads, text.splitlines()) if each["type"] == "span"]  # noqa: E731
    check_equal(read((run.dir / "out.json").read_text()), [{"pid": 0, "tid": 0, "comm": ""}] * 15, "JSON")
    again = subprocess.run([run.tool, "--replay", run.dir / "jobs.rec", "-f", "json"], capture_output=True, text=True, check=True, timeout=60)
    check_equal(read(again.stdout), [{"pid": 0, "tid": 0, "comm": ""}] * 15, "JSON of the recording")


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
