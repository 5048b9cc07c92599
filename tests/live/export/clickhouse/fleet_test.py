#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The fleet path, with ClickHouse's own engine (npm's chdb, behind front.mjs) and Debian's server of 2018: what queries say is
what the traced programs say, nothing is lost or doubled beyond what the ledger says, a server that is killed included, and the
one slow container is found. `./run fleet` brings chdb and runs it; numbers go to build/fleet/figures.json."""

import concurrent.futures
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(1, str(HERE.parent))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, free_port, main, require_root, scenario  # noqa: E402
from post_server import PostServer  # noqa: E402

TABLES = ROOT / "examples/fleet/clickhouse/tables.sql"
QUERIES = ROOT / "examples/fleet/clickhouse/queries"
EVENTS = int(os.environ.get("USDT_FLEET_EVENTS", "10000000"))
PER_RECORDING = 1_000_000
PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
__attribute__((noipa)) long serve(long kind, double ns) {
  struct timespec time = {0, (long)ns};
  nanosleep(&time, 0);
  return kind;
}
/* hits N | calls N SEED FACTOR */
int main(int argc, char **argv) {
  long times = atol(argv[2]);
  if (argv[1][0] == 'h')
    for (long i = 0; i < times; i++) DTRACE_PROBE1(fleet, hit, i);
  else
    for (srand48(atol(argv[3])); times > 0; times--)
      serve(times % 5, atof(argv[4]) * 1e6 * exp(0.4 * (drand48() + drand48() + drand48() - 1.5)));
  return argc == 0;
}
"""


def tell(**figures):
    """Keeps numbers for docs/fleet.md."""
    place = pathlib.Path(os.environ.get("USDT_FLEET_FIGURES", "figures.json"))
    known = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps({**known, **figures}, indent=1))
    print(json.dumps(figures))


def build(run):
    require_root()
    (run.dir / "fleet.c").write_text(PROGRAM)
    return run.build("fleet", [run.dir / "fleet.c"], ["-O1", "-g", "-Wl,--no-as-needed", "-lm"])


class Engine:
    """A server of queries over HTTP, which can be killed and comes back with what it had."""

    def __init__(self, command, port):
        self.command, self.port, self.cpu = command, port, 0.0
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                self.ask("SELECT 1")
                return
            except OSError:
                time.sleep(0.1)
        raise Skip(f"{self.command[0]} does not answer")

    def kill(self):
        self.cpu += self.seconds()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def seconds(self):
        """Seconds of its processor time."""
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def place(self, rest=""):
        return f"http://127.0.0.1:{self.port}/{rest}"

    def ask(self, query):
        """Rows, each a list of texts."""
        try:
            with urllib.request.urlopen(self.place(), data=query.encode(), timeout=120) as reply:
                return [line.split("\t") for line in reply.read().decode().splitlines() if line]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.read().decode()}\n{query}") from None

    def run(self, path, **parameters):
        """The rows of a file's last query."""
        text = re.sub(r"--.*", "", path.read_text())
        for name, value in parameters.items():
            text = text.replace(f"{{{name}:String}}", f"'{value}'")
        rows = []
        for statement in filter(str.strip, text.split(";")):
            rows = self.ask(statement)
        return rows


def chdb(run, name="data"):
    """chdb with our tables."""
    if shutil.which("node") is None or not (pathlib.Path(os.environ.get("NODE_PATH", "/none")) / "chdb").is_dir():
        raise Skip("no node, or no chdb in NODE_PATH: ./run fleet")
    port = free_port()
    engine = Engine(["node", HERE / "front.mjs", run.dir / name, str(port)], port)
    engine.run(TABLES)
    return engine


def record(run, name, words, program, *arguments):
    recording = run.dir / f"{name}.usdtrec"
    done = subprocess.run([run.tool, *words, "--ring-size", "256", "-o", "/dev/null", "--record", recording, "--", program, *arguments],
                          capture_output=True, text=True, timeout=300)
    check_equal(done.returncode, 0, done.stderr)
    return recording


