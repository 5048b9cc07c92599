#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each export read back by programs of others: VictoriaMetrics, OpenTelemetry's own messages, promtool, Prometheus, speedscope,
sqlite and DuckDB. Numbers and texts are those that the traced program says, and that JSON of the same trace has. `./run readers`
brings what Debian 12 does not have, and runs it; without that its scenarios are skipped."""

import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "agent")]

import puppet  # noqa: E402, F401 (finds the harness)
import agent as agents  # noqa: E402
from collector import Collector, attributes_of, without_chance  # noqa: E402
from harness import check, check_equal, main, require_program, require_root, scenario, wait_until  # noqa: E402
from readers import READERS, Official, Prometheus, Victoria, by_duckdb, by_speedscope, by_sqlite, of_readers  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
/* Says each hit and call: a line with its number, its real number, its text in hexadecimal digits. */
static char texts[][32] = {"plain", "with, comma", "\"quoted\"", "'; drop table t; --", "two\nlines", "\r\nafter", "",
                           " spaces ", "=1+1", "tab\there", "\xff\xfe", "\xe2\x82\xac,\"", "a;b|c", "\"", ",", "NULL", "nan"};
enum { kTexts = sizeof(texts) / sizeof(texts[0]) };
struct request { int kind; double weight; char name[32]; };
static void say(const char *what, long n, double real, const char *text) {
  printf("%s %ld %.17g x", what, n, real);
  for (; *text; text++) printf("%02x", (unsigned char)*text);
  printf("\n");
}
__attribute__((noipa)) long work(struct request *r, long n) {
  for (volatile long i = 0; i < n % 16 * 1000; i++) {}
  return r->kind * 2 - 100;
}
int main(int argc, char **argv) {
  long times = argc > 1 ? atol(argv[1]) : 0;
  for (int i = 0; i < kTexts; i++) texts[i][31] = 0;  /* written to, so that their pages are there */
  for (long i = 0; i < times; i++) {
    struct request r = {(int)i, (double)i / 8 - 10, ""};
    strcpy(r.name, texts[i % kTexts]);
    volatile long number = i * 3 - 100;
    volatile double real = r.weight;
    DTRACE_PROBE3(readers, hit, number, real, (const char *)texts[i % kTexts]);
    work(&r, i);
    say("hit", number, real, texts[i % kTexts]);
    say("call", i, r.weight, r.name);
  }
  return 0;
}
"""
# A function in the middle has a name that readers of lines may stumble over.
STACKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
static volatile long done;
static long hits, sum;
void odd(long n) __asm__("\"odd;name <b> 12\"");
__attribute__((noinline)) void leaf(long n) { hits++, sum += n; DTRACE_PROBE1(stacks, hit, n); done = n; }
__attribute__((noinline)) void left(long n) { leaf(n); done = n; }
__attribute__((noinline)) void odd(long n) { left(n); leaf(n); done = n; }
int main(int argc, char **argv) {
  for (long i = 0, times = atol(argv[1]); i < times; i++) {
    left(i);
    if (i % 3 == 0) odd(i);
  }
  printf("%ld %ld\n", hits, sum);
  return argc == 0;
}
"""
Hit = collections.namedtuple("Hit", "number real text")


def build(run):
    require_root()
    (run.dir / "readers.c").write_text(PROGRAM)
    return run.build("readers", [run.dir / "readers.c"], ["-O1", "-g"])


def trace(run, program, words, times="100", name="out", environment=None):
    """The lines of JSON, and what the program says of its hits and calls: {"hit": [...], "call": [...]}."""
    done = subprocess.run([run.tool, *words, "-f", "json", "-o", run.dir / f"{name}.json", "--", program, times],
                          capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})})
    check_equal(done.returncode, 0, done.stderr)
    said = collections.defaultdict(list)
    for what, number, real, text in re.findall(r"^(hit|call) (\S+) (\S+) x(\w*)$", done.stdout, re.M):
        said[what].append(Hit(int(number), float(real), bytes.fromhex(text)))
    return [json.loads(line) for line in (run.dir / f"{name}.json").read_text().splitlines()], said


def rows_of(lines):
    return [line for line in lines if line["type"] == "table"][-1]["rows"]


def shown(text):
    """A text of others as forms for programs have it: bytes that are no UTF-8 are marked."""
    return "".join(f"\ufffd{ord(letter) & 0xff:02x}" if "\udc80" <= letter <= "\udcff" else letter
                   for letter in text.decode(errors="surrogateescape"))


# --- VictoriaMetrics ------------------------------------------------------------------------------------------------


def trace_to(server, run, program, words, service, least):
    """The series of a service, of which there are so many at least, the lines of JSON, and what the program says."""
    lines, said = trace(run, program, [*words, "--export", f"otlp={server.url}/opentelemetry"], name=service,
                        environment={"OTEL_SERVICE_NAME": service})
    return server.series(service, least), lines, said


def range_of(value, scale, factor):
    """VictoriaMetrics's name for the bucket where an exponential histogram has a value."""
    if value == 0:
        return "-0.000e+00...0.000e+00"
    index = math.ceil(math.log2(abs(value) * factor) * 2 ** scale) - 1
    low, high = (2 ** (n / 2 ** scale) for n in (index, index + 1))
    return f"{low:.3e}...{high:.3e}" if value > 0 else f"{-high:.3e}...{-low:.3e}"


