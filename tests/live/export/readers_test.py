#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each export read back by programs of others: VictoriaMetrics, OpenTelemetry's own messages, promtool, Prometheus, speedscope,
sqlite and DuckDB. Numbers and texts are those that the traced program says, and that JSON of the same trace has. `./run readers`
brings what Debian 12 does not have, and runs it; without that its scenarios are skipped."""

import base64
import collections
import importlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "agent")]

import puppet  # noqa: E402, F401 (finds the harness)
import agent as agents  # noqa: E402
from browser import Page  # noqa: E402
from collector import Collector, attributes_of  # noqa: E402
from harness import Skip, check, check_equal, free_port, main, require_program, require_root, scenario, wait_until  # noqa: E402

READERS = pathlib.Path(os.environ.get("USDT_READERS", ROOT / "build/readers"))
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
/* Says each hit and call: a line with its number, its real number, its text in hexadecimal digits. */
static char texts[][32] = {"plain", "with, comma", "\"quoted\"", "'; drop table t; --", "two\nlines", "\r\nafter", "", " spaces ", "=1+1",
                           "tab\there", "\xff\xfe", "\xe2\x82\xac,\"", "a;b|c", "\"", ",", "NULL", "nan"};
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


def of_readers(path):
    """A file that `./run readers` brought."""
    if not (READERS / path).exists():
        raise Skip(f"no {path}: ./run readers")
    return READERS / path


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
    """A text of others as forms for people and tables have it: control characters and bytes that are no UTF-8 as escapes."""
    kept = []
    for letter in text.decode(errors="surrogateescape"):
        byte = ord(letter) & 0xff
        named = {"\n": "\\n", "\t": "\\t"}.get(letter)
        kept.append(named or (f"\\x{byte:02x}" if letter < " " or letter == "\x7f" or letter >= "\udc80" and letter <= "\udcff" else letter))
    return "".join(kept)


# --- VictoriaMetrics ------------------------------------------------------------------------------------------------


class Victoria:
    """A server of VictoriaMetrics."""

    def __init__(self, run):
        program = of_readers("sid/usr/bin/victoria-metrics")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        run.start(program, f"-storageDataPath={run.dir}/victoria", f"-httpListenAddr=127.0.0.1:{port}", stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
        wait_until(lambda: self.ask("/health") == "OK", "VictoriaMetrics to start", 60, every=0.1)

    def ask(self, path, **fields):
        try:
            data = urllib.parse.urlencode(fields).encode() or None
            with urllib.request.urlopen(self.url + path, data=data, timeout=20) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def series(self, service, least):
        """{(name, {label: value} as a frozenset): last value} of a service; waits for so many of them, which the index may not have
        at once."""
        found = {}

        def read():
            self.ask("/internal/force_flush")
            for line in self.ask("/api/v1/export", **{"match[]": f'{{service.name="{service}"}}'}).splitlines():
                series = json.loads(line)
                labels = {name: value for name, value in series["metric"].items()
                          if name != "__name__" and not name.startswith(("host.", "os.", "scope.", "service."))}
                found[series["metric"]["__name__"], frozenset(labels.items())] = series["values"][-1]
            return len(found) >= least
        wait_until(read, f"{least} series of {service}: {found}", 30, every=0.5)
        return found

    def trace(self, run, program, words, service, least):
        lines, said = trace(run, program, [*words, "--export", f"otlp={self.url}/opentelemetry"], name=service,
                            environment={"OTEL_SERVICE_NAME": service})
        return self.series(service, least), lines, said


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
    series, _, said = server.trace(run, program, [f"usdt:{program}:readers:hit", "--by", "arg0 % 3, str(arg2)", "--sum", "arg0"], "rows", 79)
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
        series, lines, _ = server.trace(run, program, [f"usdt:{program}:readers:hit", *words], service, 10)
        check_equal(series["usdt_values_count", frozenset()], 100, "values")
        check_equal(read_ranges(series, "usdt_values_bucket"), dict(ranges_of(rows_of(lines)[0], scale)), f"{words}")
    series, lines, _ = server.trace(run, program, [f"ucall:{program}:work", "--latency", "--by", "n % 4"], "calls", 20)
    for row in rows_of(lines):
        labels = [("n_4", str(row["key"][0]))]
        check_equal(series["usdt_duration_seconds_count", frozenset(labels)], row["count"], "calls")
        check(math.isclose(series["usdt_duration_seconds_sum", frozenset(labels)], row["total"] / 1e9, rel_tol=1e-9), f"{row['total']} ns")
        check(math.isclose(series["usdt_maximum_seconds", frozenset(labels)], row["max"] / 1e9, rel_tol=1e-9), f"{row['max']} ns")
        check_equal(read_ranges(series, "usdt_duration_seconds_bucket", labels), dict(ranges_of(row, 3, 1e-9)), f"durations of {labels}")


if __name__ == "__main__":
    main()
