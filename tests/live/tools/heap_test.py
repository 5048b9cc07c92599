#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""libusdt-heap.so before a program's allocator, and the preset "heap" over it: events and sums are what the program says
that it did (heap.c)."""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario, wait_line, wait_until, with_long  # noqa: E402
from presets_support import asked  # noqa: E402

ALLOC, FREE = "otel_memory:alloc", "otel_memory:free"
LOGGED = 70000  # sizes from here on are in the program's log
KIB = 1024


def library(run):
    """Beside the tool in a tree of a build."""
    path = run.tool.parents[1] / "provider/heap/libusdt-heap.so"
    if not path.exists():
        raise Skip(f"{path.name} is not built")
    return path


class Heap:
    """heap.c with the library before its allocator: waits for orders."""

    def __init__(self, run, *argv, mean="0", preloaded=()):
        require_root()
        program = run.dir / "heap"
        if not program.exists():
            run.build("heap", [HERE / "heap.c"], ["-O1", "-g", "-pthread", "-fno-builtin"])
        names = [str(library(run)), *map(str, preloaded)]
        environment = {**os.environ, "LD_PRELOAD": " ".join(names), "USDT_HEAP_MEAN": mean}
        self.process = run.start(program, *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment)
        self.pid = self.process.pid
        check_equal(wait_line(self.process), "ready", "the program's first line")

    def order(self):
        self.process.stdin.write(b"x\n")

    def work(self, when_warm=lambda: None):
        """What it logs until it is done. It may stop in between, when what it keeps is as much as it will be."""
        self.order()
        lines = []
        while not lines or not lines[-1].startswith("done"):
            lines.append(wait_line(self.process, 120))
            if lines[-1] == "warm":
                when_warm()
                self.order()
        check_equal(lines.pop(), "done 0", "what the program says of itself")
        return lines

    def end(self):
        self.order()
        check_equal(self.process.wait(20), 0, "the program's end")


def trace(run, heap, probes, *options, questions=1, when_warm=lambda tracing: None):
    """Traces a waiting program while it works: the trace, and what the program said."""
    tracing = run.trace_start(probes, *options, "-p", heap.pid)
    wait_until(lambda: tracing.stderr().count("attached ") >= questions or not tracing.alive(), "attached")
    check(tracing.alive(), tracing.stderr())
    said = heap.work(lambda: when_warm(tracing))
    tracing.signal(signal.SIGINT)
    done = tracing.finish(120)
    done.check_code(0)
    return done, said


def totals(said):
    """'all 12 live 5': numbers by their words."""
    words = said[-1].split()
    return dict(zip(words[::2], map(int, words[1::2])))


def events_of(done):
    """What was reported, as the program logs it. What stdio and others allocate is not among it."""
    known, lines = set(), []
    for event in sorted(done.events, key=lambda event: event["ts"]):
        is_alloc, address = event["probe"].endswith(":alloc"), event["args"][0]
        if is_alloc and event["args"][1] >= LOGGED:
            check_equal(event["args"][2], event["args"][1], "what an allocation stands for where each one is chosen")
            known.add(address)
            lines.append(f"alloc {address} {event['args'][1]}")
        elif not is_alloc and address in known:
            known.remove(address)
            lines.append(f"free {address}")
    return lines


@scenario
def each_way_to_allocate_is_an_event_and_so_is_each_way_to_free(run):
    heap = Heap(run, "each_way")
    done, said = trace(run, heap, [ALLOC, FREE])
    heap.end()
    check(sum(done.summary["lost"].values()) == 0, f"lost: {done.summary}")
    # Of the last one the program says nothing but that errno is what it was.
    check_equal([line for line in events_of(done) if line.split()[-1] != "70023"][:len(said)], said, "events")


@scenario
def arguments_are_where_functions_have_theirs(run):
    """Consumers that read registers, not notes, find them there (otel_memory, version 1)."""
    machine = os.uname().machine
    registers = {"x86_64": ["rdi", "rsi", "rdx"], "aarch64": ["x0", "x1", "x2"]}.get(machine)
    if not registers:
        raise Skip(f"this machine is {machine}")
    notes = subprocess.run(["readelf", "-n", library(run)], capture_output=True, text=True, check=True).stdout
    for name, count in (("alloc", 3), ("free", 1)):
        note = notes[notes.index(f"Name: {name}\n"):]
        operands = note[note.index("Arguments: ") + 11:].splitlines()[0].split()
        check_equal([operand.removeprefix("8@").removeprefix("%") for operand in operands], registers[:count], name)


@scenario
def a_child_reports_nothing_of_what_its_parent_reported(run):
    heap = Heap(run, "forks")
    done, _ = trace(run, heap, [ALLOC, FREE], "--children")
    heap.end()
    of_parent = [event for event in done.events if event["pid"] == heap.pid]
    of_children = [event for event in done.events if event["pid"] != heap.pid]
    lines = {True: [], False: []}
    for events, mine in ((of_parent, True), (of_children, False)):
        reported = set()
        for event in sorted(events, key=lambda event: event["ts"]):
            if event["probe"].endswith(":alloc"):
                reported.add(event["args"][0])
                lines[mine] += [event["args"][1]] if event["args"][1] >= LOGGED else []
            else:
                check(event["args"][0] in reported, f"freed in {event['pid']} and not reported there: {event}")
                reported.remove(event["args"][0])
    check_equal(sorted(lines[True]), list(range(71000, 71100)), "the parent's")
    check_equal(sorted(lines[False]), [72000, 72001], "the children's, by fork() and by clone()")


def summed(run, heap, what):
    """The sum of what is reported, and its standard error, beside what the program allocated. A weight is 1/p times the
    size, so that w * (w - size) is an unbiased estimate of the variance (Horvitz and Thompson, 1952, for independent
    choices), which two traces of one run would not see alike: both numbers are from the same events."""
    done, said = trace(run, heap, [ALLOC])
    check(sum(done.summary["lost"].values()) == 0, f"lost: {done.summary}")
    pairs = [event["args"][1:3] for event in done.events]
    weights = sum(weight for _, weight in pairs)
    error = math.sqrt(sum(weight * (weight - size) for size, weight in pairs))
    check(abs(weights - totals(said)["all"]) <= 4 * error,
          f"{what}: {weights} bytes by {len(pairs)} samples for {totals(said)['all']}, standard error {error:.0f}")


@scenario
def what_threads_allocate_and_others_free_is_summed_without_bias(run):
    heap = Heap(run, "threads", mean="1M")
    summed(run, heap, "8 threads")
    heap.end()
    heap = Heap(run, "threads", mean="1M")
    done, _ = trace(run, heap, "--preset=heap.live")
    heap.end()
    live = sum(row["count"] for row in table_of(done, "live")["rows"])
    check(live <= 2, f"all was freed, and {live} samples are in flight")  # of stdio and of threads' own memory


@scenario
def signal_handlers_may_allocate_at_any_place(run):
    allocator = run.build("next.so", [HERE / "heap_next.c"], ["-O1", "-fno-builtin", "-shared", "-fPIC", "-Wl,-Bsymbolic"])
    heap = Heap(run, "signals", mean="256K", preloaded=[allocator])
    summed(run, heap, "handlers")
    heap.end()


@scenario
def symbols_may_be_looked_up_by_what_allocates(run):
    lookup = run.build("dlsym.so", [HERE / "heap_dlsym.c"], ["-O1", "-shared", "-fPIC"])
    heap = Heap(run, "each_way", preloaded=[lookup])
    done, said = trace(run, heap, [ALLOC, FREE])
    heap.end()
    check_equal(events_of(done)[:len(said)], said, "events")


@scenario
def the_library_may_be_opened_and_closed_by_a_program(run):
    heap = Heap(run, "opens", "1", library(run))
    trace(run, heap, [ALLOC])
    heap.end()
    program = [run.dir / "heap", "opens", "1", library(run)]
    alone = run.start(*program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    alone.stdin.write(b"x\n")
    lines = [wait_line(alone), wait_line(alone)]
    check_equal(lines, ["ready", "done 0"], "without it from the beginning")
    alone.stdin.write(b"x\n")
    check_equal(alone.wait(20), 0, "the program's end")


@scenario
def programs_of_the_distribution_run_with_it_and_are_traced_from_their_start(run):
    """The environment of the trace is the command's: libraries that it has opened first are found there."""
    require_root()
    environment = {**os.environ, "LD_PRELOAD": str(library(run)), "USDT_HEAP_MEAN": "64K"}
    code = "import threading, json; all = [bytes(100000) for n in range(500)]; print(len(all))"
    done = run.trace([ALLOC, FREE], "--count", command=["/usr/bin/python3", "-c", code], env=environment)
    done.check_code(0)
    check("500" in done.stdout, done.describe())
    counts = {probe["probe"].rsplit(":", 1)[1]: probe["hits"] for probe in done.summary["probes"]}
    check(counts["alloc"] >= 300 and counts["free"] >= 300, f"of 500 of 100,000 bytes by a mean of 64 KiB: {counts}")


