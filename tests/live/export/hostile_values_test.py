#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Texts as an attacker would choose them, values, names of processes, of functions and of files, in each form that answers have:
each is read by a reader of others, has all hits, and no two texts are one there: formats that can have any text have that of the traced
program, and all others its escapes."""

import collections
import csv
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tools")]

import puppet  # noqa: E402, F401 (finds the harness)
from browser import Page  # noqa: E402
from collector import Collector, attributes_of  # noqa: E402
from harness import check, check_equal, free_port, main, require_program, require_root, scenario, wait_line, wait_until  # noqa: E402
from house import House  # noqa: E402
from messages import compiled  # noqa: E402
from metric_pages import read_open, read_protobuf, read_text  # noqa: E402
from perfetto_reader import draw  # noqa: E402
from strict_text import BIDI, HOSTILE  # noqa: E402

TEXTS = [*HOSTILE, b"plain", b"two\nlines", b'say "no"', b'back\\slash\\"', b"\\n", b"it's; drop, {a=\"b\"} # x 1", b"a;b 7", b"\r\n", b"",
         b"</script><b>&amp;", b"\xff", b"\xc0\xaf\xe2\x82", "\U0001f600 \u20ac".encode(), b"# EOF", b"# HELP x y", b"\x01\x7f",
         b"\n", b"two\\nlines", b"\\xff", "\ufffdff".encode(), b"\\\\n", b"=1+1"]
# Of a function, and of a directory.
SYMBOL, DIRECTORY = "f\"n\\</script>;\n\udcff 7", "d\"r\\<b>;\n\udcff 7"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
/* For each line of standard input all texts, with a name of the process that goes with each, and a line when they are done. */
static char texts[][64] = {TEXTS};
enum { kTexts = sizeof(texts) / sizeof(texts[0]) };
__attribute__((noinline)) void odd(long n, const char *text) {
  DTRACE_PROBE2(hostile, hit, n, text);
  __asm__ volatile("" ::: "memory");
}
int main(void) {
  long times, n = 0;
  for (int i = 0; i < kTexts; i++) texts[i][63] = 0;  /* written to, so that their pages are there */
  while (scanf("%ld", &times) == 1) {
    for (; times > 0; times--)
      for (int i = 0; i < kTexts; i++, n++) {
        prctl(PR_SET_NAME, texts[(i + 3) % kTexts]);
        odd(n, texts[i]);
      }
    printf("%ld\n", n);
    fflush(stdout);
  }
  return 0;
}
"""


def build(run):
    """The program, in the directory."""
    require_root()
    require_program("objcopy")
    texts = ", ".join('"' + "".join(f"\\{byte:03o}" for byte in text) + '"' for text in TEXTS)
    (run.dir / "hostile.c").write_text(PROGRAM.replace("TEXTS}", texts + "}"))
    made = run.build("hostile", [run.dir / "hostile.c"], ["-O1", "-fno-omit-frame-pointer"])
    place = run.dir / DIRECTORY / "hostile"
    place.parent.mkdir()
    subprocess.run(["objcopy", f"--redefine-sym=odd={SYMBOL}", made, place], check=True)
    return place


def true(text):
    """A text as those forms have it that can have any: bytes that are no UTF-8 are marked, and so is what marks them."""
    return "".join("".join(f"\ufffd{byte:02x}" for byte in letter.encode(errors="surrogateescape"))
                   if 0xdc80 <= ord(letter) <= 0xdcff or letter == "\ufffd" else letter for letter in text.decode(errors="surrogateescape"))


