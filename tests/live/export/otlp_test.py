#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Answers by OpenTelemetry's protocol, taken by a collector of this test that reads them by protoc: spans, log records and
metrics are those that the traced program says and that JSON has; and with a server that refuses, is slow, answers
nonsense or is not there every event is delivered or counted as lost."""

import collections
import email.utils
import json
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from house import House  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402
from cgroup import Cgroup  # noqa: E402
from collector import Collector, attributes_of, value_of, without_chance  # noqa: E402
from messages import compiled  # noqa: E402

PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
struct request { int kind; double weight; char name[8]; int parts[3]; };
static char text[] = "two\nlines\xff", plain[] = "plain";  /* written to, so that their page is there */
__attribute__((noipa)) long work(struct request *r, unsigned long big) {
  usleep(50);
  return r->kind * 3L + (long)(big & 1);
}
__attribute__((noipa)) int take(struct request r) { return r.kind; }
int main(int argc, char **argv) {
  int times = atoi(argv[1]), pause = argc > 2 ? atoi(argv[2]) : 0;
  double reals[] = {0.1, -0.0, NAN, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308};
  text[0] = 't', plain[0] = 'p';
  for (int i = 0; i < times; i++) {
    struct request r = {i, i / 4.0, "req", {i, -i, 7}};
    if (pause == 0) work(&r, ~0UL), take(r);
    DTRACE_PROBE2(otlp, hit, i, i % 2 ? text : plain);
    volatile double real = reals[i % 7];
    if (pause == 0) DTRACE_PROBE2(otlp, real, real, (long)i * -1000000007);
    if (pause > 0) usleep(pause);
  }
  return argc == 0;
}
"""


def build(run):
    require_root()
    (run.dir / "otlp.c").write_text(PROGRAM)
    return run.build("otlp", [run.dir / "otlp.c"], ["-O1", "-g"])


def trace(run, program, words, hits, url, code=0, env=None):
    """The lines of JSON about the same hits, and what was said."""
    done = subprocess.run([run.tool, *words, "-f", "json", "-o", run.dir / "out.json", "--export", f"otlp={url}", "--", program, *hits],
                          capture_output=True, text=True, timeout=60, env=env)
    check_equal(done.returncode, code, done.stderr)
    return [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()], done.stderr


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


@scenario
def calls_are_spans_with_their_values(run):
    program, collector = build(run), Collector(run)
    lines, _ = trace(run, program, [f"ucall:{program}:work", "--print", "r->kind, r->weight, r->name, big, retval"], ["600"], collector.url)
    events, spans = of_type(lines, "event"), collector.spans()
    check_equal((len(events), len(spans)), (600, 600), "calls")
    check_equal(len({span.trace_id for _, span in spans}), 600, "ids of traces")
    check_equal({(len(span.trace_id), len(span.span_id), span.kind) for _, span in spans}, {(16, 8, 1)}, "ids and kinds")
    check_equal({span.name for _, span in spans}, {"ucall:work"}, "names")
    shown = collections.Counter()
    for resource, span in spans:
        check_equal((resource["service.name"], resource["host.name"]), ("otlp", socket.gethostname()), "the resource")
        values = attributes_of(span.attributes)
        n = values["r->kind"]
        check_equal((values["r->weight"], values["r->name"], values["big"], values["retval"]), (n / 4, "req", str(2**64 - 1), n * 3 + 1),
                    "values")
        check_equal(values["usdt.probe"], f"ucall:{program}:work", "the probe")
        shown[values["process.pid"], values["thread.id"], n, span.end_time_unix_nano - span.start_time_unix_nano] += 1
    check_equal(shown, collections.Counter((e["pid"], e["tid"], e["args"][0], e["duration_ns"]) for e in events), "those of JSON")
    now = time.time_ns()
    check(all(now - 60 * 10**9 < span.start_time_unix_nano < now for _, span in spans), "times of day")


@scenario
def hits_are_log_records_and_members_lie_within_each_other(run):
    program, collector = build(run), Collector(run)
    trace(run, program, [f"usdt:{program}:otlp:hit", "--print", "arg0, str(arg1)"], ["40"], collector.url)
    trace(run, program, [f"uprobe:{program}:take"], ["40"], collector.url)
    logs = collector.logs()
    check_equal(collections.Counter(log.event_name for _, log in logs), {"otlp:hit": 40, "uprobe:take": 40}, "hits")
    for _, log in logs:
        values = attributes_of(log.attributes)
        if log.event_name == "otlp:hit":
            check_equal(values["str(arg1)"], "two\nlines\ufffdff" if values["arg0"] % 2 else "plain", "its text")
        else:
            check_equal(values["r"]["weight"], values["r"]["kind"] / 4, f"members: {values}")
        check(0 <= log.observed_time_unix_nano - log.time_unix_nano < 30 * 10**9, "observed soon after")


