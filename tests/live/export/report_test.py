#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reports, as a person sees them in a browser: counts, sums, percentiles and losses are those of the traced program and
of JSON, whatever is folded; search, zoom, hover and keys work, in both themes, without the network."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from browser import Page  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

EVIL = "</script><img src=x onerror=alert(1)>"  # a text that anybody may write

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const char *const kinds[] = {"get", "put", "EVIL", "two\nlines"};
__attribute__((noipa)) long inner(int number, const char *kind) {
  struct timespec pause = {0, number % 16 == 0 ? 3000000 : number % 4 == 0 ? 200000 : 1};
  if (number % 4 == 0) nanosleep(&pause, NULL);
  return number + (kind != NULL);
}
__attribute__((noipa)) long outer(int number) {
  long sum = 0;
  for (int i = 0; i < 3; i++) sum += inner(number * 3 + i, kinds[(number + i) % 4]);
  return sum;
}
static int times;
static void *work(void *of) {
  pthread_setname_np(pthread_self(), of == NULL ? "plain" : "</script><b>");
  for (int i = 0; i < times; i++) {
    outer(i);
    DTRACE_PROBE2(report, hit, i * i, kinds[i % 4]);
  }
  printf("thread %ld %d\n", (long)syscall(SYS_gettid), times);
  return NULL;
}
int main(int argc, char **argv) {
  times = atoi(argv[1]);
  if (argc > 2) {  /* many hits, slowly enough for the reader */
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < times; i++) {
      DTRACE_PROBE2(report, many, i % 1000, kinds[i % 2]);
      if (i % 1000 == 0) nanosleep(&pause, NULL);
    }
    return 0;
  }
  pthread_t threads[2];
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
""".replace("EVIL", EVIL)

TIMES = 80  # of each of two threads


def build(run):
    require_root()
    (run.dir / "report.c").write_text(PROGRAM)
    return run.build("report", [run.dir / "report.c"], ["-O1", "-g", "-pthread"])


def trace(run, *words, command=None):
    """The page, the lines of JSON, and what the program said. `words` are a question."""
    file = run.dir / "report.html"
    done = subprocess.run([run.tool, *words, "-f", "json", "-o", run.dir / "out.json", "--export", f"report={file}",
                           *(["--", *command] if command else [])], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    return file, [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()], done.stdout


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


def data_of(file):
    """The data that the page was given, without a browser."""
    text = file.read_text()
    begin = text.index(">", text.index('<script id="data"')) + 1
    return json.loads(text[begin:text.index("</script>", begin)])


def check_within(shown, numbers):
    """Percentiles of the page against those of all numbers, by their documented bound; all else is exact."""
    ordered = sorted(numbers)
    check_equal((shown["count"], shown["sum"], shown["min"], shown["max"]),
                (len(ordered), sum(ordered), ordered[0], ordered[-1]), "exact numbers")
    for name, permille in (("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)):
        exact = ordered[(len(ordered) * permille + 999) // 1000 - 1]
        check(exact <= shown[name] <= exact + exact // 16, f"{name}: {shown[name]}, not {exact} and up to 1/16 more")
    for low, high, count in shown["bars"]:
        check_equal(count, sum(low <= number <= high for number in ordered), f"numbers from {low} to {high}")
    check_equal(sum(bar[2] for bar in shown["bars"]), len(ordered), "all bars")


def heat_total(measure):
    return sum(sum(column[2::2]) for column in measure["heat"]["columns"])


def text_of(page, element):
    return page.value(f"document.getElementById({element!r}).textContent")


def measure_named(data, name):
    return next(measure for measure in data["measures"] if measure["name"] == name)


def short(name):
    return name.rpartition("/")[2].partition(":")[2]


@scenario
def calls_are_those_of_json_and_of_the_program(run):
    program = build(run)
    file, lines, said = trace(run, f"ucall:{program}:outer", f"ucall:{program}:inner", "--print", "number",
                              command=[program, str(TIMES)])
    data, events, summary = data_of(file), of_type(lines, "event"), of_type(lines, "summary")[0]
    told = {int(line.split()[1]): int(line.split()[2]) for line in said.splitlines()}
    check_equal(len(events), 4 * sum(told.values()), "calls that the program says")
    check_within(data["measures"][0], [event["duration_ns"] for event in events])
    for probe in data["probes"]:
        check_within(probe, [e["duration_ns"] for e in events if short(e["probe"]) == short(probe["name"])])
    check_equal({probe["name"].rpartition(":")[2]: probe["events"] for probe in data["probes"]},
                {"inner": 3 * sum(told.values()), "outer": sum(told.values())}, "events by probe")
    check_equal({tid: count for _, tid, _, count, _, _ in data["threads"]}, {tid: 4 * n for tid, n in told.items()}, "by thread")
    check_equal((data["ledger"]["hits"], data["ledger"]["events"], data["ledger"]["lost"]),
                (summary["hits"], summary["events"], sum(summary["lost"].values())), "the ledger")
    check_equal({name: value for name, role, value, _ in data["ledger"]["counts"] if role == "lost"}, summary["lost"], "losses")
    for measure in data["measures"]:  # there is one number
        check_equal(heat_total(measure), len(events), f"hits in the heat map of {measure['name']}")
    check_within(measure_named(data, "number"), [event["args"][0] for event in events])


@scenario
def a_page_shows_these_numbers(run):
    program = build(run)
    file, lines, _ = trace(run, f"ucall:{program}:outer", f"ucall:{program}:inner", "--print", "number", "--where", "number >= 3",
                           command=[program, str(TIMES)])
    events, summary = of_type(lines, "event"), of_type(lines, "summary")[0]
    page = Page(file)
    check(text_of(page, "tiles").startswith(f"{summary['hits']}hits{summary['events']}events0lost"), text_of(page, "tiles"))
    check(f"{len(events)} of {len(events)} events are shown one by one" in text_of(page, "notes"), text_of(page, "notes"))
    check(f"{summary['rejected']}rejected" in text_of(page, "reasons"), text_of(page, "reasons"))
    question = text_of(page, "question")
    check("wherenumber >= 3" in question and "valuesnumber" in question and f"ucall:{program}:outer" in question, question)
    check(text_of(page, "numbers").startswith(f"{len(events)}calls, spans"), text_of(page, "numbers"))
    shown = json.loads(page.value("""JSON.stringify(Array.from({length: spans.count}, (_, n) => [
        threads[spans.threads[n]].tid, probeName(spans.probes[n]), spans.begins[n], spans.durations[n], valuesOf(n)]))"""))
    first = min(event["ts"] for event in events)
    check_equal(collections.Counter((tid, short(probe), *rest) for tid, probe, *rest in shown),
                collections.Counter((e["tid"], short(e["probe"]), e["ts"] - first, e["duration_ns"], f"number={e['args'][0]}")
                                    for e in events), "events one by one")
    page.close()


@scenario
def values_of_hits_are_counted(run):
    program = build(run)
    file, lines, _ = trace(run, f"usdt:{program}:report:hit", "--print", "arg0, str(arg1)", command=[program, str(TIMES)])
    data, events = data_of(file), of_type(lines, "event")
    check_equal(len(events), 2 * TIMES, "hits")
    check_within(measure_named(data, "arg0"), [i * i for i in range(TIMES)] * 2)
    tops = {top["name"]: top for top in data["tops"]}
    check_equal({text: count for text, count, _ in tops["str(arg1)"]["rows"]},
                {"get": TIMES // 2, "put": TIMES // 2, EVIL: TIMES // 2, "two\\nlines": TIMES // 2}, "texts")
    check_equal((len(tops["arg0"]["rows"]), tops["arg0"]["others"]), (TIMES, 0), "different numbers")
    check("duration" not in [measure["name"] for measure in data["measures"]], "hits do not last")


@scenario
def rows_have_their_tables_and_histograms(run):
    program = build(run)
    calls = f"ucall:{program}:inner"
    file, lines, _ = trace(run, calls, "--latency", "--by", "tid, str(kind)", command=[program, str(TIMES)])
    table, data = of_type(lines, "table")[0], data_of(file)
    names = ("p50", "p90", "p99", "p99.9", "max", "total")
    for row, shown, histogram in zip(table["rows"], data["table"]["rows"], data["table"]["histograms"]):
        check_equal(shown[0], str(row["key"][0]), "thread")
        check_equal(shown[2:], [x for pair in zip(shown[2::2], [row["count"], *(row[name] for name in names)]) for x in pair], "numbers")
        check_equal([(low, high, count) for low, high, count, _ in histogram["bars"]],
                    [(bar["first"], bar["last"], bar["count"]) for bar in row["buckets"]], "its bars")
    check_equal((len(data["table"]["rows"]), data["table"]["more"]), (8, 0), "rows")
    file, lines, _ = trace(run, calls, "--heatmap", "number", "--interval", "0.1", command=[program, str(TIMES)])
    check_equal(sum(sum(column[3::2]) for column in data_of(file)["slices"]["columns"]), 6 * TIMES, "hits in slices")
    page = Page(file)
    check("hits in a cell" in text_of(page, "heat-legend"), "a legend")
    page.close()
    file, _, _ = trace(run, calls, f"ucall:{program}:outer", "--count", command=[program, str(TIMES)])
    check_equal({name.rpartition(":")[2]: count for name, _, count in data_of(file)["table"]["rows"]},
                {"inner": 6 * TIMES, "outer": 2 * TIMES}, "counts")
    file, lines, _ = trace(run, calls, "--slowest", "5", command=[program, str(TIMES)])
    check_equal(sorted(data_of(file)["spans"]["durations"]),
                sorted(event["duration_ns"] for event in of_type(lines, "slowest")[-1]["events"]), "the slowest")


@scenario
def stacks_are_a_flame_graph(run):
    program = build(run)
    for words in (["--ustack"], ["--by", "ustack"]):
        file, _, _ = trace(run, f"ucall:{program}:inner", *words, command=[program, str(TIMES)])
        page = Page(file)
        check_equal(page.value("flame.nodes.find(node => node.name === 'outer').total"), 6 * TIMES, f"calls from outer, {words}")
        page.press("/")
        page.type("^outer$")
        check(text_of(page, "where").startswith(f"1 frames match: {6 * TIMES} hits"), text_of(page, "where"))
        page.close()


@scenario
def texts_of_others_stay_text(run):
    program = build(run)
    evil = run.dir / "evil"
    subprocess.run(["objcopy", "--strip-debug", f"--redefine-sym=outer={EVIL.replace(' ', '')}", program, evil], check=True)
    file, _, _ = trace(run, f"ucall:{evil}:inner", "--ustack", "--print", "arg0, str(arg1)", command=[evil, str(TIMES)])
    page = Page(file, height=3000)
    check_equal(page.value("[document.images.length, document.scripts.length, document.querySelectorAll('b:not(.tile b)').length]"),
                [0, 3, 0], "elements that others would have made")
    tables = text_of(page, "tables")
    check(EVIL in tables and "</script><b>" in tables and "two\\nlines" in tables, "they are shown as they are")
    check(page.value("flame.nodes.some(node => node.name.startsWith('</script><img'))"), "a function's name, too")
    page.close()


# The middle of the fullest cell of the heat map, in pixels of the window.
CELL = """(() => {
  const canvas = document.getElementById('heat'), cell = heatCells.reduce((most, cell) => cell.value > most.value ? cell : most);
  canvas.scrollIntoView({block: 'center'});
  const edge = canvas.getBoundingClientRect();
  return {x: edge.left + (cell.begin + cell.end) / 2, y: edge.top + cell.y + heat.rowHeight / 2, count: cell.value,
          behind: eventsBehind(cell).length, left: edge.left + heatLeft, width: edge.width - heatLeft};
})()"""
# The middle of the longest span on the time line.
SPAN = """(() => {
  const canvas = document.getElementById('line');
  canvas.scrollIntoView({block: 'center'});
  const edge = canvas.getBoundingClientRect();
  let longest = 0;
  for (let n = 0; n < spans.count; ++n) if (spans.durations[n] > spans.durations[longest]) longest = n;
  const box = boxes.find(each => each.line.spans.includes(longest)), lane = box.line.lanes[box.line.spans.indexOf(longest)];
  const middle = spans.begins[longest] + spans.durations[longest] / 2;
  return {x: edge.left + lineLeft + (edge.width - lineLeft) * (middle - shown.from) / (shown.to - shown.from),
          y: edge.top + box.y + (lane + 0.5) * laneHeight, number: longest, duration: spans.durations[longest]};
})()"""


@scenario
def search_zoom_hover_and_keys_work(run):
    program = build(run)
    file, _, _ = trace(run, f"ucall:{program}:outer", f"ucall:{program}:inner", "--print", "number, str(kind)",
                       command=[program, str(TIMES)])
    page = Page(file, width=1200, height=900)
    cell = page.value(CELL)
    check_equal(cell["behind"], cell["count"], "all events of a cell are known")
    page.mouse("mouseMoved", cell["x"], cell["y"])
    tip = text_of(page, "tip")
    check(f": {cell['count']} event" in tip and tip.count("\n") >= 2 and "number=" in tip, f"the events behind a cell: {tip}")
    whole = page.value("shown.to - shown.from")
    page.click(cell["x"], cell["y"])
    check(page.value("shown.to - shown.from") < whole / 2, "a click zooms")
    check(f"{cell['count']} of them shown one by one" in text_of(page, "behind"), text_of(page, "behind"))
    page.press("Escape")
    check_equal(page.value("shown.to - shown.from"), whole, "all of it again")
    page.mouse("mousePressed", cell["left"] + 0.25 * cell["width"], cell["y"])
    page.mouse("mouseMoved", cell["left"] + 0.4 * cell["width"], cell["y"])
    page.mouse("mouseReleased", cell["left"] + 0.5 * cell["width"], cell["y"])
    check(abs(page.value("shown.from") / whole - 0.25) < 0.01 and abs(page.value("shown.to") / whole - 0.5) < 0.01, "a drag zooms")
    page.press("ArrowRight")
    check(abs(page.value("shown.from") / whole - 0.3125) < 0.01, "an arrow moves")
    page.press("-")
    page.press("Escape")
    span = page.value(SPAN)
    page.mouse("mouseMoved", span["x"], span["y"])
    tip = text_of(page, "tip")
    check(tip == page.value(f"describeSpan({span['number']})"), f"the longest span: {tip}")
    page.click(span["x"], span["y"])
    check_equal(page.value("chosen"), span["number"], "it is chosen")
    check(abs(page.value("shown.to - shown.from") / (1.2 * span["duration"]) - 1) < 0.01, "and as wide as the picture, nearly")
    page.press("Escape")
    page.press("/")
    page.type("outer")
    check_equal(page.value("wantedSpans.reduce((sum, each) => sum + each)"), 2 * TIMES, "spans that are found")
    check_equal(page.value("[...document.querySelectorAll('#tables section')].find(s => s.textContent.startsWith('Probes'))"
                           ".querySelectorAll('tbody tr').length"), 1, "probes that are found")
    page.press("Escape")
    check_equal(page.value("wantedSpans"), None, "no search any more")
    page.value("[...document.querySelectorAll('#tables tr.picks')].find(row => row.textContent.startsWith('ucall:outer')).click()")
    check_equal((page.value("measure.title"), page.value("measure.count")), ("duration of ucall:outer", 2 * TIMES), "a histogram")
    check(text_of(page, "numbers").startswith(f"{2 * TIMES}calls, spans"), text_of(page, "numbers"))
    page.close()


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    recording = run.dir / "out.usdtrec"
    file, _, _ = trace(run, f"ucall:{program}:outer", f"usdt:{program}:report:hit", "--ustack", "--print", "comm, tid", "--record",
                       recording, command=[program, str(TIMES)])
    live = data_of(file)
    file, _, _ = trace(run, "--replay", recording)
    again = data_of(file)
    check(recording.name in dict(again["question"])["recording"], again["question"])
    for data in (live, again):
        data.pop("question")
    check_equal(again, live, "all but the question")
    check_equal(live["spans"]["all"], 4 * TIMES, "events")


@scenario
def both_themes_and_all_widths_show_it(run):
    program = build(run)
    file, _, _ = trace(run, f"ucall:{program}:outer", f"ucall:{program}:inner", "--ustack", "--print", "number, str(kind)",
                       command=[program, str(TIMES)])
    for dark in (False, True):
        for width in (800, 1600):
            page = Page(file, width=width, height=1600, dark=dark)
            check_equal(page.value("document.documentElement.dataset.theme"), "dark" if dark else "light", "the theme")
            check(page.value("document.documentElement.scrollWidth") <= width, "nothing is beside the window")
            ink = page.value("(() => { const c = document.getElementById('heat'); const d = c.getContext('2d')"
                             ".getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")
            check(ink > 1000, f"{ink} pixels of the heat map are drawn")
            page.picture(run.dir / f"report-{width}-{'dark' if dark else 'light'}.png")
            page.close()


@scenario
def what_cannot_be_written_is_lost_and_said(run):
    program = build(run)
    done = subprocess.run([run.tool, f"ucall:{program}:inner", "-f", "json", "-o", run.dir / "out.json", "--export",
                           "report=/dev/full", "--", program, "5"], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("/dev/full: No space left on device" in done.stderr, done.stderr)
    summary = json.loads((run.dir / "out.json").read_text().splitlines()[-1])
    check_equal((summary["lost"]["not_written"], summary["events"]), (30, 0), "the ledger")


# The kernel counts what a child had before its exec, too: the parent has to be small.
SMALL_PARENT = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def most_memory(run, *words):
    """KiB that the tool had at most."""
    done = subprocess.run([sys.executable, "-S", "-c", SMALL_PARENT, run.tool, *words], capture_output=True, text=True, timeout=250)
    check_equal(done.returncode, 0, done.stderr)
    return int(done.stdout)


@scenario
def a_million_events_are_folded_into_a_page_that_opens_at_once(run):
    program = build(run)
    many, recording, file = 1_000_000, run.dir / "many.usdtrec", run.dir / "many.html"
    most_memory(run, f"usdt:{program}:report:many", "--print", "arg0, str(arg1)", "--ring-size", "256", "--record", recording,
                "--export", f"report={file}", "--", program, str(many), "many")
    data = data_of(file)
    ledger, numbers = data["ledger"], measure_named(data, "arg0")
    print(f"  {ledger['events']} events, {ledger['lost']} lost; {file.stat().st_size} bytes, {len(data['spans']['begins'])} one by one")
    check_equal((ledger["hits"], ledger["events"] + ledger["lost"]), (many, many), "hits")
    check(ledger["events"] > many / 2, "most of them have come")
    check_equal((data["spans"]["all"], numbers["count"], heat_total(numbers), sum(bar[2] for bar in numbers["bars"])),
                (ledger["events"],) * 4, "events that are counted")
    if ledger["lost"] == 0:
        check_within(numbers, [i % 1000 for i in range(many)])
    check(file.stat().st_size < 20e6, "its size")
    again = run.dir / "again.html"
    memory = [most_memory(run, "--replay", recording, "-M", str(most), "-f", "csv", "-o", "/dev/null", "--export", f"report={again}")
              for most in (600_000, many)]  # when much is folded already
    print(f"  {memory} KiB for 600,000 events and for all")
    check(20_000 < memory[1] < min(1.1 * memory[0], 200_000), "memory")
    check_equal(data_of(again)["measures"], data["measures"], "what the recording gives")
    loads = []
    while len(loads) < 3 and (not loads or min(loads) >= 2000):
        page = Page(file)
        loads.append(page.value("performance.getEntriesByType('navigation')[0].loadEventStart"))
        folded = f"{ledger['events'] - len(data['spans']['begins']):,} are folded"
        check(folded in text_of(page, "notes"), text_of(page, "notes"))
        page.close()
    print(f"  opened in {min(loads):.0f} ms")
    check(min(loads) < 2000, f"it takes {loads} ms to open")


if __name__ == "__main__":
    main()