def shown(text, backslash="\\\\"):
    """A text as all others have it. `backslash`: what is there for one; names that have quotes where they need them keep it."""
    escaped = ""
    for letter in text.decode(errors="surrogateescape"):
        code = ord(letter)
        if letter == "\\":
            escaped += backslash
        elif 0xdc80 <= code <= 0xdcff:
            escaped += f"\\x{code & 0xff:02x}"
        elif code < 0x20 or 0x7f <= code < 0xa0 or code in BIDI or code in (0x2028, 0x2029):
            escaped += {"\n": "\\n", "\t": "\\t"}.get(letter, f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")
        else:
            escaped += letter
    return escaped


def expected(times, write=true):
    """How often each text goes with each name of the process."""
    return collections.Counter({(write(text), write(TEXTS[(n + 3) % len(TEXTS)][:15])): times for n, text in enumerate(TEXTS)})


def start(run, program):
    return run.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def hit(process, times):
    process.stdin.write(f"{times}\n".encode())
    wait_line(process)


def record(run, program):
    file = run.dir / "hostile.usdtrec"
    subprocess.run([run.tool, f"usdt:{program}:hostile:hit", "--ustack", "--print", "str(arg1), arg0", "--record", file, "--", program],
                   input=b"3\n", check=True, capture_output=True, timeout=60)
    return file


def replay(run, recording, *words):
    """The lines of JSON of a recording that is exported, too."""
    done = subprocess.run([run.tool, "--replay", recording, *words, "-f", "json", "-o", run.dir / "out.json"], capture_output=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]


def compare(found, what, times=3):
    check_equal(collections.Counter(found), expected(times), what)


@scenario
def events_have_all_texts_in_every_form(run):
    program = build(run)
    protobuf, other, house, forms = Collector(run), Collector(run), House(), run.dir
    lines = replay(run, record(run, program), "--print", "str(arg1), arg0", "--export", f"csv={forms}/out.csv", "--export",
                   f"perfetto={forms}/out.pftrace", "--export", f"otlp={protobuf.url}", "--export", f"otlp={other.url}?encoding=json",
                   "--export", f"clickhouse={house.url}")
    events = [line for line in lines if line["type"] == "event"]
    check_equal(sorted(event["args"][1] for event in events), list(range(3 * len(TEXTS))), "JSON")
    with open(forms / "out.csv", newline="") as file:
        compare([(row["str(arg1)"], row["comm"]) for row in csv.DictReader(file, strict=True)], "csv")
    drawing = draw(compiled(run.dir, "perfetto"), (forms / "out.pftrace").read_bytes())
    check_equal(collections.Counter(each.args["str(arg1)"] for each in drawing.instants),
                collections.Counter(text for text, _ in expected(3, shown).elements()), "perfetto")
    for collector in (protobuf, other):
        values = [attributes_of(log.attributes) for _, log in collector.logs()]
        compare([(each["str(arg1)"], each["thread.name"]) for each in values], "otlp")
        path = str(program).replace("\\", "\\\\").replace('"', '\\"')
        check_equal({each["usdt.probe"] for each in values}, {shown(os.fsencode(f'usdt:"{path}":hostile:hit'), "\\")}, "the file of the probe")
    compare([(row["args"]["str(arg1)"], row["comm"]) for row in house.rows["usdt_events"]], "clickhouse")


@scenario
def lines_for_people_have_all_texts(run):
    """Values, names of processes and keys; of keys those that are values are in quotes."""
    recording = record(run, build(run))
    lines = lambda *words: subprocess.run([run.tool, "--replay", recording, *words], capture_output=True, check=True,  # noqa: E731
                                          timeout=60).stdout.decode().splitlines()
    found = [tuple(line.split("\t")) for line in lines("--format-string", r"%{str(arg1)}\t%{comm}") if not line.startswith("    ")]
    check_equal(collections.Counter(found), expected(3, shown), "lines")
    rows = {line.split(maxsplit=1)[1].rstrip() if len(line.split()) > 1 else "" for line in lines("--by", "comm", "--top", "1000")[1:]}
    check_equal(rows, {comm.rstrip() for _, comm in expected(1, shown)}, "a table")


@scenario
def rows_have_all_texts_in_every_form(run):
    program = build(run)
    protobuf, other, house, forms = Collector(run), Collector(run), House(), run.dir
    replay(run, record(run, program), "--by", "str(arg1), comm", "--export", f"csv={forms}/out.csv", "--export",
           f"prometheus={forms}/out.prom", "--export", f"otlp={protobuf.url}", "--export", f"otlp={other.url}?encoding=json",
           "--export", f"clickhouse={house.url}")
    with open(forms / "out.csv", newline="") as file:
        check_rows({(row["str(arg1)"], row["comm"]): int(row["count"]) for row in csv.DictReader(file, strict=True)}, "csv")
    check_rows(rows_of(read_text((forms / "out.prom").read_bytes().decode())), "prometheus")
    for collector in (protobuf, other):
        points = collector.metrics()["usdt_row_hits"].sum.points
        check_rows({tuple(attributes_of(point.attributes)[name] for name in ("str_arg1", "comm")): point.as_int for point in points}, "otlp")
    check_rows({(row["keys"]["str(arg1)"], row["keys"]["comm"]): row["count"] for row in house.rows["usdt_tables"] if row["last"]}, "clickhouse")


def check_rows(rows, what, times=3):
    check_equal(rows, dict(expected(times)), what)


def rows_of(samples):
    """Those of a page, as its client library reads them."""
    return {(dict(labels).get("str_arg1", ""), dict(labels).get("comm", "")): value for labels, value in samples["usdt_row_hits_total"].items()}


@scenario
def a_page_has_all_texts_in_every_format(run):
    program = build(run)
    process, port = start(run, program), free_port()
    tracing = run.start(run.tool, f"usdt:{program}:hostile:hit", "--by", "str(arg1), comm", "-p", str(process.pid), "--listen", str(port), "-o",
                        run.dir / "shown", stderr=subprocess.PIPE)
    while b"attached" not in (line := tracing.stderr.readline()):
        check(line, "the trace ended")
    hit(process, 2)
    get = lambda accept: subprocess.run(["curl", "-sS", "-H", f"Accept: {accept}", f"http://127.0.0.1:{port}/metrics"],  # noqa: E731
                                        capture_output=True, check=True, timeout=30).stdout
    require_program("curl")
    wait_until(lambda: sum(rows_of(read_text(get("text/plain").decode())).values()) == 2 * len(TEXTS), "the page to have all hits")
    check_rows(rows_of(read_text(get("text/plain").decode())), "text", 2)
    check_rows(rows_of(read_open(get("application/openmetrics-text; version=1.0.0").decode())), "OpenMetrics", 2)
    families = read_protobuf(run, get("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"))
    name = next(name for name in families if name.startswith("usdt_row_hits"))
    check_rows({tuple(next(label.value for label in metric.label if label.name == key) for key in ("str_arg1", "comm")): metric.counter.value
                for metric in families[name].metric}, "protobuf", 2)
    tracing.send_signal(2)
    check_equal(tracing.wait(30), 0, "exit code")


@scenario
def stacks_have_names_of_functions_in_every_form(run):
    program = build(run)
    recording, forms = record(run, program), run.dir
    replay(run, recording, "--by", "ustack, comm", "--export", f"folded={forms}/out.folded", "--export", f"pprof={forms}/out.pb.gz",
           "--export", f"flame={forms}/out.html")
    name, hits = shown(os.fsencode(SYMBOL)), 3 * len(TEXTS)
    folded = (forms / "out.folded").read_text()
    found = [re.fullmatch(r"(.*) (\d+)", line) for line in folded.splitlines()]
    check(all(found), folded)
    check_equal(sum(int(each[2]) for each in found), hits, "hits of folded stacks")
    inner = collections.Counter(each[1].split(";")[-2] for each in found)
    check_equal(set(inner), {name.replace(";", ":")}, "the innermost function")
    profile = compiled(run.dir, "pprof").Profile.FromString(gzip.decompress((forms / "out.pb.gz").read_bytes()))
    text = profile.string_table
    check(name in text and any(shown(os.fsencode(str(program)), "\\") == each for each in text), f"{text}")
    names = collections.Counter()
    for sample in profile.sample:
        names[next(text[label.str] for label in sample.label if text[label.key] == "comm")] += sample.value[0]
    check_equal(names, collections.Counter({comm: count for (_, comm), count in expected(3, shown).items()}), "pprof's labels")


@scenario
def pages_for_browsers_have_all_texts_as_text(run):
    program = build(run)
    recording, forms = record(run, program), run.dir
    replay(run, recording, "--by", "ustack, comm", "--export", f"flame={forms}/flame.html")
    replay(run, recording, "--print", "str(arg1)", "--export", f"report={forms}/report.html")
    name = shown(os.fsencode(SYMBOL))
    page = Page(forms / "flame.html")
    names = set(page.value("flame.nodes.map(node => node.name)"))
    check_equal({text.replace(";", ":") for text in (name, *(comm for _, comm in expected(1, shown) if comm))} - names, set(), "names")
    check_equal(page.value("[document.querySelectorAll('b').length, document.scripts.length]")[0], 0, "elements that others would have made")
    page.close()
    page = Page(forms / "report.html", height=3000)
    tops = {top["name"]: top for top in page.value("JSON.parse(document.getElementById('data').textContent).tops")}
    check_equal({text: count for text, count, _ in tops["str(arg1)"]["rows"]},
                dict(collections.Counter(text for text, _ in expected(3, shown).elements())), "values")
    check("</script><b>&amp;" in page.value("document.getElementById('tables').textContent"), "they are shown as they are")
    check(name.replace(";", ":") in page.value("flame.nodes.map(node => node.name)"), "the function")
    page.close()


@scenario
def what_was_asked_is_a_text_of_others_too(run):
    """The names that metrics and columns have come from the question."""
    program = build(run)
    recording, forms = record(run, program), run.dir
    question = "arg0 + (str(arg1) == \"\udcff\u2028</script>\")"
    protobuf, other = Collector(run), Collector(run)
    replay(run, recording, "--sum", question, "--by", question, "--export", f"prometheus={forms}/out.prom", "--export", f"otlp={protobuf.url}",
           "--export", f"otlp={other.url}?encoding=json", "--export", f"csv={forms}/out.csv")
    total = sum(range(3 * len(TEXTS))) + 0
    check_equal(sum(read_text((forms / "out.prom").read_text())["usdt_summed"].values()), total, "prometheus")
    for collector in (protobuf, other):
        metric = collector.metrics()["usdt_summed"]
        check_equal(sum(point.as_int for point in metric.gauge.points), total, "otlp")
        check("\ufffdff\u2028</script>" in metric.description, metric.description)
    with open(forms / "out.csv", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    check("\ufffdff\u2028</script>" in "".join(rows[0]), rows[0])


if __name__ == "__main__":
    main()
