#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time lines for Perfetto, read by protoc and by the rules of its documents: the slices, instants, values and stacks are
those that the traced program says, and that JSON of the same trace has."""

import collections
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
import perfetto_reader  # noqa: E402
from messages import compiled  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void say(const char *what, long number, long begin) {
  printf("%s %ld %ld %ld %ld\n", what, (long)syscall(SYS_gettid), number, begin, now());
}
__attribute__((noipa)) long inner(int number) {
  usleep(200);
  return number * 3L;
}
__attribute__((noipa)) long outer(int number) {
  long sum = 0;
  for (int i = 0; i < 3; i++) {
    long begin = now();
    sum += inner(number * 10 + i);
    say("inner", number * 10 + i, begin);
  }
  return sum;
}
static const char *const texts[] = {"plain", "<b>\"&'", "two\nlines\x1b[31m", "\xff\xfe bad", "\xe2\x82\xac"};
static void *work(void *of) {
  for (int i = 0; i < 20; i++) {
    int number = (int)(long)of * 100 + i;
    long begin = now();
    outer(number);
    say("outer", number, begin);
    DTRACE_PROBE2(line, hit, number, texts[i % 5]);
  }
  return NULL;
}
int main(void) {
  pthread_t threads[2];
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  /* Requests that cross each other on one thread: 0 begins, 1 begins, 0 ends, 2 begins, 1 ends ... */
  for (volatile int i = 0; i < 50; i++) {
    DTRACE_PROBE1(line, begin, i);
    usleep(100);
    if (i > 0) DTRACE_PROBE1(line, end, i - 1);
  }
  return 0;
}
"""


def build(run):
    require_root()
    (run.dir / "line.c").write_text(PROGRAM)
    return run.build("line", [run.dir / "line.c"], ["-O1", "-g", "-pthread"])


