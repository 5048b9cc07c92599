# SPDX-License-Identifier: BSD-2-Clause
"""Programs and modules of others that read exports, for the test beside this. Those that Debian 12 does not have are in the
directory that bring_readers.py makes."""

import base64
import collections
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import urllib.request

from browser import Page
from collector import Collector, attributes_of, read_message
from harness import Skip, check_equal, free_port, require_program, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
READERS = pathlib.Path(os.environ.get("USDT_READERS", ROOT / "build/readers"))


def of_readers(path):
    """A file that `./run readers` brought."""
    if not (READERS / path).exists():
        raise Skip(f"no {path}: ./run readers")
    return READERS / path


class Victoria:
    """A server of VictoriaMetrics."""

    def __init__(self, run):
        program = of_readers("sid/usr/bin/victoria-metrics")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        run.start(program, f"-storageDataPath={run.dir}/victoria", f"-httpListenAddr=127.0.0.1:{port}",
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.ask("/health") == "OK", "VictoriaMetrics to start", 60, every=0.1)

    def ask(self, path, **fields):
        try:
            data = urllib.parse.urlencode(fields).encode() or None
            with urllib.request.urlopen(self.url + path, data=data, timeout=20) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def series(self, service, least):
        """{(name, {label: value} as a frozenset): last value} of a service; waits for so many of
        them, which the index may not have at once."""
        found = {}

        def read():
            self.ask("/internal/force_flush")
            for line in self.ask("/api/v1/export", **{"match[]": f'{{service.name="{service}"}}'}).splitlines():
                series = json.loads(line)
                labels = {name: value for name, value in series["metric"].items()
                          if name != "__name__" and not name.startswith(("host.", "os.", "scope.", "service."))}
                found[series["metric"]["__name__"], frozenset(labels.items())] = series["values"][-1]
            return len(found) >= least
        wait_until(read, f"{least} series of {service}", 30, every=0.5)
        return found


class Official:
    """A collector whose posts are read by the messages that OpenTelemetry publishes for Python."""

    def __init__(self, run):
        modules = of_readers("sid/usr/lib/python3/dist-packages/opentelemetry").parent
        if str(modules) not in sys.path:
            sys.path.append(str(modules))  # last: all else is this machine's own
        self.collector = Collector(run)

    def items(self, signal):
        """(resource's attributes, item) of "trace", "logs" or "metrics"."""
        module = importlib.import_module(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2")
        name, at, of_resource, of_scope, of_item = {
            "trace": ("Trace", "/v1/traces", "resource_spans", "scope_spans", "spans"),
            "logs": ("Logs", "/v1/logs", "resource_logs", "scope_logs", "log_records"),
            "metrics": ("Metrics", "/v1/metrics", "resource_metrics", "scope_metrics", "metrics")}[signal]
        found = []
        for path, kind, body in self.collector.kept:
            if path != at:
                continue
            message = read_message(getattr(module, f"Export{name}ServiceRequest"), kind, body)
            check_all_is_known(message)
            for resource in getattr(message, of_resource):
                for scope in getattr(resource, of_scope):
                    found += [(attributes_of(resource.resource.attributes), item) for item in getattr(scope, of_item)]
        return found


def check_all_is_known(message):
    """There is no field, at any depth, that the reader does not know."""
    check_equal(len(message.UnknownFields()), 0, f"unknown fields of {message.DESCRIPTOR.full_name}")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.label == field.LABEL_REPEATED else [value]:
                check_all_is_known(each)


def by_sqlite(run, file, query):
    require_program("sqlite3")
    commands = [word for command in (".mode csv", f".import {file} t", ".mode json") for word in ("-cmd", command)]
    done = subprocess.run(["sqlite3", "-bail", *commands, ":memory:", query], capture_output=True, text=True, timeout=60)
    check_equal((done.returncode, done.stderr), (0, ""), "sqlite")
    return json.loads(done.stdout)


def by_duckdb(run, made_of, query):
    """`made_of`: what the table t is."""
    of_readers("node_modules/@duckdb/node-api")
    require_program("node")
    (run.dir / "query.cjs").write_text("""
const { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
  const engine = await (await DuckDBInstance.create(":memory:")).connect();
  await engine.run(`create table t as select * from ${process.argv[2]}`);
  const rows = (await engine.runAndReadAll(process.argv[3])).getRowObjectsJson();
  console.log(JSON.stringify(rows));
})().catch((error) => { console.error(String(error)); process.exit(1); });
""")
    done = subprocess.run(["node", run.dir / "query.cjs", made_of, query], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "NODE_PATH": str(READERS / "node_modules")})
    check_equal((done.returncode, done.stderr), (0, ""), "DuckDB")
    return json.loads(done.stdout)


class Prometheus:
    """Prometheus itself, `program`, which scrapes a page four times a second."""

    def __init__(self, run, program, page):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        (run.dir / "prometheus.yml").write_text(
            f"scrape_configs:\n- job_name: usdt\n  scrape_interval: 1s\n  scrape_timeout: 1s\n"
            f"  static_configs: [{{targets: ['{urllib.parse.urlsplit(page).netloc}']}}]\n")
        run.start(program, f"--config.file={run.dir}/prometheus.yml", f"--storage.tsdb.path={run.dir}/tsdb",
                  f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=native-histograms", stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)

    def ask(self, query):
        """The numbers of a query's series."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?query={urllib.parse.quote(query)}", timeout=20) as answer:
                return [float(each["value"][1]) for each in json.load(answer)["data"]["result"]]
        except OSError:
            return []

    def refused_samples(self):
        """Its own counters of samples that it did not take: {name: count}."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=20) as answer:
            lines = answer.read().decode()
        return {name: int(count) for name, count in
                re.findall(r"^(prometheus_target_scrapes_(?:sample_\w+|exceeded_\w+)) (\d+)$", lines, re.M)}


def by_speedscope(run, file):
    """{stack, outermost first: weight} and the unit, by what it saves after it has read a file."""
    index = of_readers("node_modules/speedscope/dist/release/index.html")
    script = run.dir / f"{file.name}.js"
    content = base64.b64encode(file.read_bytes()).decode()
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(file.name)}, {json.dumps(content)})")
    page = Page(index, fragment=f"localProfilePath={script}", may_log=True)
    page.value("void (URL.createObjectURL = blob => (window.saved = blob.text(), 'data:,'))")
    wait_until(lambda: file.name in page.value("document.body.innerText"), "speedscope to show it", 30, every=0.1)
    page.value("void window.dispatchEvent(new KeyboardEvent('keydown', {key: 's', ctrlKey: true}))")
    saved = json.loads(page.value("window.saved"))
    page.close()
    names = [frame["name"] for frame in saved["shared"]["frames"]]
    weights = collections.Counter()
    profile = saved["profiles"][saved.get("activeProfileIndex", 0)]
    check_equal((profile["type"], len(saved["profiles"])), ("evented", 1), "what it saves")
    stack, since = [], profile["startValue"]
    for event in profile["events"]:
        if event["at"] > since:
            weights[tuple(stack)] += event["at"] - since
        since = event["at"]
        if event["type"] == "O":
            stack.append(names[event["frame"]])
        else:
            check_equal(stack.pop(), names[event["frame"]], "nesting")
    check_equal(profile["endValue"] - profile["startValue"], sum(weights.values()), "all of it")
    return weights, profile["unit"]
