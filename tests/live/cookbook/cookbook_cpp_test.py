#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about C and C++: what they tell is what the programs themselves count and time."""

import collections
import csv
import json
import re
import subprocess
import sys

from recipes import HERE, Recipe, check_near
from harness import Skip, check, check_equal, main, require_file, require_program, scenario

sys.path.insert(0, str(HERE.parent / "export"))
import perfetto_reader  # noqa: E402
from messages import compiled  # noqa: E402

PYTHON = "/usr/bin/python3.11"


def server(run):
    """server.cpp, which the recipe starts; what it says of its requests and exceptions is in the last line."""
    return run.build("server", [HERE / "server.cpp"], ["-O2", "-g", "-fno-omit-frame-pointer"], "g++")


def worker(run):
    return run.build("worker", [HERE / "worker.c"], ["-O2", "-g", "-fno-omit-frame-pointer"], libs=["-lpthread"])


def demangled(name):
    """As the compiler's own tool has it."""
    require_program("c++filt")
    return subprocess.run(["c++filt", "-t", name], capture_output=True, text=True, check=True).stdout.strip()


def require_throw_probe(program):
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    library = next(word for word in libraries.split() if "libstdc++.so" in word and "/" in word)
    if "throw" not in subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout:
        raise Skip(f"{library} has no probes")


@scenario
def exceptions_by_type_are_those_the_program_caught(run):
    require_throw_probe(server(run))
    result = Recipe(run, "Which types of exceptions does a C++ program throw?").start().finish()
    *_, (not_found, out_of_range, numbers) = json.loads(result.program_said()[-1])
    counts = {demangled(key[0]): count for key, count in result.counts().items()}
    check_equal(counts, {"app::NotFound": not_found, "std::out_of_range": out_of_range, "int": numbers}, "exceptions")
    check(min(counts.values()) >= 5, f"there are some: {counts}")


@scenario
def stacks_of_exceptions_lead_to_the_functions_that_throw(run):
    require_throw_probe(server(run))
    result = Recipe(run, "Where are exceptions thrown?").start().finish()
    *_, (not_found, out_of_range, numbers) = json.loads(result.program_said()[-1])
    throwers = collections.Counter()
    for event in result.events:
        names = [frame.get("function", "") for frame in event["ustack"]]
        check(any(name == "main" for name in names), f"main is on the stack: {names}")
        throwers[next(name for name in names if name.startswith(("look_up", "check_range")))] += 1
    check_equal(throwers, {"look_up(request const*)": not_found, "check_range(int)": out_of_range + numbers}, "throws")


@scenario
def exceptions_by_type_and_stack_are_those_of_each_place(run):
    server(run)
    result = Recipe(run, "Which types of exceptions are thrown, and where?").start().finish()
    *_, (not_found, out_of_range, numbers) = json.loads(result.program_said()[-1])
    counts = {(demangled(kind), stack[1]): row["count"] for (kind, stack), row in result.rows.items()}
    check_equal(counts, {("app::NotFound", "look_up(request const*)"): not_found, ("std::out_of_range", "check_range(int)"): out_of_range,
                         ("int", "check_range(int)"): numbers}, "exceptions by type and caller")
    for _, stack in result.rows:
        check("main" in stack, f"main is on the stack: {stack}")


@scenario
def latency_of_a_function_by_its_argument_is_what_the_program_times(run):
    server(run)
    result = Recipe(run, "How long does a function take, by what it was called with?").start().finish()
    *kinds, _ = json.loads(result.program_said()[-1])
    for kind, (calls, _, longest) in enumerate(kinds):
        row = result.rows[(kind,)]
        check_equal(row["count"], calls, f"calls for kind {kind}")
        check(row["max"] <= longest, f"its clock is around the call: {row['max']} ns of {longest} ns")
        check(row["p50"] >= kind * 700_000, f"it sleeps {kind} times 0.7 ms: {row}")
        check_near(row["max"] / 1e9, longest / 1e9, f"the longest of kind {kind}")


