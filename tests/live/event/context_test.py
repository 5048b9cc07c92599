#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The trace and span that threads work for: hits have those that the thread itself tells its probe."""

import collections
import contextlib
import copy
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "export"))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from collector import Collector  # noqa: E402
from context_program import EARLY, FORMS, Log, build, build_first_thread, check_first_thread, check_hits, is_opened  # noqa: E402
from harness import LONG, check, check_equal, main, require_m32, require_root, scenario  # noqa: E402

ROOM = pathlib.Path(__file__).resolve().parent
THREADS = 4
HITS = 250_000 if LONG else 5_000  # of each thread


class Writer:
    def __init__(self, run, form, machine=(), threads=THREADS):
        self.dir, self.threads = run.dir, threads
        self.log = run.dir / "log"
        self.program = build(run.dir, form, ["gcc", *machine, "-idirafter", "/usr/include/x86_64-linux-gnu"])
        self.start(run)

    def start(self, run):
        self.process = run.adopt(subprocess.Popen([self.program, str(self.threads), self.log], cwd=run.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0))
        check_equal(self.process.stdout.readline(), b"ready\n", "its first line")

    def another(self, run):
        """Another process of the program."""
        made = copy.copy(self)
        made.log = run.dir / "log of another"
        made.start(run)
        return made

    def tell(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        check_equal(self.process.stdout.readline(), b"done\n", "its answer")


class Trace:
    def __init__(self, run, writer, *options, points=None, pid=None, listed="arg0, arg1, trace_id, span_id", file="answers"):
        require_root()
        self.file = run.dir / file
        argv = [run.tool, points or f"usdt:{writer.program}:writer:*", *(["--print", listed] if listed else []), "-f", "json", "-o", self.file,
                "--ring-size", "512" if LONG else "32", *options]
        if pid is None:
            argv += ["-p", str(writer.process.pid)]
        self.process = run.adopt(subprocess.Popen([str(word) for word in argv], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL))
        self.said = ""
        while "attached " not in self.said:
            line = self.process.stderr.readline()
            check(line != "", f"the trace ended\n{self.said}")
            self.said += line

    def events(self):
        return self.spans()

    def spans(self):
        """Events of calls and spans, too."""
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=60)[1]
        check_equal(self.process.returncode, 0, self.said)
        answers = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [each for each in answers if each["type"] in ("event", "span")]


def traced(run, form, machine=()):
    writer = Writer(run, form, machine)
    if is_opened(form):
        writer.tell(1)
    trace = Trace(run, writer)
    writer.tell(HITS)
    check_hits(trace.events(), writer.log, THREADS * HITS)


@scenario
def hits_have_the_context_of_their_thread_in_every_form_of_variable(run):
    require_root()
    for form in FORMS:
        traced(run, form)


@scenario
def hits_of_i386_have_it_too(run):
    require_m32()
    for form in ("program", "library", "opened library", "library with descriptors"):
        traced(run, form, ["-m32"])


@scenario
def a_library_that_is_opened_later_is_found(run):
    """A hit before is of no trace; those at once after it opens are not taken for such, and a look later all are known."""
    writer = Writer(run, "opened library")
    trace = Trace(run, writer)
    hits = 0
    for _ in range(100):
        writer.tell(10)
        hits += THREADS * 10
        time.sleep(0.1)
        last = trace.file.read_text().splitlines()[-1:]
        if last and EARLY not in last[0]:
            break
    writer.tell(100)
    events = trace.events()
    check_hits(events, writer.log, hits + THREADS * 100, unknown=hits)


@scenario
def a_library_that_is_opened_again_has_it_elsewhere(run):
    writer = Writer(run, "opened library")
    writer.tell(1)
    trace = Trace(run, writer)
    for _ in range(5):
        writer.tell(50)
        writer.tell("closed and opened")
    writer.tell(50)
    check_hits(trace.events(), writer.log, THREADS * 300)


@scenario
def it_costs_little_more_in_a_library_once_it_was_found(run):
    """On the way to a library's variable there is one word to read, once it was found, and not three. Costs are by the kernel's
    statistics, in turn, the best of several: a busy machine adds to them."""
    added = {}
    with statistics_of_programs():
        for form in ("program", "opened library"):
            writer = Writer(run, form, threads=1)
            writer.tell(1)
            costs = [[cost_of_hits(run, writer, listed) for listed in ("trace_id", "arg0")] for _ in range(7)]
            with_it, without = (min(each) for each in zip(*costs))
            added[form] = with_it - without
    print({form: f"{cost:.0f} ns" for form, cost in added.items()})
    check(added["opened library"] < 2 * added["program"], f"ns of a hit: {added}")


