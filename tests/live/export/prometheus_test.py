#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Metrics for Prometheus, read by its own client library, by protoc and, where it is installed, by Prometheus itself: the
numbers are those that the traced program says and that JSON of the same trace has."""

import collections
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, at_once, check, check_equal, main, require_program, require_root, scenario, wait_line, wait_until  # noqa: E402
from metric_pages import read_open, read_protobuf, read_text  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <unistd.h>
/* With a number: so many hits. With "steps": as many as each line of standard input says, and a line when they are done. */
static const char *const texts[] = {"plain", "quote\"d", "back\\slash", "two\nlines", "\xff\xfe", "\xe2\x82\xac,{}="};
static void hit(long n) {
  DTRACE_PROBE3(m, hit, n, n * n - 500, texts[n % 6]);
  DTRACE_PROBE1(m, other, n % 7);
}
__attribute__((noipa)) long work(long n) {
  for (volatile long i = 0; i < (n % 16) * 1000; i++) {}
  return n;
}
int main(int argc, char **argv) {
  long n = 0, times;
  if (argc > 2) {
    for (long i = 0; i < atol(argv[1]); i++) work(i);
    return 0;
  }
  if (strcmp(argv[1], "steps") != 0) {
    for (times = atol(argv[1]); n < times; n++) hit(n);
    return 0;
  }
  while (scanf("%ld", &times) == 1) {
    for (; times > 0; times--) hit(n++);
    printf("%ld\n", n);
    fflush(stdout);
  }
  return 0;
}
"""


def build(run):
    require_root()
    (run.dir / "m.c").write_text(PROGRAM)
    return run.build("m", [run.dir / "m.c"], ["-O1", "-g"])