@scenario
def exported_files_have_the_calls_that_are_shown(run):
    server(run)
    result = Recipe(run, "How are calls kept for a spreadsheet and for later questions, while they are watched?").start().finish()
    *kinds, _ = json.loads(result.program_said()[-1])
    shown = [call["args"] for call in result.spans or result.events]
    check_equal(collections.Counter(kind for kind, _ in shown), {kind: calls for kind, (calls, *_) in enumerate(kinds)}, "calls shown")
    with open(run.dir / "calls.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    check_equal([[int(row["req->kind"]), int(row["retval"])] for row in rows], shown, "calls in calls.csv")
    replayed = run.trace([], "--replay", run.dir / "calls.rec")
    check_equal([call["args"] for call in replayed.events], shown, "calls in calls.rec")


@scenario
def a_time_line_has_the_calls_that_are_shown(run):
    server(run)
    result = Recipe(run, "How do calls look on a time line?").start().finish()
    shown = [call["args"] for call in result.spans or result.events]
    drawing = perfetto_reader.draw(compiled(run.dir, "perfetto"), (run.dir / "calls.pftrace").read_bytes())
    drawn = sorted(drawing.slices, key=lambda call: call.end)
    check_equal([[call.args["req->kind"], call.args["retval"]] for call in drawn], shown, "calls in calls.pftrace")


@scenario
def latencies_for_prometheus_are_those_that_are_shown(run):
    server(run)
    result = Recipe(run, "How do latencies get into Prometheus?").start().finish()
    *kinds, _ = json.loads(result.program_said()[-1])
    page = (run.dir / "server.prom").read_text()
    counted = {int(kind): int(count) for kind, count in
               re.findall(r'^usdt_duration_seconds_count{req_kind="(\d+)"} (\d+)$', page, re.MULTILINE)}
    check_equal(counted, {kind: calls for kind, (calls, *_) in enumerate(kinds)}, "calls of each kind")


def log2_range(number):
    """The range of --hist that begins with 2^(number - 1)."""
    return (1 << (number - 1), (1 << number) - 1)


@scenario
def sizes_of_blocks_are_those_the_program_asked_for(run):
    worker(run)
    result = Recipe(run, "How large are the blocks that a program allocates?").start().finish()
    blocks = json.loads(result.program_said()[-1])[0]
    bars = {(bar["first"], bar["last"]): bar["count"] for bar in result.rows[()]["buckets"]}
    check_equal(bars, {log2_range(number): count for number, count in enumerate(blocks) if count}, "blocks by size")


@scenario
def bytes_by_caller_are_those_that_each_function_asked_for(run):
    worker(run)
    result = Recipe(run, "Who allocates the most memory?").start().finish()
    _, rows, index, *_ = json.loads(result.program_said()[-1])
    bytes_of = collections.Counter()
    for (stack,), row in result.rows.items():
        check("main" in stack, f"main is on the stack: {stack}")
        bytes_of[stack[1]] += row["sum"]
    check_equal(bytes_of, {"load_rows": rows, "build_index": index}, "bytes by caller")


@scenario
def waits_for_a_mutex_are_as_long_as_the_program_times(run):
    worker(run)
    result = Recipe(run, "Which mutexes do threads wait for, and how long?").start().finish()
    *_, mutex, waits, waited, longest = json.loads(result.program_said()[-1])
    row = result.rows[(mutex,)]
    check_equal(row["count"], waits, "waits for the mutex that is held")
    # (A thread may lose its processor while it locks another one, which nobody holds.)
    others = [each["count"] for key, each in result.rows.items() if key != (mutex,)]
    check(all(count <= 2 for count in others), f"other mutexes that are waited for: {others}")
    check(row["max"] <= longest, f"{row['max']} ns of {longest} ns")
    check_near(row["max"] / 1e9, longest / 1e9, f"the longest of {waited} ns in all")


LOOK_UP = """\
import json, socket, time
"x".encode("idna")  # which reads a module of its own
took = []
for name in ("127.0.0.1", "localhost", "::1", "localhost"):
    begin = time.perf_counter_ns()
    try:
        socket.getaddrinfo(name, None)
        error = 0
    except socket.gaierror as failed:
        error = failed.errno
    took.append((name, error, time.perf_counter_ns() - begin))
print(json.dumps(took))
"""


@scenario
def names_that_are_looked_up_are_those_the_program_asked_for(run):
    require_file(PYTHON)
    (run.dir / "client.py").write_text(LOOK_UP)
    result = Recipe(run, "Which names does a program look up, and how long does it take?").start().finish()
    said = json.loads(result.program_said()[-1])
    check_equal([event["args"] for event in result.events], [[name, error] for name, error, _ in said], "names, and results")
    for event, (name, _, took) in zip(result.events, said):
        check(event["duration_ns"] <= took, f"{name}: {event['duration_ns']} ns of {took} ns")
        check_near(event["duration_ns"] / 1e9, took / 1e9, name)


if __name__ == "__main__":
    main()