@scenario
def processes_have_their_container_and_pod(run):
    program, uid, container = build(run), "12345678-90ab-cdef-1234-567890abcdef", "0123456789abcdef" * 4
    house, collector = House(), Collector(run)
    outer = Cgroup(f"kubepods-pod{uid.replace('-', '_')}.slice")
    inner = Cgroup(f"{outer.name}/cri-containerd-{container}.scope")
    outer.make()
    inner.make()
    try:
        tracing = run.start(run.tool, f"usdt:{program}:otlp:hit", "--containers", "-f", "json", "-o", run.dir / "out.json", "--export",
                            f"otlp={collector.url}", "--export", f"clickhouse={house.url}", "-M", "30", stderr=subprocess.PIPE, text=True)
        while "attached" not in (line := tracing.stderr.readline()):
            check(line, "the trace ended")
        inner.run(program, "20")
        subprocess.run([program, "10"], check=True)
        check_equal(tracing.wait(60), 0, "exit code")
    finally:
        inner.remove()
        outer.remove()
    values = [attributes_of(log.attributes) for _, log in collector.logs()]
    there = collections.Counter((each.get("container.id"), each.get("k8s.pod.uid"), each["usdt.cgroup"] == f"/{inner.name}") for each in values)
    check_equal(there, {(container, uid, True): 20, (None, None, False): 10}, "of OpenTelemetry")
    there = collections.Counter((row["container"] or None, row["args"].get("k8s.pod.uid"), row["args"]["usdt.cgroup"] == f"/{inner.name}")
                                for row in house.rows["usdt_events"])
    check_equal(there, {(container, uid, True): 20, (None, None, False): 10}, "of ClickHouse")


@scenario
def tables_are_metrics(run):
    program, collector = build(run), Collector(run)
    lines, _ = trace(run, program, [f"usdt:{program}:otlp:hit", "--by", "arg0 % 3", "--sum", "arg0"], ["90"], collector.url)
    metrics, rows = collector.metrics(), of_type(lines, "table")[-1]["rows"]
    points = {value_of(point.attributes[0].value): point.as_int for point in metrics["usdt_row_hits"].sum.points}
    check_equal(points, {str(row["key"][0]): row["count"] for row in rows}, "hits")
    check_equal((metrics["usdt_row_hits"].sum.temporality, metrics["usdt_row_hits"].sum.is_monotonic), (2, True), "a counter")
    points = {value_of(point.attributes[0].value): point.as_int for point in metrics["usdt_summed"].gauge.points}
    check_equal(points, {str(row["key"][0]): row["sum"] for row in rows}, "sums")
    check(0 < metrics["usdt_summed"].gauge.points[0].start < metrics["usdt_summed"].gauge.points[0].time, "times")


@scenario
def histograms_are_exponential_or_have_bounds(run):
    program, collector = build(run), Collector(run)
    trace(run, program, [f"usdt:{program}:otlp:hit", "--hist", "arg0", "--hist-detail", "4"], ["1000"], collector.url)
    point = collector.metrics()["usdt_values"].exponential.points[0]
    check_equal((point.count, point.zero_count, sum(point.positive.bucket_counts)), (1000, 1, 999), "values")
    base, below = 2 ** (2 ** -point.scale), 0
    for n, count in enumerate(point.positive.bucket_counts):
        below += count
        bound = base ** (point.positive.offset + n + 1)
        least, most = (sum(0 < value <= limit for value in range(1000)) for limit in (bound / (1 + 1 / 16) - 1, bound + 1e-6))
        check(least <= below <= most, f"{least} <= {below} <= {most} values up to {bound}")
    collector = Collector(run)
    trace(run, program, [f"usdt:{program}:otlp:hit", "--lhist", "arg0:0:1000:100"], ["1200"], collector.url)
    point = collector.metrics()["usdt_values"].histogram.points[0]
    check_equal(list(point.bucket_counts), [100] * 10 + [200], "values of each width")
    check_equal(list(point.explicit_bounds), [99.0 + 100 * n for n in range(10)], "bounds")