@contextlib.contextmanager
def statistics_of_programs():
    setting = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = setting.read_text()
    setting.write_text("1")
    try:
        yield
    finally:
        setting.write_text(before)


def cost_of_hits(run, writer, listed):
    """ns of the tracer's programs for a hit."""
    trace = Trace(run, writer, listed=listed)
    writer.tell(10)

    def spent():
        texts = []
        for file in pathlib.Path(f"/proc/{trace.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                texts.append(file.read_text())
        found = {tuple(re.search(rf"{word}:\s+(\d+)", text)[1] for word in ("prog_id", "run_time_ns", "run_cnt")) for text in texts if "run_time_ns" in text}
        return sum(int(time) for _, time, _ in found), sum(int(count) for _, _, count in found)
    before = spent()
    writer.tell(5_000)
    after = spent()
    trace.events()
    check_equal(after[1] - before[1], writer.threads * 5_000, "hits by the kernel's count")
    return (after[0] - before[0]) / (after[1] - before[1])


@scenario
def processes_that_are_forked_have_theirs_from_the_first_hit(run):
    writer = Writer(run, "program")
    trace = Trace(run, writer, "--children")
    writer.tell(1)
    writer.tell("fork")
    time.sleep(0.3)
    forked = [event for event in trace.events() if event["probe"].endswith("forked")]
    check_equal([event["args"][2:] for event in forked], [[f"{n:016x}{77:016x}", f"{2 * n + 1:016x}"] for n in range(50)], "hits of the child")


@scenario
def another_library_in_the_same_place_is_not_taken_for_it(run):
    """A process that was forked before the library came opens another one, whose variable looks as if it were that."""
    writer = Writer(run, "opened library")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-DVARIABLE=another", "-DLARGE=30000", "-o", run.dir / "libother.so", ROOM / "context_library.c"], check=True)
    writer.tell("other")
    writer.tell(1)
    trace = Trace(run, writer, "--children")
    writer.tell("go")
    shown = [event["args"][2] for event in trace.events() if event["probe"].endswith("forked")]
    check_equal(len(shown), 50, "hits of the child")
    check_equal([each for each in shown if each not in ("", {"error": EARLY})], [], "what it works for")
    check_equal(shown[-1], "", "the last one, which is known")


@scenario
def a_program_that_is_executed_later_is_not_taken_for_the_one_before(run):
    """Of everybody: what came before it was looked at says so, and nothing is false."""
    writer = Writer(run, "opened library with descriptors")
    trace = Trace(run, writer, pid=0)
    writer.tell(50)
    time.sleep(0.3)
    writer.tell(50)
    check_hits(trace.events(), writer.log, THREADS * 100, unknown=THREADS * 50)


@scenario
def a_first_thread_has_it_before_it_has_waited(run):
    """The program is executed again and again, where no variable is where that of the program before was."""
    require_root()
    for form in ("program", "static program"):
        program, log = build_first_thread(run.dir, form), run.dir / f"{form}.log"
        result = run.trace(f"usdt:{program}:writer:*", "--print", "arg0, arg1, trace_id, span_id", command=[program, log, 5, 200])
        result.check_code(0)
        check_first_thread(result.events, log, knows_at_once=True)


@scenario
def recordings_have_it(run):
    writer = Writer(run, "program")
    recorded = Trace(run, writer, "--record", run.dir / "contexts.rec")
    writer.tell(100)
    before = recorded.events()
    check_hits(before, writer.log, THREADS * 100)
    done = subprocess.run([run.tool, "--replay", run.dir / "contexts.rec", "--print", "arg0, arg1, trace_id, span_id", "-f", "json"], capture_output=True, text=True, check=True)
    replayed = [each for each in map(json.loads, done.stdout.splitlines()) if each["type"] == "event"]
    check_equal([each["args"] for each in replayed], [each["args"] for each in before], "what is replayed")


@scenario
def filters_and_keys_are_about_it(run):
    """One number is asked for, and those who work for none; tables have rows of traces, also of calls and spans."""
    writer = Writer(run, "opened library")
    writer.tell(1)
    hits = 60

    def answers(*options, listed="arg0, arg1"):
        trace = Trace(run, writer, *options, listed=listed)
        writer.tell(hits)
        trace.events()
        return [json.loads(line) for line in trace.file.read_text().splitlines()]
    of_trace = [each["args"][:2] for each in answers("--where", f'trace_id == "{8:016x}{2:016x}" || span_id == "{2 * 9 + 1:016X}"') if each["type"] == "event"]
    check_equal(sorted(of_trace), [[8, 2], [9, 0], [9, 1], [9, 2], [9, 3]], "hits of a trace, and of spans")
    first = 1 + hits
    none = [each["args"][:2] for each in answers("--where", 'trace_id == "" && arg1 == 1') if each["type"] == "event"]
    check_equal(none, [[n, 1] for n in range(first, first + hits) if n % 7 == 3], "hits of no trace")
    first += hits
    counted = answers("--by", "trace_id", "--where", f"arg0 >= {first + 5} && arg0 < {first + 25}", listed=None)
    log = Log(writer.log)
    told = [log.at(n, thread).shown[0] for thread in range(THREADS) for n in range(first + 5, first + 25)]
    table = [each for each in counted if each["type"] == "table"][-1]
    check_equal({row["key"][0]: row["count"] for row in table["rows"]}, collections.Counter(each for each in told if isinstance(each, str)), "rows of traces")


@scenario
def questions_have_answers_about_processes_that_began_later(run):
    """No event of theirs comes before it is known where they have it: the kernel tells whom it was asked about."""
    require_root()
    first = Writer(run, "library")
    trace = Trace(run, first, "--where", f'trace_id == "{50:016x}{1:016x}"', pid="any")
    table = Trace(run, first, "--by", "trace_id", "--where", "arg0 == 50", pid="any", listed=None, file="table")
    later = first.another(run)
    for _ in range(2):
        later.tell(5)  # hits that have no answer yet
        time.sleep(0.5)
    later.tell(60)
    check_equal([event["args"][:2] for event in trace.events()], [[50, 1]], "hits")
    table.events()
    rows = [json.loads(line) for line in table.file.read_text().splitlines() if '"table"' in line][-1]["rows"]
    check_equal({row["key"][0]: row["count"] for row in rows}, {Log(later.log).at(50, thread).shown[0]: 1 for thread in range(THREADS)}, "rows")


@scenario
def calls_and_spans_have_that_of_their_beginning(run):
    writer = Writer(run, "program")
    for point, condition in ((f"ucall:{writer.program}:serve", f'trace_id == "{3:016x}{1:016x}"'),
                             (f"usdt:{writer.program}:writer:begins ~~ writer:ends", f'trace_id == "{3:016x}{1:016x}"')):
        for where in ([], ["--where", condition]):
            trace = Trace(run, writer, *where, points=point, listed="trace_id, span_id")
            writer.tell("serve")
            shown = [event["args"] for event in trace.spans()]
            everything = [[f"{n:016x}{1:016x}", f"{n:016x}"] for n in range(1, 6)]
            check_equal(shown, [everything[2]] if where else everything, f"{point} {where}")
        trace = Trace(run, writer, "--by", "span_id", points=point, listed=None)
        writer.tell("serve")
        trace.spans()
        table = [each for each in map(json.loads, trace.file.read_text().splitlines()) if each["type"] == "table"][-1]
        check_equal({row["key"][0]: row["count"] for row in table["rows"]}, {f"{n:016x}": 1 for n in range(1, 6)}, f"rows of {point}")


@scenario
def exports_have_it(run):
    """Logs of OpenTelemetry belong to the thread's span, and our spans are within it."""
    writer = Writer(run, "program")
    ids = [(f"{n:016x}{1:016x}", f"{n:016x}") for n in range(1, 6)]
    for encoding in ("", "?encoding=json"):
        for point, is_call in ((f"usdt:{writer.program}:writer:begins", False), (f"ucall:{writer.program}:serve", True)):
            collector = Collector(run)
            trace = Trace(run, writer, "--trace-context", "--export", f"otlp={collector.url}{encoding}", points=point, listed=None)
            writer.tell("serve")
            check_equal([(each["trace_id"], each["span_id"]) for each in trace.spans()], ids, "JSON")
            sent = [(each.trace_id.hex(), (each.parent_span_id if is_call else each.span_id).hex())
                    for _, each in (collector.spans() if is_call else collector.logs())]
            check_equal(sent, ids, f"{point}{encoding}")


@scenario
def hits_in_the_kernel_have_that_of_the_thread_that_entered_it(run):
    writer = Writer(run, "program")
    trace = Trace(run, writer, points="raw_tp:sys_enter")
    writer.tell(2)
    shown = {tuple(map(str, event["args"][2:])) for event in trace.events()}
    check(shown, "no events")
    check(all(not trace or len(trace) == 32 for trace, _ in shown), f"contexts: {shown}")


if __name__ == "__main__":
    main()