def ranges_of(row, scale, factor=1):
    """Where a row's buckets go: a bucket is where its value of largest magnitude belongs."""
    counts = collections.Counter()
    for bucket in row["buckets"]:
        farthest = bucket["last"] if bucket["last"] > 0 or bucket["first"] == 0 else bucket["first"]
        counts[range_of(farthest, scale, factor)] += bucket["count"]
    return counts


def read_ranges(series, name, labels=()):
    return {dict(found)["vmrange"]: count for (each, found), count in series.items()
            if each == name and set(labels) <= found and "vmrange" in dict(found)}


@scenario
def victoria_metrics_has_the_numbers_of_rows(run):
    program, server = build(run), Victoria(run)
    words = [f"usdt:{program}:readers:hit", "--by", "arg0 % 3, str(arg2)", "--sum", "arg0"]
    series, _, said = trace_to(server, run, program, words, "rows", 79)
    expected = collections.Counter()
    for hit in said["hit"]:
        key = str(int(math.fmod(hit.number, 3))), shown(hit.text)
        expected["usdt_row_hits", *key] += 1
        expected["usdt_summed", *key] += hit.number
    # A label without a value is none to it.
    found = {(name, dict(labels)["arg0_3"], dict(labels).get("str_arg2", "")): value for (name, labels), value in series.items()
             if name in ("usdt_row_hits", "usdt_summed")}
    check_equal(found, dict(expected), "hits and sums")
    check_equal([value for (name, _), value in series.items() if name == "usdt_hits"], [100], "hits of the ledger")


@scenario
def victoria_metrics_has_the_buckets_of_histograms(run):
    program, server = build(run), Victoria(run)
    for service, words, scale in (("coarse", ["--hist", "arg0"], 0), ("fine", ["--hist", "arg0", "--hist-detail", "4"], 3)):
        series, lines, _ = trace_to(server, run, program, [f"usdt:{program}:readers:hit", *words], service, 10)
        check_equal(series["usdt_values_count", frozenset()], 100, "values")
        check_equal(read_ranges(series, "usdt_values_bucket"), dict(ranges_of(rows_of(lines)[0], scale)), f"{words}")
    series, lines, _ = trace_to(server, run, program, [f"ucall:{program}:work", "--latency", "--by", "n % 4"], "calls", 20)
    for row in rows_of(lines):
        labels = [("n_4", str(row["key"][0]))]
        check_equal(series["usdt_duration_seconds_count", frozenset(labels)], row["count"], "calls")
        for name, member in (("usdt_duration_seconds_sum", "total"), ("usdt_maximum_seconds", "max")):
            check(math.isclose(series[name, frozenset(labels)], row[member] / 1e9, rel_tol=1e-9), f"{row[member]} ns of {labels}")
        read = read_ranges(series, "usdt_duration_seconds_bucket", labels)
        check_equal(read, dict(ranges_of(row, 3, 1e-9)), f"durations of {labels}")