@scenario
def the_slowest_are_spans(run):
    program, collector = build(run), Collector(run)
    lines, _ = trace(run, program, [f"ucall:{program}:work", "--slowest", "3"], ["50"], collector.url)
    durations = sorted(span.end_time_unix_nano - span.start_time_unix_nano for _, span in collector.spans())
    check_equal(durations, sorted(event["duration_ns"] for event in of_type(lines, "slowest")[-1]["events"]), "the three")


@scenario
def the_ledger_goes_with_events(run):
    program, collector = build(run), Collector(run)
    trace(run, program, [f"usdt:{program}:otlp:hit", "--where", "arg0 < 10"], ["50"], collector.url,
          env={"PATH": "/usr/bin:/bin", "OTEL_SERVICE_NAME": "shop"})
    metrics = collector.metrics()
    check_equal([point.as_int for point in metrics["usdt_hits"].sum.points], [50], "hits")
    check_equal([point.as_int for point in metrics["usdt_events"].sum.points], [10], "events")
    check_equal({resource["service.name"] for resource, _ in collector.logs()}, {"shop"}, "the service")


def accounted(lines, stderr, hits, delivered):
    """Each hit is there or lost."""
    summary = of_type(lines, "summary")[-1]
    check_equal(summary["hits"], hits, stderr)
    check_equal(summary["lost"].get("not_written", 0), hits - delivered, f"what is not there is lost: {stderr}")


@scenario
def what_a_server_wants_again_is_sent_again(run):
    program = build(run)
    for answers, least in (([(429, {"Retry-After": email.utils.formatdate(time.time() + 5, usegmt=True)}, b"")], 0.0),
                           ([(503, {"Retry-After": "1"}, b"")], 1.0), ([(502, {}, b"no"), (504, {}, b"")], 0.1)):
        collector = Collector(run, answers)
        lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], collector.url)
        check_equal(len(collector.logs()), 100, f"all arrive after {answers}")
        accounted(lines, stderr, 100, 100)
        check("tried again" in stderr, stderr)
        check(collector.posts[1][0] - collector.posts[0][0] >= least, f"{collector.posts[:2]}")
        check("twice" not in stderr, "a server that answers has not taken it")


@scenario
def what_a_server_refuses_is_lost(run):
    program = build(run)
    for answer, words in (((400, {}, b"bad\nthings"), "400 Bad Request: bad"), ((500, {}, b"\x1b[31m"), "500 Internal Server Error"),
                          ((413, {}, b""), "413"), ((307, {"Location": "http://127.0.0.1:1/"}, b""), "307"), ((404, {}, b""), "404")):
        collector = Collector(run, [answer])
        lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], collector.url, code=1)
        check_equal(len(collector.logs()), 0, "nothing is there")
        accounted(lines, stderr, 100, 0)
        check(words in stderr and "\x1b" not in stderr, stderr)


JSON = {"Content-Type": "application/json; charset=utf-8"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def partial_success(run, count, words):
    """An answer in protobuf, and what JSON may have for it."""
    messages = compiled(run.dir, "otlp")
    reply = messages.Answer(partial_success=messages.PartialSuccess(rejected=count, error_message=words)).SerializeToString()
    part = lambda number: json.dumps({"partialSuccess": {"rejectedLogRecords": number, "errorMessage": words}}).encode()  # noqa: E731
    return [(200, {}, reply), (200, PROTOBUF, reply), (200, JSON, part(str(count))), (200, JSON, part(count)), (200, {}, part(count))]


@scenario
def what_is_rejected_of_a_batch_is_lost(run):
    program = build(run)
    for answer in partial_success(run, 7, "too\nold"):
        for encoding in ("", "?encoding=json"):
            collector = Collector(run, [answer])
            lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], collector.url + encoding, code=1)
            accounted(lines, stderr, 100, 93)
            check("7 events not taken: too\\nold" in stderr, f"{answer}: {stderr}")


@scenario
def what_a_server_warns_of_is_said_and_nothing_is_lost(run):
    program = build(run)
    for answer in partial_success(run, 0, "send\x1b less"):
        collector = Collector(run, [answer])
        lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], collector.url)
        accounted(lines, stderr, 100, 100)
        check("the server took all, and says: send\\x1b less" in stderr, f"{answer}: {stderr}")


