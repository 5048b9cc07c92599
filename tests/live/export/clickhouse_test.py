#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rows for ClickHouse, taken by a server of this test that reads its HTTP as ClickHouse does: they are what the traced
program says; what a server refuses, by a status or by an exception behind a 200, is lost and counted; what it wants again
comes with the same token, and so once. (With ClickHouse's own engine: `./run fleet`.)"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from house import House  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
struct request { int kind; double weight; char name[8]; };
static char text[] = "a\"b\\\n\xff\x1b[31m", plain[] = "plain";  /* written to, so that their page is there */
__attribute__((noipa)) long work(struct request *r, unsigned long big) {
  usleep(50);
  return r->kind * -3L + (long)(big & 1);
}
int main(int argc, char **argv) {
  int times = atoi(argv[1]), pause = argc > 2 ? atoi(argv[2]) : 0;
  text[0] = 'a', plain[0] = 'p';
  for (int i = 0; i < times; i++) {
    struct request r = {i, i / 4.0, "req"};
    if (pause == 0) work(&r, ~0UL);
    DTRACE_PROBE3(house, hit, i, i % 2 ? text : plain, (long *)8);
    fprintf(stderr, "%d %s\n", i, i % 2 ? "odd" : "even");
    if (pause > 0) usleep(pause);
  }
  return argc == 0;
}
"""
ENVIRONMENT = {**os.environ, "OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.version=1%2E2,container.id=c\"7"}
NO_TABLE = b"Code: 60. DB::Exception: Table d.usdt_events does not exist. (UNKNOWN_TABLE) (version 26.7.2.1)\n"
TOO_MANY = b"Code: 252. DB::Exception: Too many parts (300). (TOO_MANY_PARTS) (version 26.7.2.1)\n"
EXCEPTION = "X-ClickHouse-Exception-Code"
# As ClickHouse 18.16 says it (and answers 404), and 26.7 of a table whose column is narrower.
NO_SETTING = b"Code: 115, e.displayText() = DB::Exception: Unknown setting input_format_with_types_use_header, e.what() = DB::Exception\n"
OTHER_TYPE = b"Code: 117. DB::Exception: Type of 'pid' must be UInt16, not UInt32: (while reading header). (INCORRECT_DATA)\n"


def build(run):
    require_root()
    (run.dir / "house.c").write_text(PROGRAM)
    return run.build("house", [run.dir / "house.c"], ["-O1", "-g"])


def trace(run, words, program, hits, place, code=0, env=None):
    """The lines of JSON about the same hits, what the program said, and what usdt-trace said."""
    done = subprocess.run([run.tool, *words, "-f", "json", "-o", run.dir / "out.json", "--export", f"clickhouse={place}", "--",
                           program, *hits], capture_output=True, text=True, timeout=60, env=env)
    check_equal(done.returncode, code, done.stderr)
    said = [line.split() for line in done.stderr.splitlines() if re.fullmatch(r"\d+ (odd|even)", line)]
    return [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()], said, done.stderr


def hit(program):
    return f"usdt:{program}:house:hit"


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


@scenario
def hits_are_the_rows_that_the_program_says(run):
    program, house = build(run), House()
    lines, said, _ = trace(run, [hit(program), "--print", "arg0, str(arg1), str(arg2)"], program, ["700"], house.url + "/d", env=ENVIRONMENT)
    rows = house.rows["usdt_events"]
    check_equal([(str(row["nums"]["arg0"]), row["args"]["str(arg1)"]) for row in rows],
                [(n, 'a"b\\\n\ufffdff\x1b[31m' if which == "odd" else "plain") for n, which in said], "numbers and texts")
    check_equal({row["args"]["str(arg2).error"] for row in rows}, {of_type(lines, "event")[0]["args"][2]["error"]}, "why there is no value")
    check_equal({(row["kind"], row["probe"], row["service"], row["version"], row["container"], row["host"]) for row in rows},
                {("hit", hit(program), "shop", "1.2", 'c"7', socket.gethostname())}, "whose they are")
    check_equal({row["boot"] for row in rows}, {pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()}, "the boot")
    check_equal([(row["pid"], row["tid"], row["cpu"], row["comm"]) for row in rows],
                [(e["pid"], e["tid"], e["cpu"], e["comm"]) for e in of_type(lines, "event")], "those of JSON")
    check_equal([time.strftime("%FT%T", time.gmtime(row["time"] // 10**9)) + f".{row['time'] % 10**9:09}Z" for row in rows],
                [e["time"] for e in of_type(lines, "event")], "times")
    check_equal(house.forms, {"RowBinaryWithNamesAndTypes"}, "how they are encoded")
    path, query, _ = house.posts[0]
    check_equal((path, query["database"], query["wait_end_of_query"], query["input_format_skip_unknown_fields"]), ("/", "d", "1", "0"),
                "how they are inserted")


@scenario
def calls_are_spans_and_values_within_values_are_json(run):
    program, house = build(run), House()
    lines, said, _ = trace(run, [f"ucall:{program}:work", "--print", "r->weight, *r, big, retval"], program, ["90"], house.url)
    rows, events = house.rows["usdt_events"], of_type(lines, "event")
    check_equal(len(rows), len(said), "calls")
    for n, (row, event) in enumerate(zip(rows, events)):
        check_equal((row["kind"], row["duration"], row["nums"]), ("span", event["duration_ns"], {"retval": 1 - 3 * n}), "a call")
        check_equal((float(row["args"]["r->weight"]), row["args"]["big"]), (n / 4, str(2**64 - 1)), "numbers that are no integers of 64 bits")
        check_equal(json.loads(row["args"]["*r"]), {"kind": n, "weight": n / 4, "name": "req"}, "members")


@scenario
def the_ledger_and_the_batches_have_no_gap(run):
    program, house = build(run), House()
    trace(run, [hit(program), "--where", "arg0 < 10"], program, ["50"], house.url)
    check_equal((house.ledger("hits"), house.ledger("events"), house.ledger("rejected")), (50, 10, 40), "hits")
    rows = [row for table in house.rows.values() for row in table]
    check_equal(len({(row["host"], row["boot"], row["trace"]) for row in rows}), 1, "one trace")
    check_equal({row["seq"] for row in rows}, set(range(1, house.ledger("batches") + 1)), "batches")


@scenario
def tables_are_rows_with_their_histograms(run):
    program, house = build(run), House()
    lines, _, _ = trace(run, [hit(program), "--by", "arg0 % 3, str(arg1)", "--sum", "arg0"], program, ["90"], house.url)
    shown = of_type(lines, "table")[-1]["rows"]
    check_equal({(row["keys"]["arg0 % 3"], row["keys"]["str(arg1)"][:5], row["count"], row["sum"]) for row in house.rows["usdt_tables"]},
                {(str(row["key"][0]), row["key"][1][:5], row["count"], row["sum"]) for row in shown}, "rows")
    house = House()
    trace(run, [hit(program), "--hist", "arg0", "--hist-detail", "4"], program, ["1000"], house.url)
    row = house.rows["usdt_tables"][-1]
    check_equal((row["scale"], row["zeros"], row["count"], sum(row["positive_count"])), (3, 1, 1000, 999), "values")
    below = 0
    for index, count in zip(row["positive_index"], row["positive_count"]):
        below, bound = below + count, 2 ** ((index + 1) / 8)
        least, most = (sum(0 < value <= limit for value in range(1000)) for limit in (bound / (1 + 1 / 16) - 1, bound + 1e-6))
        check(least <= below <= most, f"{least} <= {below} <= {most} values up to {bound}")
    house = House()
    trace(run, [hit(program), "--lhist", "arg0:0:1000:100"], program, ["1200"], house.url)
    row = house.rows["usdt_tables"][-1]
    check_equal((row["bounds"], row["bound_counts"]), ([99 + 100 * n for n in range(10)] + ["inf"], [100] * 10 + [200]), "each width")


@scenario
def durations_have_indices_in_seconds(run):
    program, house = build(run), House()
    lines, _, _ = trace(run, [f"ucall:{program}:work", "--latency"], program, ["50"], house.url)
    row, shown = house.rows["usdt_tables"][-1], of_type(lines, "table")[-1]["rows"][0]
    check_equal((row["scale"], row["unit"], row["sum"], row["max"], sum(row["positive_count"])), (3, "ns", shown["total"], shown["max"], 50),
                "those of JSON")
    longest = 2 ** ((row["positive_index"][-1] + 1) / 8) * 1e9
    check(row["max"] <= longest <= row["max"] * 2 ** (1 / 8) * (1 + 1 / 16), f"{row['max']} is in the last bucket, up to {longest}")


@scenario
def rows_are_the_same_as_lines_of_json(run):
    program = build(run)
    for probe, shown in ((f"ucall:{program}:work", "*r, r->weight, big, retval"), (hit(program), "arg0, str(arg1), str(arg2)")):
        recording = run.dir / f"{shown[:3].strip('*, ')}.usdtrec"
        subprocess.run([run.tool, probe, "--print", shown, "-o", "/dev/null", "--record", recording, "--", program, "90"], capture_output=True,
                       check=True, timeout=60)
        for asked in ([], ["--by", "retval", "--latency"] if "retval" in shown else ["--lhist", "arg0:0:100:10"]):
            rows_of_both(run, recording, asked)


def rows_of_both(run, recording, asked):
    """The rows of a replay in both encodings."""
    of_both = []
    for place, form in (("", "RowBinaryWithNamesAndTypes"), ("/?format=JSONEachRow", "JSONEachRow")):
        house = House()
        subprocess.run([run.tool, "--replay", recording, *asked, "--export", f"clickhouse={house.url}{place}"], capture_output=True, check=True,
                       timeout=60)
        check_equal(house.forms, {form}, "the encoding")
        of_both.append([{name: value for name, value in row.items() if name != "trace" and (table == "usdt_events" or name != "time")}
                        for table in sorted(house.rows) for row in house.rows[table]])
    check(len(of_both[0]) > 4, f"rows: {len(of_both[0])}")
    check_equal(of_both[1], of_both[0], "each column of each row")


@scenario
def an_older_server_is_sent_lines_of_json(run):
    program, house = build(run), House([(404, {}, NO_SETTING, False)])
    lines, _, stderr = trace(run, [hit(program)], program, ["700"], house.url)
    check_equal((len(house.rows["usdt_events"]), house.forms), (700, {"JSONEachRow"}), "rows")
    check("Unknown setting" in stderr and stderr.count("JSONEachRow from now on") == 1, stderr)
    check_equal([form for _, query, _ in house.posts for form in re.findall(r"FORMAT (\w+)", query["query"])],
                ["RowBinaryWithNamesAndTypes"] + ["JSONEachRow"] * (len(house.posts) - 1), "it is asked once")
    tokens = [query["insert_deduplication_token"] for _, query, _ in house.posts]
    check_equal((tokens[0], len(set(tokens))), (tokens[1], len(tokens) - 1), "the first is sent again by its token")
    check_equal({name for _, query, _ in house.posts[1:] for name in query if name.startswith(("input_format_with", "wait_for"))}, set(),
                "settings that it does not know")
    accounted(lines, stderr, 700, 700)


def accounted(lines, stderr, hits, delivered):
    """Each hit is there or lost."""
    summary = of_type(lines, "summary")[-1]
    check_equal(summary["hits"], hits, stderr)
    check_equal(summary["lost"].get("not_written", 0), hits - delivered, f"what is not there is lost: {stderr}")


@scenario
def what_passes_comes_again_with_the_same_token(run):
    program = build(run)
    for answer, twice in (((500, {EXCEPTION: "252"}, TOO_MANY, False), False), ((500, {EXCEPTION: "241"}, b"", False), False),
                          ((200, {EXCEPTION: "159"}, b"", True), True), ((200, {}, TOO_MANY, False), False), ((503, {}, b"", False), False),
                          ((None, {}, b"", True), True), ((429, {"Retry-After": "1"}, b"", False), False),
                          ((b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", {}, b"", True), True)):
        house = House([answer])
        lines, _, stderr = trace(run, [hit(program)], program, ["100"], house.url)
        check_equal(len(house.rows["usdt_events"]), 100, f"all arrive once after {answer}")
        check_equal(house.posts[1][1]["insert_deduplication_token"], house.posts[0][1]["insert_deduplication_token"], "its token")
        accounted(lines, stderr, 100, 100)
        check_equal("may be there twice" in stderr, twice, stderr)


@scenario
def what_a_server_refuses_is_lost(run):
    program = build(run)
    for answer, words in (((404, {EXCEPTION: "60"}, NO_TABLE, False), "Table d.usdt_events does not exist"),
                          ((500, {EXCEPTION: "27"}, b"Code: 27. DB::Exception: \x1b[31m", False), "500 Internal Server Error"),
                          ((200, {}, NO_TABLE, False), "200 OK: Code: 60"), ((200, {EXCEPTION: "49"}, b"", False), "200 OK"),
                          ((403, {EXCEPTION: "516"}, b"Code: 516. DB::Exception: usdt: Authentication failed", False), "Authentication failed"),
                          ((413, {}, b"", False), "413"), ((307, {"Location": "http://127.0.0.1:1/"}, b"", False), "307"),
                          ((500, {EXCEPTION: "117"}, OTHER_TYPE, False), "Type of 'pid' must be UInt16"), ((500, {}, b"", False), "500")):
        house = House([answer])
        lines, _, stderr = trace(run, [hit(program)], program, ["100"], house.url, code=1)
        check_equal(len(house.rows["usdt_events"]), 0, "nothing is there")
        accounted(lines, stderr, 100, 0)
        check(words in stderr and "\x1b" not in stderr, stderr)


@scenario
def a_server_that_goes_and_comes_back_has_all(run):
    program, house = build(run), House()
    traced = run.start(run.tool, hit(program), "-f", "json", "-o", run.dir / "out.json", "--export", f"clickhouse={house.url}", "--",
                       program, "4000", "1000", stderr=subprocess.PIPE, text=True)
    while not house.rows["usdt_events"]:
        time.sleep(0.05)
    port = house.server.server_address[1]
    house.close()
    time.sleep(1.5)
    back = House(port=port)
    stderr = traced.communicate(timeout=60)[1]
    check_equal(traced.returncode, 0, stderr)
    numbers = [row["nums"]["arg0"] for each in (house, back) for row in each.rows["usdt_events"]]
    check_equal(sorted(set(numbers)), list(range(4000)), "all are there")
    check(len(house.rows["usdt_events"]) < 4000 and len(back.rows["usdt_events"]) < 4000, "each has had some")
    accounted([json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()], stderr, 4000, 4000)


@scenario
def settings_go_along_and_users_are_headers(run):
    program, house = build(run), House()
    env = {**os.environ, "USDT_CLICKHOUSE_USER": "usdt", "USDT_CLICKHOUSE_PASSWORD": "s3 cret"}
    trace(run, [hit(program)], program, ["5"], house.url + "/d?async_insert=1&insert_deduplication_token=&max_partitions_per_insert_block=7",
          env=env)
    check_equal(len(house.rows["usdt_events"]), 5, "rows")
    _, query, headers = house.posts[0]
    check_equal((query["async_insert"], query["wait_for_async_insert"], query["max_partitions_per_insert_block"]), ("1", "1", "7"), "settings")
    check("insert_deduplication_token" not in query, "one that is empty is not sent")
    check_equal((headers["X-ClickHouse-User"], headers["X-ClickHouse-Key"]), ("usdt", "s3 cret"), "headers")


@scenario
def places_that_are_none_are_refused(run):
    program = build(run)
    for place, words in (("http://u:p@x", "USDT_CLICKHOUSE_PASSWORD"), ("http://x/?user=u", "USDT_CLICKHOUSE_USER"),
                         ("http://x/?password=p", "USDT_CLICKHOUSE_PASSWORD"), ("http://x/a/b", "database"), ("http://x/?query=DROP", "no setting"),
                         ("http://x/?wait_for_async_insert=0", "nobody learns"), ("http://x/?format=CSV", "RowBinary or JSONEachRow"),
                         ("http://x/?input_format_with_types_use_header=0", "another type"), ("http://x/?a", "NAME=VALUE"), ("http://x/?=b", "NAME=VALUE"),
                         ("http://x/?a=b\r\nX:y", "NAME=VALUE"), ("https://x", "TLS"), ("x:8123", "http://HOST:PORT")):
        done = subprocess.run([run.tool, hit(program), "--export", f"clickhouse={place}", "--", program, "1"], capture_output=True, text=True,
                              timeout=30)
        check_equal(done.returncode, 2, f"{place}: {done.stderr}")
        check(words in done.stderr, f"{place}: {done.stderr}")
    done = subprocess.run([run.tool, hit(program), "--export", "clickhouse=http://127.0.0.1:1", "--", program, "1"], capture_output=True,
                          text=True, timeout=30, env={**os.environ, "USDT_CLICKHOUSE_PASSWORD": "a\nb: c"})
    check_equal(done.returncode, 2, done.stderr)
    check("USDT_CLICKHOUSE_PASSWORD has characters" in done.stderr and "b: c" not in done.stderr, done.stderr)


@scenario
def a_recording_gives_the_rows_of_the_trace(run):
    program, live, again = build(run), House(), House()
    recording = run.dir / "out.usdtrec"
    trace(run, [f"ucall:{program}:work", "--record", recording], program, ["100"], live.url)
    subprocess.run([run.tool, "--replay", recording, "--export", f"clickhouse={again.url}"], capture_output=True, check=True, timeout=60)
    of_both = [[{name: value for name, value in row.items() if name not in ("trace", "seq")} for row in house.rows["usdt_events"]]
               for house in (live, again)]
    check_equal(len(of_both[0]), 100, "spans")
    check_equal(of_both[1], of_both[0], "rows of the recording")


@scenario
def the_tables_of_a_cluster_have_the_same_columns(run):
    directory = pathlib.Path(__file__).resolve().parents[3] / "examples/fleet/clickhouse"
    columns = [re.findall(r"^    (\w.*)$", (directory / name).read_text(), re.M) for name in ("tables.sql", "tables_replicated.sql")]
    check(len(columns[0]) > 60, "columns were found")
    check_equal(columns[1], columns[0], "columns")


if __name__ == "__main__":
    main()
