#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Attributes of the requests that threads work for: hits have those that the thread itself tells its probe, by the names that
the process publishes in a message which protobuf's own library makes; and an error where that is not known."""

import collections
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "export"))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from collector import Collector, attributes_of  # noqa: E402
from harness import LONG, check, check_equal, main, require_root, scenario  # noqa: E402
from messages import compiled  # noqa: E402

ROOM = pathlib.Path(__file__).resolve().parent
KEYS = ["http.route", "user.id"]
LISTED = ", ".join(["arg0", "str(arg1)", "str(arg2)", *(f'trace_attribute("{key}")' for key in [*KEYS, "none"])])
CHANGING = {"error": "the thread was changing it"}
UNPUBLISHED = {"error": "the process does not say what its attributes are called"}
EARLY = {"error": "it was not known yet what the process calls it"}
UNNAMED = {"error": "the process does not say what it is called"}


class Writer:
    def __init__(self, run, program=None, provider="writer"):
        require_root()
        self.message = compiled(run.dir, "process_context", ROOM.parents[1] / "provider").ProcessContext
        self.program = program or run.dir / "writer"
        if not self.program.exists():
            subprocess.run(["gcc", "-O2", "-rdynamic", f"-DPROVIDER={provider}", "-idirafter", "/usr/include/x86_64-linux-gnu", "-o", self.program, ROOM / "attributes_writer.c"], check=True)
        self.process = run.adopt(subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0))
        check_equal(self.process.stdout.readline(), b"ready\n", "its first line")

    def tell(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        check_equal(self.process.stdout.readline(), b"done\n", "its answer")

    def encoded(self, keys, schema="tlsdesc_v1_dev"):
        message = self.message()
        message.resource.attributes.add(key="service.name").value.string_value = "shop"
        message.attributes.add(key="threadlocal.schema_version").value.string_value = schema
        names = message.attributes.add(key="threadlocal.attribute_key_map").value.array_value
        for key in keys:
            names.values.add(string_value=key)
        return message.SerializeToString()

    def publish(self, keys, **others):
        self.tell(f"publish {self.encoded(keys, **others).hex()}")


class Trace:
    def __init__(self, run, writer, *options, listed=LISTED, file="answers", points=None):
        """`points`: of whatever process has them, in place of the writer's."""
        self.file = run.dir / file
        whose = [points] if points else [f"usdt:{writer.program}:writer:works", "-p", str(writer.process.pid)]
        shown = ["--print", listed] if listed else []
        argv = [run.tool, *whose, *shown, "-f", "json", "-o", self.file, *options]
        self.process = run.adopt(subprocess.Popen([str(word) for word in argv], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL))
        self.said = ""
        while "attached " not in self.said:
            line = self.process.stderr.readline()
            check(line != "", f"the trace ended\n{self.said}")
            self.said += line

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=60)[1]
        check_equal(self.process.returncode, 0, self.said)

    def events(self):
        self.end()
        return [each for each in self.answers() if each["type"] == "event"]

    def answers(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def summary(self):
        return self.answers()[-1]


def wanted(n, route, user):
    return [CHANGING] * 3 if n % 9 == 4 else [route, user, ""]


def check_hits(events, begin, end):
    """Each is what its thread told."""
    wrong = []
    for event in events:
        n, route, user, *shown = event["args"]
        if shown != wanted(n, route, user):
            wrong.append((event["args"], wanted(n, route, user)))
    check_equal(wrong[:3], [], f"{len(wrong)} wrong of {len(events)}")
    check_equal([event["args"][0] for event in events], list(range(begin, end)), "hits")


@scenario
def hits_have_the_attributes_of_their_thread(run):
    hits = 100_000 if LONG else 5_000
    writer = Writer(run)
    writer.publish(KEYS)
    trace = Trace(run, writer, "--ring-size", "512")
    writer.tell(f"work {hits}")
    check_hits(trace.events(), 0, hits)


def reference_rows(events):
    """(number, route, user) of hits whose attributes are known, and the numbers of the others."""
    rows = [event["args"][:3] for event in events]
    return [row for row in rows if row[0] % 9 != 4], [row[0] for row in rows if row[0] % 9 == 4]


def account_of(result):
    return {key: result[key] for key in ("hits", "events", "rejected", "undecided")}


@scenario
def hits_are_chosen_by_attributes(run):
    """What the kernel decides of the condition it does, wherever it stands; all else is asked of events."""
    writer = Writer(run)
    writer.publish(KEYS)
    everything = Trace(run, writer)
    some = Trace(run, writer, "--where", 'trace_attribute("http.route") =~ "/r/*" && arg0 >= 20 && trace_attribute("user.id") != "user-21"',
                 file="some")
    writer.tell("work 200")
    known, unknown = reference_rows(everything.events())
    wanted_rows = [row for row in known if row[0] >= 20 and row[1].startswith("/r/") and row[2] != "user-21"]
    check(10 < len(wanted_rows) < 180, f"{len(wanted_rows)} of 200")
    check_equal([event["args"][:3] for event in some.events()], wanted_rows, "hits")
    undecided = sum(number >= 20 for number in unknown)
    check_equal(account_of(some.summary()), {"hits": 200, "events": len(wanted_rows), "undecided": undecided,
                                             "rejected": 200 - len(wanted_rows) - undecided}, "account")


@scenario
def of_those_that_come_too_late_it_is_counted_which_were_meant(run):
    writer = Writer(run)
    writer.publish(KEYS)
    everything = Trace(run, writer)
    first = Trace(run, writer, "--where", 'trace_attribute("http.route") == "/r/3ä"', "--max-events", "3", file="first")
    writer.tell("work 200")
    known, unknown = reference_rows(everything.events())
    meant = [row for row in known if row[1] == "/r/3ä"]
    first.process.wait(timeout=60)
    check_equal([event["args"][:3] for event in first.events()], meant[:3], "hits")
    summary = first.summary()
    check_equal(summary["hits"], summary["events"] + summary["rejected"] + summary["undecided"] + summary["lost"]["discarded"], "account")
    if summary["hits"] == 200:  # all were there before it was detached
        check_equal((summary["lost"]["discarded"], summary["undecided"]), (len(meant) - 3, len(unknown)), "those that came later")


@scenario
def tables_have_attributes_for_keys(run):
    writer = Writer(run)
    writer.publish(KEYS)
    everything = Trace(run, writer)
    table = Trace(run, writer, "--by", 'trace_attribute("http.route"), arg0 % 2', "--sum", "arg0", "--where", 'trace_attribute("user.id") != ""',
                  listed=None, file="table")
    writer.tell("work 200")
    known, unknown = reference_rows(everything.events())
    wanted_rows = {}
    for number, route, user in known:
        if user:
            count, total = wanted_rows.get((route, number % 2), (0, 0))
            wanted_rows[route, number % 2] = (count + 1, total + number)
    table.events()
    rows = next(each["rows"] for each in table.answers() if each["type"] == "table")
    check_equal({tuple(row["key"]): (row["count"], row["sum"]) for row in rows}, wanted_rows, "rows")
    counted = sum(count for count, _ in wanted_rows.values())
    check_equal(account_of(table.summary()), {"hits": 200, "events": counted, "undecided": len(unknown),
                                              "rejected": 200 - counted - len(unknown)}, "account")


@scenario
def what_has_no_events_is_refused_with_the_reason(run):
    writer = Writer(run)
    for option, why in (("--count", "--by probe counts them"), ("--in-flight", "does not know attributes")):
        done = subprocess.run([run.tool, f"ucall:{writer.program}:main", "-p", str(writer.process.pid), option, "--where",
                               'trace_attribute("user.id") == "anna"'], capture_output=True, text=True, check=False)
        check(done.returncode != 0 and why in done.stderr, f"{option}: {done.returncode}\n{done.stderr}")


@scenario
def pairs_by_attributes_and_recordings_without_them_are_refused_with_the_reason(run):
    writer = Writer(run)
    recorded = run.dir / "without.rec"
    trace = Trace(run, writer, "--record", recorded, listed="arg0")
    writer.tell("work 3")
    trace.end()
    begin, end = (f"{kind}:libc.so.6:write" for kind in ("uprobe", "uretprobe"))
    for words, why in (([f"{begin} ~~ {end}", "-p", str(writer.process.pid), "--pair-by", 'trace_attribute("a")'], "is asked of events"),
                       (["--replay", recorded, "--where", 'trace_attribute("a") == "b"'], "--trace-attributes has it"),
                       (["--replay", recorded, "--by", 'trace_attribute("a")'], "--trace-attributes has it")):
        done = subprocess.run([run.tool, *words], capture_output=True, text=True, check=False)
        check(done.returncode != 0 and why in done.stderr, f"{words}: {done.returncode}\n{done.stderr}")


@scenario
def files_that_come_later_are_asked_and_counted_as_those_before(run):
    writer = Writer(run, provider="of_anybody")  # whom other tests do not have
    writer.publish(KEYS)
    where = ["--where", 'trace_attribute("http.route") =~ "/r/*"']
    some = Trace(run, writer, *where, file="some", points="of_anybody:works")
    table = Trace(run, writer, *where, "--by", 'trace_attribute("http.route")', listed=None, file="table", points="of_anybody:works")
    later = Writer(run, program=shutil.copy(writer.program, run.dir / "later"))
    later.publish(KEYS)
    time.sleep(1)  # until it is attached
    for hits in (5, 100):  # what a process calls its attributes is known from its first hits on
        for each in (writer, later):
            each.tell(f"work {hits}")
        time.sleep(0.3)
    events = some.events()
    check_equal({event["pid"] for event in events}, {writer.process.pid, later.process.pid}, "processes")
    table.events()
    for trace in (some, table):
        account = account_of(trace.summary())
        check_equal(account["hits"], account["events"] + account["rejected"] + account["undecided"], f"account: {account}")
    routes = collections.Counter(event["args"][1] for event in events)
    rows = next(each["rows"] for each in table.answers() if each["type"] == "table")
    check_equal({row["key"][0]: row["count"] for row in rows}, routes, "rows")


@scenario
def names_that_come_later_are_found(run):
    """What comes before says so. A name that is added does not change those before it."""
    writer = Writer(run)
    trace = Trace(run, writer)
    writer.tell("work 20")
    time.sleep(0.3)
    writer.publish(KEYS[:1])
    writer.tell("work 20")
    time.sleep(0.3)
    writer.tell("work 20")
    time.sleep(0.3)
    writer.publish(KEYS)
    writer.tell("work 20")
    events = trace.events()
    check_equal(len(events), 80, "hits")
    for event in events:
        n, route, user, *shown = event["args"]
        right = wanted(n, route, user)
        if n < 20:
            may_be = [[UNPUBLISHED] * 3, [EARLY] * 3] if route or user else [right]
            if CHANGING in right:
                may_be = [right]
        elif n < 60:
            names_all = not user or CHANGING in right
            may_be = [right if names_all else [route or UNNAMED, UNNAMED, UNNAMED]]
            if n < 40 and (route or user) and CHANGING not in right:
                may_be += [[EARLY] * 3, [UNPUBLISHED] * 3]
        else:
            may_be = [right]
        check(shown in may_be, f"{n}: {shown}, not one of {may_be}")


@scenario
def a_name_that_becomes_another_is_never_shown_for_it(run):
    """The specification forbids it; and what is being changed at a hit is not known."""
    writer = Writer(run)
    writer.publish(KEYS)
    trace = Trace(run, writer)
    writer.tell("work 20")
    writer.publish(KEYS[::-1])
    writer.tell("work 20")
    writer.publish(KEYS)
    writer.tell("work 20")
    events = trace.events()
    check_equal(len(events), 60, "hits")
    for event in events:
        n, route, user, *shown = event["args"]
        errors = [value for value in shown if isinstance(value, dict)]
        if 20 <= n < 40 and (route or user):
            check_equal(len(errors), 3, f"{n}: {shown}")
        elif not errors:
            check_equal(shown, wanted(n, route, user), f"{n}")


@scenario
def a_context_that_is_being_changed_is_not_read(run):
    writer = Writer(run)
    writer.publish(KEYS)
    trace = Trace(run, writer)
    writer.tell("work 4")
    header = bytes("OTEL_CTX", "ascii") + (2).to_bytes(4, "little") + (10).to_bytes(4, "little")
    writer.tell(f"header {header.hex()}{'00' * 8}")
    writer.tell("work 4")
    events = trace.events()
    for event in events[:4]:
        n, route, user, *shown = event["args"]
        check_equal(shown, wanted(n, route, user), f"{n}")
    check_equal([len([value for value in event["args"][3:] if isinstance(value, dict)]) for event in events[4:]], [3, 3, 0, 3], "errors")


@scenario
def forked_processes_have_names_of_their_own(run):
    writer = Writer(run)
    writer.publish(KEYS)
    trace = Trace(run, writer, "--children")
    writer.tell("fork")
    writer.tell("work 20")
    time.sleep(0.3)
    writer.publish(["another", *KEYS])
    writer.tell("work 1")
    time.sleep(0.3)
    writer.tell("work 20")
    named = 0
    for event in trace.events():
        n, route, user, *shown = event["args"]
        errors = [value for value in shown if isinstance(value, dict)]
        if n < 20:
            check(errors or not (route or user), f"{n}: {shown}")
        elif not errors:
            named += 1
            # Its numbers 0 and 1 are what it calls another and http.route.
            check_equal(shown, [user, "", ""], f"{n}")
    check(named > 15, f"hits with names: {named}")


@scenario
def what_is_no_attribute_is_none(run):
    """Records are read as the specification says, whatever is in them."""
    chance = random.Random(4947)
    writer = Writer(run)
    writer.publish(KEYS)
    trace = Trace(run, writer, "--trace-attributes", listed="arg0")
    records = [(0, b""), (1, b"\0"), (2, b"\0\0"), (4, b"\0\5ab"), (612, b"\0\4last" * 102), (613, b"\0\0" * 307), (65535, b"\0\0" * 400)]
    for _ in range(20_000 if LONG else 500):
        size = chance.choice([chance.randrange(20), chance.randrange(612)])
        records.append((size, bytes(chance.choice([chance.randrange(3), chance.randrange(256)]) for _ in range(size))))
    for size, record in records:
        writer.tell(f"raw {size} {record.hex()}")
    events = trace.events()
    check_equal(len(events), len(records), "hits")
    for event, (size, record) in zip(events, records):
        if size > 612:
            check("error" in event["trace_attributes"], f"{size}: {event}")
            continue
        known, others = reference(record.ljust(size, b"\xff")[:size])
        shown = {key: without_runs(text) for key, text in event.get("trace_attributes", {}).items()}
        check_equal(shown, known, f"{record!r}")
        check_equal(event.get("other_attributes"), UNNAMED if others else None, f"{record!r}")


def without_runs(text):
    """Readers differ in how many characters they show for bytes that are none."""
    return re.sub("\ufffd+", "\ufffd", text)


def reference(record):
    """(attributes with a name, whether there are others) of a record."""
    known, others = {}, False
    while len(record) >= 2 and len(record) >= 2 + record[1]:
        key, text, record = record[0], record[2:2 + record[1]], record[2 + record[1]:]
        if key < len(KEYS):
            known[KEYS[key]] = without_runs(text.decode(errors="replace"))
        else:
            others = True
    return known, others


@scenario
def contexts_of_hostile_processes_do_no_harm(run):
    """Messages and headers that somebody has changed: there are values or errors, and the tool is in good health."""
    chance = random.Random(4719)
    for n in range(200 if LONG else 25):
        writer = Writer(run)
        message = bytearray(writer.encoded(KEYS))
        for _ in range(chance.randrange(1, 6)):
            message[chance.randrange(len(message))] = chance.choice([0, 0x7f, 0x80, 0xff, chance.randrange(256)])
        writer.tell(f"publish {message.hex()}")
        if n % 3 == 0:
            header = bytearray(b"OTEL_CTX" + bytes([2, 0, 0, 0]) + chance.randbytes(20))
            writer.tell(f"header {header[:chance.choice([12, 16, 24, 32])].hex()}")
        trace = Trace(run, writer)
        writer.tell("work 10")
        writer.tell(f"message {chance.randbytes(64).hex()}" if n % 3 else "work 0")
        writer.tell("work 10")
        events = trace.events()
        check_equal(len(events), 20, "hits")
        for event in events:
            n_of, route, user, *shown = event["args"]
            for text, value in zip((route, user, ""), shown):
                check(value in ("", text) or isinstance(value, dict), f"{message.hex()}: {event}")
        writer.process.kill()


@scenario
def recordings_and_exports_have_them(run):
    writer = Writer(run)
    writer.publish(KEYS)
    recorded = Trace(run, writer, "--record", run.dir / "attributes.rec")
    writer.tell("work 200")
    before = recorded.events()
    check_hits(before, 0, 200)
    replay = [run.tool, "--replay", run.dir / "attributes.rec"]

    def replayed(*options):
        done = subprocess.run([*replay, *options, "-f", "json"], capture_output=True, text=True, check=True)
        return [each for each in map(json.loads, done.stdout.splitlines()) if each["type"] == "event"]
    check_equal([each["args"] for each in replayed("--print", LISTED)], [each["args"] for each in before], "what is replayed")
    known, _ = reference_rows(before)
    chosen = replayed("--print", "arg0", "--where", 'trace_attribute("http.route") == "/r/3ä" || trace_attribute("none") != ""')
    check_equal([each["args"][0] for each in chosen], [row[0] for row in known if row[1] == "/r/3ä"], "what is chosen of a recording")
    everything = [{key: value for key, value in zip(KEYS, each["args"][1:3]) if value} for each in before]
    for each, attributes in zip(replayed("--print", "arg0"), everything):
        is_changing = each["args"][0] % 9 == 4
        check_equal(each.get("trace_attributes"), CHANGING if is_changing else attributes or None, f"{each}")
    lines = subprocess.run([*replay, "--print", "arg0"], capture_output=True, text=True, check=True).stdout.splitlines()
    shown = next(line for line in lines if " arg0=0 " in line)
    check('trace_attribute("user.id")="user-0" trace_attribute("http.route")="/r/0ä"' in shown, shown)
    collector = Collector(run)
    subprocess.run([*replay, "--print", "arg0", "--export", f"otlp={collector.url}"], capture_output=True, text=True, check=True)
    sent = [attributes_of(each.attributes) for _, each in collector.logs()]
    check_equal([{key: each[key] for key in KEYS if key in each} for each in sent],
                [{} if each["args"][0] % 9 == 4 else attributes for each, attributes in zip(before, everything)], "log records")


if __name__ == "__main__":
    main()