@scenario
def what_is_freed_while_the_trace_is_attached_is_not_in_flight(run):
    heap = Heap(run, "churn")
    heap.order()
    for _ in range(with_long(30, 4)):
        done = run.trace("--preset=heap.live", "-p", heap.pid, "-d", "0.3")
        done.check_code(0)
        count = sum(row["count"] for row in table_of(done, "live")["rows"])
        check(count <= 1, f"{count} allocations in flight of a program that has one at a time")


@scenario
def what_is_missing_is_said_and_what_can_be_asked_is_listed(run):
    require_root()
    without = run.start("/bin/sleep", "60")
    done = run.trace("--preset=heap.live", "-p", without.pid, "-d", "1")
    check(done.code != 0 and "LD_PRELOAD=*libusdt-heap.so* in its environment" in done.stderr, done.describe())
    heap = Heap(run, "churn")
    listed = subprocess.run([run.tool.with_name("usdt-list"), "--presets", "-f", "json", "-p", str(heap.pid)],
                            capture_output=True, text=True, check=True).stdout
    states = {each["question"]: each["state"] for each in map(json.loads, listed.splitlines()) if each["preset"] == "heap"}
    check(len(states) == 8 and set(states.values()) == {"ready"}, f"{states}")
    done = run.trace("--preset=heap.live", "-p", heap.pid, "-d", "0.3")
    check("LD_PRELOAD" not in done.stderr, done.stderr)