# --- OpenTelemetry's own messages -----------------------------------------------------------------------------------


@scenario
def opentelemetry_reads_spans(run):
    program, official = build(run), Official(run)
    lines, said = trace(run, program, [f"ucall:{program}:work", "--print", "n, r->kind, r->weight, r->name, retval",
                                       "--export", f"otlp={official.collector.url}"], "1700")
    spans = official.items("trace")
    check_equal(len(spans), 1700, "spans")
    for (resource, span), call in zip(sorted(spans, key=lambda each: each[1].start_time_unix_nano), said["call"]):
        values = attributes_of(span.attributes)
        check_equal([values[name] for name in ("n", "r->kind", "r->weight", "r->name", "retval")],
                    [call.number, call.number, call.real, shown(call.text), call.number * 2 - 100], "values")
        check_equal((span.name, span.SpanKind.Name(span.kind), span.status.code), ("ucall:work", "SPAN_KIND_INTERNAL", 0),
                    "the span")
        check_equal((len(span.trace_id), len(span.span_id), resource["service.name"]), (16, 8, "readers"), "identities")
    durations = sorted(span.end_time_unix_nano - span.start_time_unix_nano for _, span in spans)
    check_equal(durations, sorted(line["duration_ns"] for line in lines if line["type"] == "event"), "durations")


@scenario
def opentelemetry_reads_log_records_and_metrics(run):
    program, official = build(run), Official(run)
    _, said = trace(run, program, [f"usdt:{program}:readers:hit", "--print", "arg0, arg1, str(arg2)",
                                   "--export", f"otlp={official.collector.url}"], "1700")
    logs = official.items("logs")
    read = [tuple(attributes_of(log.attributes)[name] for name in ("arg0", "arg1", "str(arg2)"))
            for _, log in sorted(logs, key=lambda each: each[1].time_unix_nano)]
    check_equal(read, [(hit.number, hit.real, shown(hit.text)) for hit in said["hit"]], "hits")
    check_equal({log.event_name for _, log in logs}, {"readers:hit"}, "names")
    hits = [metric for _, metric in official.items("metrics") if metric.name == "usdt_hits"][-1]
    check_equal([point.as_int for point in hits.sum.data_points], [1700], "hits of the ledger")
    trace(run, program, [f"ucall:{program}:work", "--latency", "--by", "r->name", "--export", f"otlp={official.collector.url}"])
    durations = [metric for _, metric in official.items("metrics") if metric.name == "usdt_duration_seconds"][-1]
    check_equal(sum(point.count for point in durations.exponential_histogram.data_points), 100, "calls")
    check_equal({attributes_of(point.attributes)["r_name"] for point in durations.exponential_histogram.data_points},
                {shown(hit.text) for hit in said["hit"]}, "keys")


@scenario
def opentelemetry_reads_the_same_in_json(run):
    program, recording = build(run), run.dir / "out.usdtrec"
    trace(run, program, [f"ucall:{program}:work", f"usdt:{program}:readers:hit", "--record", recording], "700")
    for words in ([], ["--by", "str(arg2)", "--sum", "arg0"], ["--sum", "arg1"], ["--hist", "arg0"], ["--hist", "arg0", "--hist-detail", "4"],
                  ["--lhist", "arg0:0:1000:100"], ["--latency"]):
        read = []
        for encoding in ("protobuf", "json"):
            official = Official(run)
            subprocess.run([run.tool, "--replay", recording, *words, "-o", "/dev/null", "--export", f"otlp={official.collector.url}?encoding={encoding}"],
                           check=True, capture_output=True, timeout=60)
            read.append([(resource, str(without_chance(item))) for signal in ("trace", "logs", "metrics") for resource, item in official.items(signal)])
        check((len(read[0]) > 1400) if not words else len(read[0]) > 1, f"{words}: {len(read[0])} items")
        check_equal(read[1], read[0], f"items of {words}")