def trace(run, program, words, hits, name="out.prom"):
    """The page and the lines of JSON about the same hits."""
    page = run.dir / name
    done = subprocess.run([run.tool, *words, *at_once(words[:1], words), "-f", "json", "-o", run.dir / "out.json",
                           "--export", f"prometheus={page}", "--", program, *hits], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return page.read_text(), [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]


def rows_of(lines):
    return [line for line in lines if line["type"] == "table"][-1]["rows"]


class Served:
    """A trace with a page, whose program waits for orders."""

    def __init__(self, run, program, *words):
        self.program = run.start(program, "steps", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.trace = run.start(run.tool, *words, "-p", str(self.program.pid), "--listen", str(self.port), "-o", run.dir / "shown",
                               stderr=subprocess.PIPE, text=True)
        self.said = 0
        while "attached" not in (line := self.trace.stderr.readline()):
            check(line, "the trace ended")

    def hit(self, times):
        self.program.stdin.write(f"{times}\n".encode())
        self.said = int(wait_line(self.program))

    def get(self, accept="", path="/metrics"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.headers["Content-Type"], answer.read()

    def text(self):
        return read_text(self.get()[1].decode())

    def end(self):
        self.trace.send_signal(2)
        return self.trace.communicate(timeout=30)[1], self.trace.returncode


@scenario
def rows_are_those_of_json(run):
    program = build(run)
    page, lines = trace(run, program, [f"usdt:{program}:m:hit", "--by", "arg0 % 7, str(arg2)", "--sum", "arg1", "--max", "arg1"], ["1000"])
    samples, rows = read_text(page), rows_of(lines)
    check_equal(sum(row["count"] for row in rows), 1000, "hits")
    shown = {"\ufffd\ufffd": "\ufffdff\ufffdfe"}  # bytes that are no UTF-8
    for name, member in (("usdt_row_hits_total", "count"), ("usdt_summed", "sum"), ("usdt_maximum", "max")):
        expected = {frozenset({("arg0_7", str(row["key"][0])), ("str_arg2", shown.get(row["key"][1], row["key"][1]))}): row[member]
                    for row in rows}
        check_equal(samples[name], expected, name)
    probe = frozenset({("probe", f"usdt:{program}:m:hit")})
    check_equal(samples["usdt_hits_total"], {probe: 1000}, "the ledger's hits")
    check_equal(sum(samples["usdt_lost_total"].values()), 0, "what was lost")


@scenario
def hits_of_events_are_counted_by_probe(run):
    program = build(run)
    page, lines = trace(run, program, [f"usdt:{program}:m:*", "--where", "arg0 < 5"], ["100"])
    samples = read_text(page)
    events = collections.Counter(line["probe"] for line in lines if line["type"] == "event")
    for name, expected in (("usdt_hits_total", {"hit": 100, "other": 100}), ("usdt_events_total", {"hit": 5, "other": 72})):
        check_equal(samples[name], {frozenset({("probe", f"usdt:{program}:m:{probe}")}): n for probe, n in expected.items()}, name)
    check_equal(sorted(events.values()), [5, 72], "events")
    check_equal(samples["usdt_left_out_total"][frozenset({("reason", "rejected")})], 123, "rejected")


@scenario
def histograms_count_what_is_up_to_each_bound(run):
    program = build(run)
    for words, name in ((["--hist", "arg1", "--by", "arg0 % 2"], "usdt_values"), (["--hist", "arg1", "--hist-detail", "3"], "usdt_values"),
                        (["--lhist", "arg1:0:1000:100"], "usdt_values")):
        page, lines = trace(run, program, [f"usdt:{program}:m:hit", *words], ["60"])
        samples = read_text(page)
        values = [(n * n - 500, n % 2) for n in range(60)]
        bounds = {float(dict(labels)["le"]) for labels in samples[name + "_bucket"]}
        check(len(bounds) > 5 and float("inf") in bounds, bounds)
        for labels, count in samples[name + "_bucket"].items():
            labels = dict(labels)
            expected = sum(value <= float(labels["le"]) and labels.get("arg0_2") in (None, str(key)) for value, key in values)
            check_equal(count, expected, f"{words}: values up to {labels}")
        check_equal(sum(samples[name + "_count"].values()), 60, "all")


@scenario
def durations_are_in_seconds(run):
    program = build(run)
    page, lines = trace(run, program, [f"ucall:{program}:work", "--latency"], ["3000", "calls"])
    samples, row = read_text(page), rows_of(lines)[0]
    check_equal(samples["usdt_duration_seconds_count"][frozenset()], 3000, "calls")
    check(abs(samples["usdt_duration_seconds_sum"][frozenset()] - row["total"] / 1e9) < 1e-9, "all of their time")
    for labels, count in samples["usdt_duration_seconds_bucket"].items():
        bound = float(dict(labels)["le"]) * 1e9
        check_equal(count, sum(bucket["count"] for bucket in row["buckets"] if bucket["last"] <= bound + 0.5), f"up to {bound} ns")


@scenario
def a_served_page_has_the_numbers_while_the_trace_runs(run):
    program = build(run)
    served = Served(run, program, f"usdt:{program}:m:hit", "--by", "arg0 % 3", "--hist", "arg0", "--hist-detail", "4")
    served.hit(50)
    count = lambda: sum(served.text()["usdt_values_count"].values())  # noqa: E731
    wait_until(lambda: count() == 50, "the page to have all hits")
    served.hit(1000)
    wait_until(lambda: count() == 1050, "the page to have all hits since")
    kind, page = served.get("application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
    check(kind.startswith("application/openmetrics-text"), kind)
    samples = read_open(page.decode())
    check_equal(sum(count for labels, count in samples["usdt_values_bucket"].items() if ("le", "+Inf") in labels), 1050, "in OpenMetrics")
    kind, page = served.get("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.1")
    check("delimited" in kind, kind)
    families = read_protobuf(run, page)
    check_equal(len(families["usdt_values"].metric), 3, "histograms")
    for metric in families["usdt_values"].metric:
        check_fine_buckets(metric, [n for n in range(1050) if n % 3 == int(metric.label[0].value)])
    said, code = served.end()
    check_equal(code, 0, said)


def check_fine_buckets(metric, values):
    """Every value is in the bucket where it belongs, or in the one above, by less than a sixteenth."""
    histogram = metric.histogram
    check_equal(histogram.sample_count, len(values), "values")
    counts, index, at = {}, 0, 0
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            counts[index] = sum(histogram.positive_delta[:at + 1])
            index, at = index + 1, at + 1
    check_equal(sum(counts.values()) + histogram.zero_count, len(values), "values in fine buckets")
    check_equal(histogram.zero_count, values.count(0), "zeros")
    base = 2 ** (2 ** -histogram.schema)
    for number in range(1, 100):
        bound = base ** number
        up_to = sum(count for index, count in counts.items() if index <= number)
        least, most = (sum(0 < value <= limit for value in values) for limit in (bound / (1 + 1 / 16) - 1, bound + 1e-6))
        check(least <= up_to <= most, f"{least} <= {up_to} <= {most} values up to {bound}")


def prometheus_of(run, served, *options):
    """A Prometheus that scrapes the page, as a function that asks it."""
    require_program("prometheus")
    (run.dir / "prometheus.yml").write_text(
        f"scrape_configs:\n- job_name: usdt\n  scrape_interval: 300ms\n  scrape_timeout: 300ms\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{served.port}']}}]\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run.start("prometheus", f"--config.file={run.dir}/prometheus.yml", f"--storage.tsdb.path={run.dir}/tsdb-{port}",
              f"--web.listen-address=127.0.0.1:{port}", *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
                return [float(each["value"][1]) for each in result]
        except OSError:
            return []
    return ask


@scenario
def prometheus_itself_reads_it(run):
    program = build(run)
    served = Served(run, program, f"usdt:{program}:m:hit", "--by", "arg0 % 3", "--hist", "arg0", "--hist-detail", "4")
    served.hit(999)
    ask = prometheus_of(run, served, "--enable-feature=native-histograms")
    wait_until(lambda: ask("sum(histogram_count(usdt_values))") == [999.0], "Prometheus to have read it", timeout=30, every=0.2)
    check_equal(ask("usdt_hits_total"), [999.0], "the ledger's hits")
    median = ask("histogram_quantile(0.5, sum(usdt_values))")[0]
    check(499 <= median <= 499 * 1.17, f"the median of 0 to 998 is {median}")
    served.end()


@scenario
def quantiles_are_within_the_bucket_of_their_values(run):
    """Prometheus begins the lowest bucket at 0, unless there is one below it."""
    program = build(run)
    for words, least, most in ((["--hist", "arg0", "--where", "arg0 >= 600"], 511, 1023),
                               (["--lhist", "arg0:0:1000:100", "--where", "arg0 < 100 || arg0 >= 900"], 899, 999)):
        served = Served(run, program, f"usdt:{program}:m:hit", *words)
        served.hit(999)
        ask = prometheus_of(run, served)
        wait_until(lambda: ask("usdt_hits_total") == [999.0], "Prometheus to have read it", timeout=30, every=0.2)
        quantile = ask("histogram_quantile(%s, usdt_values_bucket)" % (0.01 if least == 511 else 0.51))
        check(len(quantile) == 1 and least < quantile[0] < most, f"{words}: {quantile}")
        served.end()


@scenario
def label_sets_are_bounded(run):
    program = build(run)
    page, lines = trace(run, program, [f"usdt:{program}:m:hit", "--by", "arg0", "--max-rows", "8192"], ["5000"])
    samples = read_text(page)
    rows = samples["usdt_row_hits_total"]
    check_equal(len(rows), 2001, "label sets")
    check_equal(sum(rows.values()), 5000, "hits")
    check_equal(rows[frozenset({("arg0", "other")})], 3000, "other hits")
    check_equal(samples["usdt_label_sets_dropped_total"][frozenset()], 3000, "label sets that were dropped")


@scenario
def different_values_are_those_of_json_and_not_known_of_other_rows(run):
    program = build(run)
    page, lines = trace(run, program, [f"usdt:{program}:m:hit", "--by", "arg0 % 9", "--distinct", "arg0 % 63", "--top", "4"], ["630"])
    samples, rows = read_text(page), {str(row["key"][0]): row["distinct"] for row in rows_of(lines)}
    shown = {dict(labels)["arg0_9"]: value for labels, value in samples["usdt_distinct"].items()}
    check_equal(set(shown.values()), {7}, "different values of each")
    check_equal((len(shown), "other" in shown), (4, False), f"{shown}")
    check_equal({key: shown.get(key) for key in rows}, rows, "those of JSON")
    hits = {dict(labels)["arg0_9"]: value for labels, value in samples["usdt_row_hits_total"].items()}
    check_equal((hits["other"], sum(hits.values())), (350, 630), "hits of the other five rows, and all")


@scenario
def questions_of_a_script_share_a_page(run):
    program = build(run)
    script = run.dir / "two.toml"
    script.write_text(f'[question.by_rest]\nprobes = ["usdt:{program}:m:other"]\nby = "arg0"\n'
                      f'[question.sums]\nprobes = ["usdt:{program}:m:hit"]\nsum = "arg0"\n')
    page = run.dir / "two.prom"
    done = subprocess.run([run.tool, "--script", script, "--export", f"prometheus={page}", "--", program, "70"],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    samples = read_text(page.read_text())
    check_equal(sum(samples["usdt_by_rest_row_hits_total"].values()), 70, "rows of one")
    check_equal(list(samples["usdt_sums_summed"].values()), [sum(range(70))], "the sum of the other")


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    recording = run.dir / "out.usdtrec"
    run_live = [run.tool, f"usdt:{program}:m:hit", "--record", recording, "--", program, "300"]
    check_equal(subprocess.run(run_live, capture_output=True, timeout=60).returncode, 0, "recorded")
    done = subprocess.run([run.tool, "--replay", recording, "--by", "arg0 % 7", "--sum", "arg1", "-f", "prometheus"],
                          capture_output=True, text=True, timeout=60)
    live, _ = trace(run, program, [f"usdt:{program}:m:hit", "--by", "arg0 % 7", "--sum", "arg1"], ["300"])
    of_both = [read_text(page) for page in (done.stdout, live)]
    for name in ("usdt_row_hits_total", "usdt_summed", "usdt_hits_total"):
        check_equal(of_both[0][name], of_both[1][name], name)


@scenario
def bad_clients_and_places_are_refused(run):
    program = build(run)
    served = Served(run, program, f"usdt:{program}:m:hit", "--by", "arg0 % 3")
    taken = subprocess.run([run.tool, f"usdt:{program}:m:hit", "--listen", str(served.port)], capture_output=True, text=True, timeout=30)
    check_equal(taken.returncode, 1, taken.stderr)
    check("Address already in use" in taken.stderr, taken.stderr)
    for place in ("nowhere", "1.2.3:80", "127.0.0.1:70000", "::1:80", "127.0.0.1:"):
        wrong = subprocess.run([run.tool, f"usdt:{program}:m:hit", "--listen", place], capture_output=True, text=True, timeout=30)
        check_equal(wrong.returncode, 2, wrong.stderr)
        check("no place to listen at" in wrong.stderr, wrong.stderr)
    for method, path, status in (("GET", "/metrics/../x", 404), ("POST", "/metrics", 405), ("HEAD", "/metrics", 200)):
        client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        client.request(method, path)
        check_equal(client.getresponse().status, status, f"{method} {path}")
        client.close()
    for sent in (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET " * 3000):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
            try:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                got = client.recv(1000)
            except OSError:
                got = b""  # it has closed the connection
            check(b"200 OK" not in got, f"no page for {sent[:20]}")
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(100)]
    del idle
    served.hit(30)
    wait_until(lambda: sum(served.text()["usdt_row_hits_total"].values()) == 30, "the page to have all hits")
    said, code = served.end()
    check_equal(code, 0, said)


@scenario
def what_metrics_cannot_have_is_refused(run):
    program = build(run)
    for words in (["--by", "ustack"], ["--slowest", "5"], ["--heatmap", "arg0"]):
        done = subprocess.run([run.tool, f"usdt:{program}:m:hit", *words, "-f", "prometheus", "--", program, "1"],
                              capture_output=True, text=True, timeout=30)
        check_equal(done.returncode, 2, done.stderr)
        check("metrics" in done.stderr, done.stderr)


@scenario
def a_full_disk_is_said(run):
    require_program("mount")
    program = build(run)
    small = run.dir / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", small], capture_output=True).returncode != 0:
        raise Skip("no file system of its own")
    try:
        done = subprocess.run([run.tool, f"usdt:{program}:m:hit", "--by", "arg0", "--export", f"prometheus={small}/m.prom", "--", program, "300"],
                              capture_output=True, text=True, timeout=30)
        check_equal(done.returncode, 1, done.stderr)
        check("No space left on device" in done.stderr, done.stderr)
        check_equal([file.name for file in small.iterdir()], ["m.prom"], "files that are left")
    finally:
        subprocess.run(["umount", small], check=True)
    done = subprocess.run([run.tool, f"usdt:{program}:m:hit", "-f", "prometheus", "-o", "/dev/full", "--", program, "300"],
                          capture_output=True, text=True, timeout=30)
    check_equal(done.returncode, 1, done.stderr)
    check("300 not_written" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