def table_of(done, question, number=-1):
    return [each for each in done.records if each["type"] == "table" and each.get("question") == question][number]


@asked("heap.live")
@scenario
def live_memory_is_within_its_bound(run):
    """In 95 of 100 runs, as the documents say: by three standard errors it is some 99.7."""
    runs, needed = with_long((100, 95), (10, 9))
    within = [0, 0, 0]
    for number in range(runs):
        heap = Heap(run, "estimates", number + 1, mean="64K")
        done, said = trace(run, heap, "--preset=heap.live")
        heap.end()
        rows = table_of(done, "live")["rows"]
        live = sum(row["sum"] for row in rows)
        error = math.sqrt(sum(row["error"] ** 2 for row in rows))
        off = abs(live - totals(said)["live"]) / error
        within = [count + (off <= errors) for count, errors in zip(within, (1, 2, 3))]
    print(f"within 1, 2, 3 standard errors: {within} of {runs} runs")
    check(within[2] >= needed, f"{within} of {runs}")
    check(runs < 100 or within[0] <= 90, f"the bound is too wide to mean anything: {within} of {runs}")


def functions_of(row):
    return [frame.get("function", "").split("+")[0] for frame in row["key"][0]]


@asked("heap.leaks")
@scenario
def a_planted_leak_is_ranked_first(run):
    for number in range(with_long(20, 3)):
        heap = Heap(run, "leaks", number + 1, mean="32K")
        done, _ = trace(run, heap, "--preset=heap.leaks")
        heap.end()
        first = table_of(done, "leaks")["rows"][0]
        check("leaks_it" in functions_of(first), f"run {number}: {first['count']} samples of {functions_of(first)}")


@asked("heap.growth")
@scenario
def what_grows_is_told_from_what_is_large(run):
    """From the first look on, when the cache is full and larger than what has leaked by then, the leak alone grows."""
    def wait_for_look(tracing):
        wait_until(lambda: '"type":"table"' in tracing.stdout(), "the first look")
    for number in range(with_long(20, 3)):
        heap = Heap(run, "leaks", number + 1, mean="16K")
        done, _ = trace(run, heap, "--preset=heap.growth", when_warm=wait_for_look)
        heap.end()
        first, last = ({functions_of(row)[3]: row for row in table_of(done, "growth", look)["rows"]} for look in (0, -1))
        check(first["caches_it"]["sum"] > first["leaks_it"]["sum"], f"run {number}: what is large: {first}")
        grown = {name: row["growth"] for name, row in last.items()}
        check_equal(functions_of(table_of(done, "growth")["rows"][0])[3], "leaks_it", f"run {number}: the first row, of {grown}")
        for name, row in last.items():
            check_equal(row["growth"], row["sum"] - first.get(name, {"sum": 0})["sum"], f"run {number}: growth of {name}")