# --- sqlite and DuckDB ----------------------------------------------------------------------------------------------

SAME_QUERY = 'select arg0, arg1, hex("str(arg2)") as text from t order by arg0'
ROWS_QUERY = 'select hex("str(arg2)") as text, "count" as hits, "sum(arg0)" as sum from t'


def csv_of(run, program, words, times="1700"):
    _, said = trace(run, program, [*words, "--export", f"csv={run.dir}/out.csv"], times)
    return run.dir / "out.csv", said


def check_hits(rows, said, what):
    read = [(int(row["arg0"]), float(row["arg1"]), bytes.fromhex(row["text"] or "").decode()) for row in rows]
    check_equal(sorted(read), sorted((hit.number, hit.real, shown(hit.text)) for hit in said["hit"]), what)


@scenario
def sqlite_imports_comma_separated_values(run):
    program = build(run)
    require_program("sqlite3")
    file, said = csv_of(run, program, [f"usdt:{program}:readers:hit", "--print", "arg0, arg1, str(arg2)"])
    check_hits(by_sqlite(run, file, SAME_QUERY), said, "hits")
    totals = by_sqlite(run, file, "select count(*) as n, sum(arg0) as numbers, sum(arg1) as reals from t")
    numbers, reals = (sum(each) for each in zip(*[hit[:2] for hit in said["hit"]]))
    check_equal(totals, [{"n": 1700, "numbers": numbers, "reals": reals}], "sums")
    file, said = csv_of(run, program, [f"usdt:{program}:readers:hit", "--by", "str(arg2)", "--sum", "arg0"])
    check_table(by_sqlite(run, file, ROWS_QUERY), said)


def check_table(rows, said):
    expected = collections.defaultdict(lambda: [0, 0])
    for hit in said["hit"]:
        expected[shown(hit.text)][0] += 1
        expected[shown(hit.text)][1] += hit.number
    read = {bytes.fromhex(row["text"] or "").decode(): [int(row["hits"]), int(row["sum"])] for row in rows}
    check_equal((len(rows), read), (len(expected), dict(expected)), "rows")


@scenario
def duckdb_reads_comma_separated_values_and_json(run):
    program = build(run)
    of_readers("node_modules/@duckdb/node-api")
    file, said = csv_of(run, program, [f"usdt:{program}:readers:hit", "--print", "arg0, arg1, str(arg2)"])
    table = f"read_csv('{file}')"
    check_hits(by_duckdb(run, table, SAME_QUERY), said, "hits")
    columns = ", ".join(f"typeof({name}) as {name}" for name in ("time", "pid", "arg0", "arg1"))
    types = by_duckdb(run, table, f"select distinct {columns} from t")
    check_equal([(each["time"].split()[0], each["pid"], each["arg0"], each["arg1"]) for each in types],
                [("TIMESTAMP", "BIGINT", "BIGINT", "DOUBLE")], "types that it finds by itself")
    events = f"read_json('{run.dir}/out.json', format = 'newline_delimited')"
    rows = by_duckdb(run, events, "select count(*)::int as n, sum(args[1]::bigint)::int as numbers from t where type = 'event'")
    check_equal(rows, [{"n": 1700, "numbers": sum(hit.number for hit in said["hit"])}], "events of JSON")
    file, said = csv_of(run, program, [f"usdt:{program}:readers:hit", "--by", "str(arg2)", "--sum", "arg0"])
    check_table(by_duckdb(run, f"read_csv('{file}')", ROWS_QUERY), said)


# --- promtool and Prometheus ----------------------------------------------------------------------------------------