def trace(run, *words):
    """What a viewer shows, the lines of JSON, and what the program said. The last of `words` is the command."""
    file = run.dir / "out.perfetto"
    done = subprocess.run([run.tool, *words[:-1], "-f", "json", "-o", run.dir / "out.json", "--export", f"perfetto={file}",
                           *words[-1]], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    lines = [json.loads(line) for line in (run.dir / "out.json").read_text().splitlines()]
    return perfetto_reader.draw(compiled(run.dir, "perfetto"), file.read_bytes()), lines, done.stdout


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


def as_shown(drawing, slices):
    return collections.Counter((*drawing.thread_of(s.track), s.name, s.begin, s.end - s.begin) for s in slices)


def as_in_json(lines):
    return collections.Counter((line["pid"], line["tid"], line["probe"].rpartition("/")[2].partition(":")[2],
                                line["ts"], line["duration_ns"]) for line in lines)


@scenario
def calls_are_slices_of_their_thread_within_those_that_call_them(run):
    program = build(run)
    drawing, lines, said = trace(run, f"ucall:{program}:outer", f"ucall:{program}:inner", ["--", program])
    told = [line.split() for line in said.splitlines()]
    check_equal(len(drawing.slices), len(told), "calls")
    expected = collections.Counter((name, int(tid), int(number)) for name, tid, number, _, _ in told)
    shown = collections.Counter((s.name.rpartition(":")[2], drawing.thread_of(s.track)[1], s.args["number"])
                                for s in drawing.slices)
    check_equal(shown, expected, "by function, thread and argument")
    for s in drawing.slices:
        check_equal(s.depth, 1 if s.name.endswith("inner") else 0, "an inner call is drawn within the outer one")
        check_equal(s.args["retval"], s.args["number"] * 3 if s.name.endswith("inner") else
                    sum(3 * (s.args["number"] * 10 + i) for i in range(3)), "what it returned")
    times = {(name, int(tid), int(number)): (int(begin), int(end)) for name, tid, number, begin, end in told}
    for s in drawing.slices:
        begin, end = times[s.name.rpartition(":")[2], drawing.thread_of(s.track)[1], s.args["number"]]
        check(begin <= s.begin < s.end <= end, f"{s} is not within {begin}..{end}, which the program saw")
    events = of_type(lines, "event")
    check_equal(collections.Counter((s.begin, s.end - s.begin) for s in drawing.slices),
                collections.Counter((e["ts"], e["duration_ns"]) for e in events), "times of JSON")
    check_equal(drawing.counters["lost"][-1][1], sum(of_type(lines, "summary")[0]["lost"].values()), "what was lost")
    threads = {(t.thread.pid, t.thread.tid) for t in drawing.tracks.values() if t.HasField("thread")}
    check_equal(threads, {(e["pid"], e["tid"]) for e in events}, "each thread has a track")


@scenario
def spans_that_cross_have_tracks_of_their_own(run):
    program = build(run)
    drawing, lines, _ = trace(run, f"usdt:{program}:line:begin ~~ usdt:{program}:line:end", "--pair-by", "arg0",
                              ["--", program])
    spans = of_type(lines, "span")
    check_equal(len(spans), 49, "spans")
    check_equal(collections.Counter((*drawing.thread_of(s.track), s.begin, s.end - s.begin, s.args["arg0"])
                                    for s in drawing.slices),
                collections.Counter((e["pid"], e["tid"], e["ts"], e["duration_ns"], e["args"][0]) for e in spans),
                "slices and spans")
    used = {s.track for s in drawing.slices}
    check_equal(len(used), 2, "tracks: never more than two of them at once")


HANDED_ON = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <unistd.h>
static long begun_by[60], ended_by[60];
static sem_t given[2];
static void *take(void *number) {
  for (long i = (long)number; i < 60; i += 3) {
    sem_wait(&given[(long)number - 1]);
    ended_by[i] = syscall(SYS_gettid);
    DTRACE_PROBE1(line, taken, i);
  }
  return NULL;
}
/* Of three jobs each the first is done by the thread that gives them, and the others by a thread of their own. */
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) sem_init(&given[i], 0, 0);
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, take, (void *)(i + 1));
  for (long i = 0; i < 60; i++) {
    begun_by[i] = ended_by[i] = syscall(SYS_gettid);
    DTRACE_PROBE1(line, given, i);
    usleep(100);
    if (i % 3)
      sem_post(&given[i % 3 - 1]);
    else
      DTRACE_PROBE1(line, taken, i);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (long i = 0; i < 60; i++) printf("%ld %ld %ld\n", i, begun_by[i], ended_by[i]);
  return 0;
}
"""


@scenario
def arrows_lead_from_spans_to_the_threads_that_ended_them(run):
    require_root()
    (run.dir / "handed.c").write_text(HANDED_ON)
    program = run.build("handed", [run.dir / "handed.c"], ["-O1", "-pthread"])
    question = [f"usdt:{program}:line:given ~~ usdt:{program}:line:taken", "--pair-by", "arg0"]
    drawing, lines, said = trace(run, *question, "--export", f"record={run.dir / 'handed.usdtrec'}", ["--", program])
    told = [tuple(map(int, line.split())) for line in said.splitlines()]
    check_equal(len(told), 60, said)
    spans = sorted((e["args"][0], e["tid"], e["ended_by"]["tid"]) for e in of_type(lines, "span"))
    check_equal(spans, told, "number, thread that began it and thread that ended it, in JSON")
    check(all(s.args["end.arg0"] == s.args["arg0"] for s in drawing.slices), "the argument of the end has its name")
    slices = {(s.begin, drawing.thread_of(s.track)[1]): (s.args["arg0"], s.end) for s in drawing.slices}
    arrows = []
    for begin, end in drawing.flows.values():
        number, slice_end = slices[begin.time, drawing.thread_of(begin.track)[1]]
        check_equal(end.time, slice_end, "the arrow ends where the span does")
        arrows.append((number, drawing.thread_of(begin.track)[1], drawing.thread_of(end.track)[1]))
    check_equal(sorted(arrows), [each for each in told if each[1] != each[2]], "arrows: of spans that go from thread to thread")
    again = run.dir / "again.perfetto"
    subprocess.run([run.tool, "--replay", run.dir / "handed.usdtrec", "--export", f"perfetto={again}"], check=True, capture_output=True, timeout=60)
    replayed = perfetto_reader.draw(compiled(run.dir, "perfetto"), again.read_bytes())
    check_equal(len(replayed.flows), len(arrows), "arrows of a replay")


@scenario
def hits_are_instants_with_their_texts(run):
    program = build(run)
    drawing, lines, _ = trace(run, f"usdt:{program}:line:hit", "--print", "arg0, str(arg1), comm", ["--", program])
    events = of_type(lines, "event")
    notices = [i for i in drawing.instants if drawing.tracks[i.track].name == "notices"]
    hits = [i for i in drawing.instants if i not in notices]
    check_equal((len(events), len(hits)), (40, 40), "hits")
    check("attached 1 site" in notices[0].name, notices)
    check_equal(notices[0].time, min(hit.time for hit in hits), "what was said before the first hit is drawn at it")
    texts = ["plain", "<b>\"&'", "two\\nlines\\x1b[31m", "\\xff\\xfe bad", "\u20ac"]
    for instant in hits:
        check_equal(instant.args["str(arg1)"], texts[instant.args["arg0"] % 100 % 5], "the text, without control characters")
        check_equal(instant.args["comm"], "line", "a word of questions")
    check_equal(sorted((i.time, i.args["arg0"]) for i in hits),
                sorted((e["ts"], e["args"][0]) for e in events), "times and values of JSON")


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    file = run.dir / "out.usdtrec"
    words = (f"ucall:{program}:inner", f"usdt:{program}:line:hit")
    live, _, _ = trace(run, *words, "--record", file, ["--", program])
    again = run.dir / "again.perfetto"
    subprocess.run([run.tool, "--replay", file, "--export", f"perfetto={again}"], check=True, capture_output=True, timeout=60)
    replayed = perfetto_reader.draw(compiled(run.dir, "perfetto"), again.read_bytes())
    for kind in ("slices", "instants"):
        shown = [sorted((*drawing.thread_of(one.track), *one[1:]) for one in getattr(drawing, kind)
                        if drawing.tracks[one.track].name != "notices") for drawing in (replayed, live)]
        check(len(shown[1]) >= 40, kind)
        check_equal(shown[0], shown[1], kind)
    check_equal(replayed.counters, live.counters, "losses")
    check(abs(replayed.wall_offsets[0] - live.wall_offsets[0]) < 10**6, "the time of day")


@scenario
def stacks_go_with_events(run):
    program = build(run)
    drawing, _, _ = trace(run, f"ucall:{program}:inner", "--ustack", ["--", program])
    for s in drawing.slices:
        names = [name for name in s.stack if name in ("work", "outer", "inner")]
        check_equal(names, ["work", "outer", "inner"], f"outermost first: {s.stack}")


@scenario
def what_cannot_be_written_is_lost_and_said(run):
    program = build(run)
    done = subprocess.run([run.tool, f"ucall:{program}:inner", "-f", "json", "-o", run.dir / "out.json", "--export",
                           "perfetto=/dev/full", "--", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("/dev/full: No space left on device" in done.stderr, done.stderr)
    summary = json.loads((run.dir / "out.json").read_text().splitlines()[-1])
    check(summary["lost"]["not_written"] > 0, summary)
    check_equal(summary["hits"], summary["events"] + sum(summary["lost"].values()), "the ledger")


@scenario
def a_tracer_that_is_killed_leaves_what_it_has_written(run):
    program = build(run)
    file = run.dir / "killed.perfetto"
    tracer = subprocess.Popen([run.tool, f"usdt:{program}:line:*", "-f", "json", "-o", "/dev/null", "--export",
                               f"perfetto={file}"], stderr=subprocess.PIPE, text=True)
    tracer.stderr.readline()
    until = time.monotonic() + 20
    while not (file.exists() and file.stat().st_size > 0):
        check(time.monotonic() < until, "nothing is written in 20 s")
        subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    tracer.kill()
    tracer.communicate(timeout=30)
    drawing = perfetto_reader.draw(compiled(run.dir, "perfetto"), file.read_bytes())
    check(len(drawing.instants) > 10, drawing.instants)


@scenario
def hits_of_a_sample_say_for_how_many_they_stand(run):
    program = build(run)
    drawing, lines, _ = trace(run, f"usdt:{program}:line:begin", "--sample", "1/4", ["--", program])
    hits = [i for i in drawing.instants if drawing.tracks[i.track].name != "notices"]
    check_equal(len(hits), len(of_type(lines, "event")), "hits")
    check_equal({hit.args["weight"] for hit in hits}, {4.0} if hits else set(), "the weight of each")


@scenario
def what_has_no_events_is_refused(run):
    for words in (["--count"], ["--by", "pid"], ["--latency"]):
        done = subprocess.run([run.tool, "usdt:/bin/true:a:b", *words, "--export", f"perfetto={run.dir / 'no'}"],
                              capture_output=True, text=True, timeout=30)
        check_equal(done.returncode, 2, done.stderr)
        check("time line" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