def replay(run, recording, place, *, asked=(), **attributes):
    """The words it said, and the seconds of processor time that it took."""
    given = ",".join(f"{name.replace('_', '.')}={value}" for name, value in attributes.items())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([run.tool, "--replay", recording, *asked, "-o", "/dev/null", "--export", f"clickhouse={place}"], capture_output=True,
                          text=True, timeout=600, env={**os.environ, "OTEL_SERVICE_NAME": "fleet", "OTEL_RESOURCE_ATTRIBUTES": given})
    check_equal(done.returncode, 0, done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shown(run, recording):
    """The events of a recording as JSON has them."""
    done = subprocess.run([run.tool, "--replay", recording, "-f", "json"], capture_output=True, text=True, timeout=300, check=True)
    return [event for event in map(json.loads, done.stdout.splitlines()) if event["type"] == "event"]


@scenario
def queries_say_what_the_program_says(run):
    program, engine = build(run), chdb(run)
    recording = record(run, "calls", [f"ucall:{program}:serve"], program, "calls", "500", "1", "0.2")
    replay(run, recording, engine.place("default"), container_id="c1", service_version="7")
    durations = sorted(event["duration_ns"] for event in shown(run, recording))
    rows = engine.ask("SELECT count(), sum(duration), sum(nums['kind']), any(version), any(container) FROM usdt_events")
    check_equal(rows, [["500", str(sum(durations)), str(sum(n % 5 for n in range(500))), "7", "c1"]], "events")
    for row in engine.run(QUERIES / "percentiles.sql"):
        check_equal(int(row[3]), 500, "spans")
        for share, text in zip((0.5, 0.9, 0.99), row[5:8]):
            exact = durations[math.ceil(share * 500) - 1] / 1e9
            check(exact - 1e-9 <= float(text) <= exact * 2 ** (1 / 8) + 1e-9, f"p{share}: {exact}, in its bucket {text}")
    # The kernel's own histogram, by a table, is the same at the layout's scale but for its coarser buckets.
    done = subprocess.run([run.tool, "--replay", recording, "--latency", "-o", "/dev/null", "--export", f"clickhouse={engine.place()}"], timeout=60)
    check_equal(done.returncode, 0, "a table")
    of_table, of_minutes = (eval(engine.ask(query)[0][0]) for query in (
        "SELECT sumMap(positive_index, positive_count) FROM usdt_tables WHERE last", "SELECT sumMapMerge(durations) FROM usdt_minutes"))
    for index in sorted(set(of_table[0]) | set(of_minutes[0])):
        up_to = [sum(n for i, n in zip(*histogram) if i <= index) for histogram in (of_table, of_minutes)]
        least = sum(n for i, n in zip(*of_minutes) if i <= index - 1)
        check(least <= up_to[0] <= up_to[1], f"values up to index {index}: {up_to}, {least}")
    for name in ("losses", "doubles", "gaps"):
        check_equal(engine.run(QUERIES / f"{name}.sql"), [], name)
    engine.kill()


def columns_of(engine, table, host):
    """All columns of all rows of a host, as text, but for those by which traces differ."""
    names = [name for name, in engine.ask(f"SELECT name FROM system.columns WHERE table = '{table}' AND database = 'default'")]
    apart = {"host", "trace"} | ({"time"} if table != "usdt_events" else set())
    check(len(names) > 10, f"columns: {names}")
    return engine.ask(f"SELECT {', '.join(name for name in names if name not in apart)} FROM {table} WHERE host = '{host}' ORDER BY ALL")


@scenario
def both_encodings_are_the_same_rows(run):
    program, engine = build(run), chdb(run)
    calls = record(run, "calls", [f"ucall:{program}:serve", "--ustack"], program, "calls", "300", "1", "0.1")
    hits = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", "1000")
    for recording, asked in ((calls, ()), (hits, ()), (calls, ("--by", "kind", "--sum", "kind", "--max", "kind")),
                             (calls, ("--distinct", "kind")), (calls, ("--latency",)), (hits, ("--hist", "arg0 - 500")), (hits, ("--lhist", "arg0:0:900:100"))):
        for host, rest in (("binary", ""), ("json", "?format=JSONEachRow")):
            said, _ = replay(run, recording, engine.place("default" + rest), asked=asked, host_name=host)
            check("JSONEachRow from now on" not in said, said)
    for table, least in (("usdt_events", 1300), ("usdt_tables", 9), ("usdt_ledger", 20)):
        binary, lines = columns_of(engine, table, "binary"), columns_of(engine, table, "json")
        check(len(binary) >= least, f"{len(binary)} rows of {table}")
        check_equal(lines, binary, f"each column of each row of {table}")
    engine.kill()


@scenario
def a_table_of_other_types_is_refused_and_has_no_wrong_value(run):
    program, engine = build(run), chdb(run)
    hits = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", "1000")
    engine.ask("ALTER TABLE usdt_events MODIFY COLUMN pid UInt8")
    place = engine.place("default")
    done = subprocess.run([run.tool, "--replay", hits, "-o", "/dev/null", "--export", f"clickhouse={place}"], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("1000 not_written" in done.stderr and "Type of 'pid' must be UInt8, not UInt32" in done.stderr, done.stderr)
    check_equal(engine.ask("SELECT count() FROM usdt_events"), [["0"]], "rows")
    check_equal([row[2:] for row in engine.run(QUERIES / "losses.sql")], [["not_here", "1000"]], "losses")
    # Types that hold the values are as bad for RowBinary, and are taken as JSON, which is asked for.
    engine.ask("ALTER TABLE usdt_events MODIFY COLUMN pid UInt64")
    replay(run, hits, place + "?format=JSONEachRow")
    pids = {str(event["pid"]) for event in shown(run, hits)}
    check_equal(engine.ask("SELECT count(), any(pid) FROM usdt_events"), [["1000", *pids]], "rows")
    engine.kill()


@scenario
def settings_of_collected_insertions_are_taken(run):
    """chdb has no queue of them: it takes the settings, and inserts at once. That tokens and errors are as they are is what it shows."""
    program, engine = build(run), chdb(run)
    hits = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", "1000")
    for times in (1, 2):
        replay(run, hits, Relay(engine, times).url + "/default?async_insert=1")
        check_equal(engine.ask("SELECT count() FROM usdt_events"), [[str(1000 * times)]], "a batch that comes twice is there once")
    engine.kill()


class Relay(PostServer):
    """Hands what is posted to the engine, as often as `times` says, and tells what the sender is to see of it."""

    def __init__(self, engine, times, other_token=False):
        self.engine, self.times, self.other_token = engine, times, other_token
        super().__init__()

    def answer(self, path, headers, body):
        for n in range(self.times):
            own = path.replace("deduplication_token=", f"deduplication_token={n}-") if self.other_token else path
            request = urllib.request.Request(self.engine.place() + own.lstrip("/"), data=body, headers={"Content-Encoding": "gzip"})
            urllib.request.urlopen(request).close()
        return 200, {}, b""


@scenario
def a_batch_that_comes_twice_is_taken_once(run):
    program, engine = build(run), chdb(run)
    recording = record(run, "calls", [f"ucall:{program}:serve"], program, "calls", "300", "1", "0.1")
    counts = "SELECT (SELECT count() FROM usdt_events), (SELECT countMerge(events) FROM usdt_minutes)"
    replay(run, recording, Relay(engine, 2).url)
    check_equal(engine.ask(counts), [["300", "300"]], "events, and those of the view")
    check_equal(engine.run(QUERIES / "doubles.sql"), [], "doubles")
    replay(run, recording, Relay(engine, 2, other_token=True).url)
    check_equal(engine.ask(counts), [["900", "900"]], "by other tokens it is there twice")
    check_equal([row[-1] for row in engine.run(QUERIES / "doubles.sql")], ["300"], "which is found")
    check_equal([row[2:] for row in engine.run(QUERIES / "losses.sql")], [["not_here", "-300"]], "by the ledger, too")
    # Tables count from the beginning: a look that is there twice changes nothing.
    done = subprocess.run([run.tool, "--replay", recording, "--by", "kind", "-o", "/dev/null", "--export",
                           f"clickhouse={Relay(engine, 2, other_token=True).url}"], timeout=60)
    check_equal(done.returncode, 0, "a table")
    check_equal(engine.ask("SELECT sum(count) FROM usdt_tables"), [["600"]], "looks")
    check_equal({(row[2], row[4]) for row in engine.run(QUERIES / "top_keys.sql")}, {(f"{{'kind':'{n}'}}", "60") for n in range(5)}, "hits")
    engine.kill()


@scenario
def what_did_not_arrive_is_named(run):
    program, engine = build(run), chdb(run)
    engine.ask("RENAME TABLE usdt_events TO elsewhere")
    recording = record(run, "calls", [f"ucall:{program}:serve"], program, "calls", "300", "1", "0.1")
    done = subprocess.run([run.tool, "--replay", recording, "-o", "/dev/null", "--export", f"clickhouse={engine.place()}"],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("300 not_written" in done.stderr and "usdt_events does not exist" in done.stderr, done.stderr)
    engine.ask("RENAME TABLE elsewhere TO usdt_events")
    check_equal([row[2:] for row in engine.run(QUERIES / "losses.sql")], [["not_here", "300"]], "losses")
    check_equal([row[4] for row in engine.run(QUERIES / "gaps.sql")], ["[1]"], "the batch")
    engine.kill()


@scenario
def batches_of_a_killed_agent_are_there_once(run):
    program, engine = build(run), chdb(run)
    (run.dir / "calls.toml").write_text(f'[question.calls]\nprobes = ["ucall:{program}:serve"]\n')
    agent = [pathlib.Path(run.tool).with_name("usdt-agent"), "--export", f"clickhouse={engine.place()}", "--spool", run.dir / "spool",
             run.dir / "calls.toml"]
    engine.kill()
    first = run.start(*agent, stderr=subprocess.PIPE, text=True)
    while "attached" not in first.stderr.readline():
        pass
    subprocess.run([program, "calls", "500", "1", "0.2"], check=True)
    while sum(int(each.stem.split("-")[1]) for each in (run.dir / "spool").rglob("*.batch")) < 500:
        time.sleep(0.1)
    first.kill()
    first.wait()
    engine.start()
    second = run.start(*agent, stderr=subprocess.DEVNULL)
    while engine.ask("SELECT count() FROM usdt_events")[0][0] != "500":
        time.sleep(0.1)
    second.send_signal(signal.SIGINT)
    second.wait()
    check_equal(engine.ask("SELECT count(), sum(nums['kind']), any(question) FROM usdt_events"),
                [["500", str(sum(n % 5 for n in range(500))), "calls"]], "each call once")
    engine.kill()


@scenario
def ten_million_events_are_there_once(run):
    program, engine = build(run), chdb(run)
    recording = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", str(PER_RECORDING))
    traces, began, sent = EVENTS // PER_RECORDING, time.monotonic(), 0.0
    for n in range(traces):
        sent += replay(run, recording, engine.place(), host_name=f"h{n}")[1]
    took, cpu = time.monotonic() - began, engine.seconds()
    whole = PER_RECORDING * (PER_RECORDING - 1) // 2
    check_equal(engine.ask("SELECT host, count(), sum(nums['arg0']), uniqExact(nums['arg0']) FROM usdt_events GROUP BY host ORDER BY host"),
                sorted([f"h{n}", str(PER_RECORDING), str(whole), str(PER_RECORDING)] for n in range(traces)), "each event once")
    for name in ("losses", "doubles", "gaps"):
        check_equal(engine.run(QUERIES / f"{name}.sql"), [], name)
    began = time.monotonic()
    engine.run(QUERIES / "integers.sql", name="arg0")
    by_integer = time.monotonic() - began
    size = engine.ask("SELECT sum(data_compressed_bytes), sum(data_uncompressed_bytes) FROM system.parts WHERE active AND table = 'usdt_events'")[0]
    tell(events=EVENTS, seconds=round(took, 1), sender_cpu_per_million=round(sent / traces, 2), engine_cpu_per_million=round(cpu / traces, 2), bytes_per_event=round(int(size[0]) / EVENTS, 2), by_integer_seconds=round(by_integer, 2))
    engine.kill()


class Counter(PostServer):
    """Takes all, and knows how many bytes came."""

    def __init__(self):
        self.bytes = 0
        super().__init__()

    def answer(self, path, headers, body):
        self.bytes += len(body)
        return 200, {}, b""


def seconds_of(run, recording, words):
    """The processor time of a replay, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([run.tool, "--replay", recording, "-o", "/dev/null", *words], check=True, timeout=300, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@scenario
def a_million_rows_cost_the_sender_a_second_at_most(run):
    """Beside what replaying and printing them costs, which is measured in turn with it; medians of five."""
    program, figures = build(run), {}
    recording = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", str(PER_RECORDING))
    for name, rest in (("RowBinary", ""), ("JSONEachRow", "?format=JSONEachRow")):
        server, more = Counter(), []
        for _ in range(5):
            plain = seconds_of(run, recording, [])
            more.append(seconds_of(run, recording, ["--export", f"clickhouse={server.url}/{rest}"]) - plain)
        figures[name] = {"seconds_per_million": round(sorted(more)[2] * 1e6 / PER_RECORDING, 2),
                         "bytes_per_event": round(server.bytes / 5 / PER_RECORDING, 1)}
    tell(encodings=figures)
    check(figures["RowBinary"]["seconds_per_million"] <= 1.0, f"{figures}")


def killed_in_the_middle(run, engine, place, hits):
    """Traces `hits` hits while the engine is killed and comes back; returns what was said."""
    program = build(run)
    traced = run.start(run.tool, f"usdt:{program}:fleet:hit", "-o", "/dev/null", "--export", f"clickhouse={place}", "--", program, "hits", str(hits),
                       stderr=subprocess.PIPE, text=True)
    while engine.ask("SELECT count() FROM usdt_events") == [["0"]]:
        time.sleep(0.02)
    engine.kill()
    time.sleep(0.5)
    engine.start()
    said = traced.communicate(timeout=300)[1]
    return said


def lost_in(said):
    """Events that usdt-trace says are not there, and those that it says are."""
    events, hits = map(int, re.search(r"(\d+) events of (\d+) hits", said).groups())
    return events, hits


@scenario
def a_killed_engine_has_all_and_nothing_twice(run):
    engine = chdb(run)
    said = killed_in_the_middle(run, engine, engine.place(), 2_000_000)
    events, hits = lost_in(said)
    count, different = map(int, engine.ask("SELECT count(), uniqExact(nums['arg0']) FROM usdt_events")[0])
    check_equal((hits, count, different), (2_000_000, events, events), f"each event that was given once: {said}")
    check_equal(engine.run(QUERIES / "doubles.sql"), [], "doubles")
    tell(killed_chdb={"hits": hits, "events": events, "rows": count})
    engine.kill()


OLD_CONFIG = """<yandex><logger><level>error</level><console>1</console></logger><http_port>{port}</http_port><tcp_port>{tcp}</tcp_port>
<listen_host>127.0.0.1</listen_host><path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><mark_cache_size>100000000</mark_cache_size>
<users_config>{dir}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database></yandex>"""
OLD_USERS = """<yandex><profiles><default/></profiles><users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default/></quotas></yandex>"""


@scenario
def debians_server_of_2018_is_killed_and_has_all(run):
    if shutil.which("clickhouse-server") is None:
        raise Skip("no clickhouse-server: apt-get install clickhouse-server")
    port, tcp = free_port(), free_port()
    (run.dir / "config.xml").write_text(OLD_CONFIG.format(port=port, tcp=tcp, dir=run.dir))
    (run.dir / "users.xml").write_text(OLD_USERS)
    engine = Engine(["clickhouse-server", f"--config-file={run.dir}/config.xml"], port)
    # It knows neither our types nor our settings.
    engine.ask("CREATE TABLE usdt_events (time UInt64, probe String, host String, trace UInt64, seq UInt64) ENGINE = MergeTree ORDER BY time")
    engine.ask("CREATE TABLE usdt_ledger (time UInt64, name String, value UInt64, trace UInt64, seq UInt64) ENGINE = MergeTree ORDER BY time")
    rest = "default?insert_deduplication_token=&deduplicate_blocks_in_dependent_materialized_views=&input_format_skip_unknown_fields=1"
    said = killed_in_the_middle(run, engine, engine.place(rest), 2_000_000)
    events, hits = lost_in(said)
    count, different = map(int, engine.ask("SELECT count(), uniqExact(time) FROM usdt_events")[0])
    check_equal((hits, different), (2_000_000, events), f"each event that was given: {said}")
    check("JSONEachRow from now on" in said, f"it knows no types in RowBinary: {said}")
    # It knows no tokens: a batch that came twice is there twice, which is said, and found by its rows.
    doubled = int((engine.ask("SELECT sum(n - 1) FROM (SELECT count() AS n FROM usdt_events GROUP BY seq, time) WHERE n > 1") or [["0"]])[0][0])
    check_equal(count - doubled, events, f"doubles are found: {said}")
    check(doubled == 0 or "may be there twice" in said, said)
    tell(killed_debian={"hits": hits, "events": events, "rows": count, "doubled": doubled})
    engine.kill()


@scenario
def two_hundred_streams_fit_one_engine(run):
    program, engine = build(run), chdb(run)
    recordings = [record(run, f"s{n}", [f"ucall:{program}:serve"], program, "calls", "2000", str(n), "0.05") for n in range(4)]
    hits = record(run, "hits", [f"usdt:{program}:fleet:hit"], program, "hits", "20000")
    began, streams = time.monotonic(), 200
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def stream(n):
        for recording in (recordings[n % 4], hits):
            replay(run, recording, engine.place(), host_name=f"h{n}", container_id=f"c{n}", service_version=f"{n % 3}")

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(stream, range(streams)))
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    events = streams * 22_000
    check_equal(engine.ask("SELECT count(), uniqExact(host), uniqExact(trace) FROM usdt_events"), [[str(events), "200", "400"]], "events")
    check_equal(engine.ask("SELECT countMerge(events) FROM usdt_minutes"), [[str(streams * 2000)]], "spans")
    for name in ("losses", "doubles", "gaps"):
        check_equal(engine.run(QUERIES / f"{name}.sql"), [], name)
    began = time.monotonic()
    engine.run(QUERIES / "who_differs.sql")
    asked = time.monotonic() - began
    size = engine.ask("SELECT table, sum(data_compressed_bytes), sum(rows) FROM system.parts WHERE active AND table LIKE 'usdt_%' GROUP BY table")
    tell(fleet={"streams": streams, "events": events, "seconds": round(took, 1), "events_a_second": round(events / took),
                "senders_cpu_per_million": round((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / events * 1e6, 2),
                "engine_cpu_per_million": round(engine.seconds() / events * 1e6, 2), "who_differs_seconds": round(asked, 2),
                "bytes": {row[0]: [int(row[1]), int(row[2])] for row in size}})
    engine.kill()


@scenario
def the_slow_container_is_ranked_first(run):
    program, engine = build(run), chdb(run)
    factor, runs, members, calls = float(os.environ.get("USDT_FLEET_SLOW", "1.5")), 20, 50, 250
    for n in range(60 + runs):
        slow = n >= 60
        # Slow ones among the others: the machine is not equally busy all the time.
        seed, how = (n, factor) if slow else (n, 1.0)
        recording = record(run, f"r{n}", [f"ucall:{program}:serve"], program, "calls", str(calls), str(seed), str(how))
        replay(run, recording, engine.place(), container_id=f"slow{n - 60}" if slow else f"c{n}")
        recording.unlink()
    ranks = []
    for n in range(runs):
        # 49 of the 60, others in each run, and a slow one of its own.
        chosen = [f"c{(n * 7 + i) % 60}" for i in range(members - 1)] + [f"slow{n}"]
        names = ", ".join(f"'{name}'" for name in chosen)
        engine.ask(f"CREATE DATABASE run{n}")
        engine.ask(f"CREATE TABLE run{n}.usdt_minutes AS usdt_minutes")
        engine.ask(f"INSERT INTO run{n}.usdt_minutes SELECT * FROM usdt_minutes WHERE container IN ({names})")
        text = re.sub(r"--.*", "", (QUERIES / "who_differs.sql").read_text()).replace("FROM usdt_minutes", f"FROM run{n}.usdt_minutes")
        rows = [row for row in engine.ask(text.replace("LIMIT 20", "LIMIT 50")) if row[0].startswith("ucall")]
        check_equal(len(rows), members, "containers")
        ranks.append([row[1] for row in rows].index(f"slow{n}") + 1)
    tell(slow={"factor": factor, "ranks": ranks, "first": rows[0][1:], "second": rows[1][1:]})
    check_equal(ranks, [1] * runs, "the rank of the slow container in each run")
    engine.kill()


if __name__ == "__main__":
    main()