@scenario
def what_was_never_freed_is_known_when_the_program_ends(run):
    """Of a command, and of a process that ends while it is traced; for how long is as of its end."""
    def check_kept(done, said):
        done.check_code(0)
        check("live: libusdt-heap.so takes a sample for about each 512 KiB, or as USDT_HEAP_MEAN says" in done.stderr, done.stderr)
        kept = [row for row in table_of(done, "live")["rows"] if "leaks_it" in functions_of(row)]
        check_equal([(row["count"], row["sum"]) for row in kept], [(300, totals(said)["kept"])], "what it kept")
        check(all("main" in functions_of(row) for row in kept), f"the whole stack: {kept}")
        check("passes_it" not in str(table_of(done, "live")["rows"]), "what was freed")
        oldest = [each for each in done.records if each["type"] == "in_flight"][-1]["events"]
        check("leaks_it" in str(oldest[0]) and 0 < oldest[0]["duration_ns"] < 0.5e9, f"the oldest: {oldest[0]}")
        for summary in (each for each in done.records if each["type"] == "summary"):
            begins = next(probe for probe in summary["probes"] if "paired" in probe)
            check(begins["in_flight"] >= 300 and begins["lost"]["abandoned"] == 0, f"the account: {begins}")

    heap = Heap(run, "keeps")
    environment = {**os.environ, "LD_PRELOAD": str(library(run)), "USDT_HEAP_MEAN": "0"}
    done = run.trace("--preset=heap.live,oldest", command=[run.dir / "heap", "keeps", "alone"], env=environment)
    check_kept(done, [line for line in done.stdout.splitlines() if line.startswith("kept")])
    tracing = run.trace_start("--preset=heap.live,oldest", "-p", heap.pid)
    wait_until(lambda: tracing.stderr().count("attached ") >= 2 or not tracing.alive(), "attached")
    said = heap.work()
    heap.end()
    check_kept(tracing.finish(), said)


@asked("heap.live,allocated,oldest,lifetimes,sizes,left-out")
@scenario
def who_allocates_how_long_it_lives_and_of_what_size_is_answered(run):
    heap = Heap(run, "leaks", 1, mean="128K")
    done, _ = trace(run, heap, "--preset=heap.live,allocated,oldest,lifetimes,sizes,left-out", questions=6)
    heap.end()
    lost = [probe["lost"] for each in done.records if each["type"] == "summary" for probe in each["probes"]]
    check(all(sum(each.values()) == 0 for each in lost), f"lost: {lost}")
    allocated = table_of(done, "allocated")["rows"]
    check("passes_it" in functions_of(allocated[0]), f"who allocates most: {functions_of(allocated[0])}")
    check(abs(allocated[0]["sum"] - 40000 * 20000) <= 4 * allocated[0]["error"], f"bytes of it: {allocated[0]}")
    check(0 < allocated[0]["error"] < 0.02 * 40000 * 20000, f"the bound means something: {allocated[0]}")
    oldest = [each for each in done.records if each["type"] == "in_flight"][-1]["events"]
    durations = [event["duration_ns"] for event in oldest]
    check(len(oldest) == 20 and durations == sorted(durations, reverse=True), f"the oldest: {durations}")
    check(all("leaks_it" in str(event) or "caches_it" in str(event) for event in oldest), f"the oldest: {oldest}")
    buckets = {each["first"]: each["count"] for each in table_of(done, "sizes")["rows"][0]["buckets"]}
    check(max(buckets, key=buckets.get) == 16384, f"most samples are of 20,000 bytes: {buckets}")
    check(table_of(done, "lifetimes")["rows"][0]["count"] > 1000, "lifetimes")
    check_equal(table_of(done, "left-out")["rows"], [], "none was left out")


if __name__ == "__main__":
    main()