@scenario
def numbers_that_are_rejected_are_said(run):
    program = build(run)
    for answer, words in (((200, JSON, b'{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too many"}}'), "3 numbers not taken: too many"),
                          ((400, JSON, b'{"code":3,"message":"no such label"}'), "a batch of numbers not taken: 400 Bad Request: no such label")):
        collector = Collector(run, [answer])
        _, stderr = trace(run, program, [f"usdt:{program}:otlp:hit", "--by", "arg0 % 3"], ["100"], collector.url, code=1)
        check(words in stderr, stderr)
        check("numbers were not taken" in stderr, stderr)


@scenario
def why_a_server_refuses_is_said_of_any_encoding(run):
    program = build(run)
    status = compiled(run.dir, "otlp").Status(code=3, message="no tenant\nat all").SerializeToString()
    for kind, body, words in ((JSON, b'{"code":3,"message":"no tenant\\nat all"}', "400 Bad Request: no tenant\n"),
                              (PROTOBUF, status, "400 Bad Request: no tenant\n"), ({}, b"no tenant", "400 Bad Request: no tenant\n"),
                              (JSON, b'["no", "object"]', '400 Bad Request: ["no", "object"]\n'), (JSON, b'{"message":7}', '400 Bad Request: {"message":7}\n'),
                              (JSON, b'{"message":' + b"[" * 900_000, "400 Bad Request: {"), (PROTOBUF, status[:5], "400 Bad Request\n")):
        for encoding in ("", "?encoding=json"):
            lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], Collector(run, [(400, kind, body)]).url + encoding, code=1)
            accounted(lines, stderr, 100, 0)
            check(f"100 events not taken: {words}" in stderr, f"{body[:50]}: {stderr[-500:]}")


@scenario
def lost_connections_and_nonsense_are_tried_again(run):
    program = build(run)
    for answer in (None, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 50000):
        collector = Collector(run, [answer])
        lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["100"], collector.url)
        check_equal(len(collector.logs()), 100, f"all arrive after {answer}")
        accounted(lines, stderr, 100, 100)
        check("may be there twice" in stderr, stderr)


@scenario
def strange_replies_to_what_was_taken_change_nothing(run):
    program = build(run)
    collector = Collector(run, [(200, {"Content-Type": "application/json"}, b'{"partialSuccess":{}}'), (202, {}, b"\xff" * 100)])
    lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["700"], collector.url)
    accounted(lines, stderr, 700, 700)


@scenario
def nobody_there_ends_with_the_trace(run):
    program = build(run)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    done = run.start(run.tool, f"usdt:{program}:otlp:hit", "-f", "json", "-o", run.dir / "out.json", "-d", "2", "--export",
                     f"otlp=http://127.0.0.1:{port}", "--", program, "3000", "300", stderr=subprocess.PIPE, text=True)
    stderr = done.communicate(timeout=60)[1]
    check_equal(done.returncode, 1, stderr)
    check(time.monotonic() - began < 15, "it ends")
    check("Connection refused; it is tried again" in stderr, stderr)
    lines = [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]
    summary = of_type(lines, "summary")[-1]
    check_equal(summary["lost"]["not_written"], len(of_type(lines, "event")), "all events are counted as lost")


@scenario
def nobody_there_does_not_hold_up_a_recording_for_ever(run):
    program, recording = build(run), run.dir / "out.usdtrec"
    subprocess.run([run.tool, f"usdt:{program}:otlp:hit", "--record", recording, "--", program, "100"], capture_output=True, check=True,
                   timeout=60)
    with socket.socket() as silent:  # it takes connections, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        began = time.monotonic()
        done = subprocess.run([run.tool, "--replay", recording, "--export", f"otlp=http://127.0.0.1:{silent.getsockname()[1]}"],
                              capture_output=True, text=True, timeout=100)
    check_equal(done.returncode, 1, done.stderr)
    check(time.monotonic() - began < 60, "30 seconds without progress end it")
    check("100 not_written" in done.stderr, done.stderr)


@scenario
def a_slow_server_is_waited_for(run):
    program, collector = build(run), Collector(run, slow=0.3)
    lines, stderr = trace(run, program, [f"usdt:{program}:otlp:hit"], ["3000"], collector.url)
    check_equal(len(collector.logs()), 3000, "all arrive")
    accounted(lines, stderr, 3000, 3000)