def check_metrics(page, what):
    """promtool, and the one of Prometheus 3 where it is there, have nothing to say about a page."""
    newer = READERS / "sid/usr/bin/promtool"
    for promtool in ["promtool", *([newer] if newer.exists() else [])]:
        done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, done.stdout + done.stderr), (0, ""), f"what {promtool} says of {what}")


@scenario
def promtool_has_no_complaint(run):
    require_program("promtool")
    program = build(run)
    hit, page = f"usdt:{program}:readers:hit", run.dir / "page.prom"
    call = f"ucall:{program}:work"
    for words in ([hit], [hit, "--by", "arg0 % 3, str(arg2)", "--avg", "arg0"], [hit, "--sum", "pid", "--by", "comm"],
                  [hit, "--by", "pid", "--min", "arg0", "--max", "arg0"], [hit, "--sum", "arg1"],
                  [hit, "--by", "tid", "--distinct", "arg0"], [hit, "--hist", "arg0"], [hit, "--hist", "arg0", "--hist-detail", "4"],
                  [hit, "--hist", "arg1", "--by", "arg0 % 2"], [hit, "--lhist", "arg0:0:1000:100"],
                  [hit, "--by", "arg0", "--top", "5"], [call, "--latency"], [call, "--by", "n % 3", "--sum", "duration"],
                  [call, "--where", "n < 5"]):
        trace(run, program, [*words, "--export", f"prometheus={page}"])
        text = page.read_bytes().decode()  # with its carriage returns
        check("# TYPE usdt_" in text, text)
        check_metrics(text, words)


@scenario
def promtool_takes_the_configuration_of_a_fleet(run):
    require_program("promtool")
    place = pathlib.Path(__file__).resolve().parents[3] / "examples/fleet/prometheus"
    done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=place, capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stdout + done.stderr)
    rules = (place / "rules.yml").read_text().count("- alert:")
    check(f" {rules} rules found" in done.stdout, done.stdout)


RULE_TEST = """
rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'usdt_all_lost_total{instance="a", reason="ring_full"}', values: "0+5x20"}
      - {series: 'usdt_sizes_lost_total{instance="a", reason="ring_full"}', values: "0+3x20"}
      - {series: 'usdt_calm_lost_total{instance="a", reason="ring_full"}', values: "7+0x20"}
    alert_rule_test:
      - alertname: UsdtHitsLost
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: warning, instance: a, question: all, reason: ring_full}
            exp_annotations: {summary: "a lost hits of all: ring_full"}
          - exp_labels: {severity: warning, instance: a, question: sizes, reason: ring_full}
            exp_annotations: {summary: "a lost hits of sizes: ring_full"}
"""


@scenario
def rules_of_the_example_tell_questions_apart(run):
    require_program("promtool")
    rules = pathlib.Path(__file__).resolve().parents[3] / "examples/fleet/prometheus/rules.yml"
    (run.dir / "test.yml").write_text(RULE_TEST % rules)
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=run.dir, capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stdout + done.stderr)


@scenario
def promtool_has_no_complaint_about_an_agent(run):
    require_program("promtool")
    path, collector = agents.build(run), Collector(run)
    agent = agents.Agent(run, {"a": agents.question("all", f"usdt:{path}:agent:hit", "print = 'arg0'"),
                               "b": agents.question("by-digit", f"usdt:{path}:agent:hit", "by = 'arg0 % 10'", "sum = 'arg0'"),
                               "c": agents.question("sizes", f"usdt:{path}:agent:odd", "hist = 'arg0'")},
                         "--export", f"otlp={collector.url}", "--spool", run.dir / "spool")
    agent.wait_for("attached", 3)
    agents.Program(run, path).hit(100)
    wait_until(lambda: agent.sum_of("usdt_by_digit_summed") == sum(range(100)), "the rows")
    wait_until(lambda: agent.sum_of("usdt_sizes_values_count") == 50, "the histogram")
    page = agent.get("/metrics")[1]
    check("usdt_agent_spool_bytes" in page and "usdt_sizes_values_bucket" in page, page)
    check_metrics(page, "an agent's page")
    check_equal(agent.end(), 0, "exit code")


def scrape_while_files_are_read_again(run, prometheus):
    path = agents.build(run)
    program = agents.Program(run, path)
    asked = [agents.question("b", f"usdt:{path}:agent:hit", f"by = 'arg0 % {keys}'", "sum = 'arg0'") for keys in (3, 5)]
    agent = agents.Agent(run, {"a": agents.question("a", f"usdt:{path}:agent:hit", "hist = 'arg0'"), "b": asked[0]})
    agent.wait_for("attached", 2)
    server = Prometheus(run, prometheus, agent.page)
    wait_until(lambda: server.ask("up") == [1], "Prometheus to scrape it", 60, every=0.2)
    for n in range(80):
        agent.write("b", asked[(n + 1) % 2])
        program.begin(200, 500)
        agent.reload()
        program.wait()
    agent.wait_for("b: attached", 81)
    hits = program.hit(30)
    for query, numbers in (("sum(usdt_a_hits_total)", [hits]), ("sum(histogram_count(usdt_a_values))", [hits]),
                           ("usdt_agent_reloads_total{result='done'}", [80]), ("count(usdt_b_row_hits_total)", [3])):
        wait_until(lambda: server.ask(query) == numbers, f"{query} to be {numbers}", 30, every=0.2)
    check_equal(server.ask("sum(resets(usdt_a_hits_total[10m]))"), [0], "times that the counter of the other file began again")
    scrapes = server.ask("count_over_time(up[10m])")[0]
    check(scrapes >= 8, f"{scrapes} scrapes")
    check_equal(server.ask("min_over_time(up[10m])"), [1], "every scrape")
    refused = server.refused_samples()
    check_equal((len(refused) >= 3, sum(refused.values())), (True, 0), f"samples that were not taken: {refused}")
    check_equal(agent.end(), 0, "exit code")


@scenario
def no_scrape_fails_while_files_are_read_again(run):
    require_program("prometheus")
    scrape_while_files_are_read_again(run, "prometheus")


@scenario
def no_scrape_of_prometheus_3_fails_either(run):
    scrape_while_files_are_read_again(run, of_readers("sid/usr/bin/prometheus"))


# --- speedscope -----------------------------------------------------------------------------------------------------


@scenario
def speedscope_reads_stacks(run):
    require_root()
    (run.dir / "stacks.c").write_text(STACKS)
    program = run.build("stacks", [run.dir / "stacks.c"], ["-O0", "-g"])
    for name, words in (("hits", ["--by", "ustack"]), ("sums", ["--by", "ustack", "--sum", "arg0"])):
        folded, pprof = run.dir / f"{name}.folded", run.dir / f"{name}.pb.gz"
        exports = ["--export", f"folded={folded}", "--export", f"pprof={pprof}"]
        done = subprocess.run([run.tool, f"usdt:{program}:stacks:hit", *words, "-o", run.dir / "shown", *exports, "--", program, "300"],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        said = int(done.stdout.split()[0 if name == "hits" else 1])
        ours = collections.Counter()
        for line in folded.read_text().splitlines():
            stack, number = line.rsplit(" ", 1)
            ours[tuple(stack.split(";"))] += int(number)
        check_equal((len(ours), sum(ours.values())), (3, said), "stacks, and what the program says")
        weights, unit = by_speedscope(run, folded)
        check_equal((weights, unit), (ours, "none"), "folded stacks")
        weights, unit = by_speedscope(run, pprof)
        # A folded stack has no ";" in a name, pprof's has.
        weights = {tuple(name.replace(";", ":") for name in stack): weight for stack, weight in weights.items()}
        check_equal((weights, unit), (dict(ours), "none"), "pprof")


if __name__ == "__main__":
    main()