@scenario
def places_that_are_none_are_refused(run):
    program = build(run)
    for url, words in (("https://x:4318", "TLS"), ("x:4318", "http://HOST:PORT"), ("http://", "host"), ("http://a b", "characters"),
                       ("http://x:0", "port"), ("http://x:99999", "port"), ("http://u:p@x", "passwords"), ("http://x/?a=b", "encoding=json"),
                       ("http://x?encoding=xml", "encoding=json"), ("http://x?encoding", "NAME=VALUE"), ("http://x?encoding=json#a", "no option"),
                       ("http://x#a", "'#'"), ("https://x?encoding=json", "a collector of this host"),
                       ("http://[::1", "host"), ("out.file", "http://HOST:PORT")):
        done = subprocess.run([run.tool, f"usdt:{program}:otlp:hit", "--export", f"otlp={url}", "--", program, "1"],
                              capture_output=True, text=True, timeout=30)
        check_equal(done.returncode, 2, f"{url}: {done.stderr}")
        check(words in done.stderr, f"{url}: {done.stderr}")


@scenario
def json_has_what_protobuf_has(run):
    """Of each form of question, over recordings. Identifiers and 64 bits are looked at by the collector."""
    program, lists, recording = build(run), run.dir / "lists.usdtrec", run.dir / "out.usdtrec"
    probes = [f"ucall:{program}:work", f"uprobe:{program}:take", f"usdt:{program}:otlp:hit", f"usdt:{program}:otlp:real"]
    for file, asked in ((lists, [probes[0], "--print", "r->parts, retval"]), (recording, probes)):
        subprocess.run([run.tool, *asked, "--record", file, "--", program, "2000"], check=True, capture_output=True, timeout=60)
    kinds = collections.Counter()
    for words in ([lists], [], ["--print", "arg0, arg1, comm"], ["--by", "arg1 % 7, comm", "--sum", "arg0"], ["--sum", "arg0"],
                  ["--by", "probe", "--avg", "arg1"], ["--hist", "arg1"], ["--hist", "arg1", "--hist-detail", "4", "--by", "probe"], ["--lhist", "arg1:0:1000:100"],
                  ["--latency", "--by", "probe"], ["--by", "tid", "--min", "arg1", "--max", "arg1"]):
        read = []
        for encoding, kind in (("", "application/x-protobuf"), ("?encoding=protobuf", "application/x-protobuf"), ("?encoding=json", "application/json")):
            collector = Collector(run)
            replayed = words if words == [lists] else [recording, *words]
            done = subprocess.run([run.tool, "--replay", *replayed, "-o", "/dev/null", "--export", f"otlp={collector.url}{encoding}"],
                                  capture_output=True, text=True, timeout=60)
            check_equal(done.returncode, 0, f"{words}: {done.stderr}")
            check_equal({each for _, each, _ in collector.kept}, {kind}, "types")
            read.append([(resource, str(without_chance(item))) for items in (collector.spans(), collector.logs(), collector.metrics_and_resources())
                         for resource, item in items])
        check(len(read[0]) > 1, f"{words}: {read[0]}")
        check(read[0] == read[1], f"{words}: protobuf by name and without one")
        for ours, theirs in zip(*read[1:]):
            check_equal(theirs, ours, f"{words}")
        check_equal(len(read[2]), len(read[1]), f"items of {words}")
        kinds.update(word for _, item in read[2] for word in item.replace("{", " ").replace(":", " ").split())
    wanted = ("array_value", "kvlist_value", "int_value", "double_value", "string_value", "nan", "inf", "-inf", "5e-324", "as_int", "as_double",
              "gauge", "sum", "histogram", "exponential", "positive", "negative", "zero_count", "explicit_bounds", "offset", "unit")
    check_equal([word for word in wanted if kinds[word] == 0], [], "kinds of values that no message had")


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program, live, again = build(run), Collector(run), Collector(run)
    recording = run.dir / "out.usdtrec"
    trace(run, program, [f"ucall:{program}:work", "--record", recording], ["100"], live.url)
    subprocess.run([run.tool, "--replay", recording, "--export", f"otlp={again.url}"], capture_output=True, check=True, timeout=60)
    of_both = [sorted((span.end_time_unix_nano - span.start_time_unix_nano, str(sorted(attributes_of(span.attributes).items())))
                      for _, span in collector.spans()) for collector in (live, again)]
    check_equal(len(of_both[0]), 100, "spans")
    check_equal(of_both[1], of_both[0], "spans of the recording")


if __name__ == "__main__":
    main()
