#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about Python: what they tell is what the interpreter's own hooks count and time."""

import json
import re
import subprocess

from recipes import Recipe, check_near
from harness import check, check_equal, main, require_file, scenario, wait_line

PYTHON = "/usr/bin/python3.11"

CALLS = """\
import collections, json, sys
counts = collections.Counter()
def count(frame, event, argument):
    if event == "return":
        counts[frame.f_code.co_name] += 1
def leaf(n):
    return n
def branch(n):
    return leaf(n) + sum(stream(n)) + leaf(n + 1)
def stream(n):
    for i in range(n % 3):
        yield i
def work(rounds):
    for i in range(rounds):
        branch(i)
sys.setprofile(count)
work(400)
sys.setprofile(None)
print(json.dumps([counts]))
"""


@scenario
def calls_of_python_functions_are_those_its_profiler_counts(run):
    require_file(PYTHON)
    (run.dir / "app.py").write_text(CALLS)
    result = Recipe(run, "Which Python functions are called most?").start().finish()
    [counts] = json.loads(result.program_said()[-1])
    for name in ("leaf", "stream", "branch"):
        check_equal(result.counts().get((name,)), counts[name], f"calls of {name}")
    check(counts["leaf"] == 800 and counts["stream"] == 799, f"its own counts: {counts}")


COLLECTIONS = """\
import gc, json, sys, time
gc.disable()
pauses, begin = [], 0
def time_it(phase, info):
    global begin
    if phase == "start":
        begin = time.perf_counter_ns()
    else:
        pauses.append((info["generation"], time.perf_counter_ns() - begin, info["collected"]))
class Cycle:
    def __init__(self, many):
        self.me, self.more = self, list(range(many))
kept = [[i] for i in range(200000)]  # what a full collection looks at
print("ready", flush=True)
sys.stdin.readline()
gc.callbacks.append(time_it)
for i in range(30):
    generation = (0, 0, 1, 2)[i % 4]
    for _ in range(i):
        Cycle(3)
    gc.collect(generation)
gc.callbacks.clear()
print(json.dumps(pauses), flush=True)
sys.stdin.readline()
"""


@scenario
def pauses_of_the_collector_are_those_its_callbacks_time(run):
    require_file(PYTHON)
    (run.dir / "app.py").write_text(COLLECTIONS)
    program = run.start(PYTHON, "-I", "-S", run.dir / "app.py", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(program)
    latency = Recipe(run, "How long does Python's garbage collector stop the program?").start(program.pid)
    largest = Recipe(run, "Which collections take longer than 1 ms, and what did they find?").start(program.pid)
    program.stdin.write(b"\n")
    pauses = json.loads(wait_line(program))
    latency, largest = latency.stop(), largest.stop()
    check_equal(len(pauses), 30, "collections")
    for generation in (0, 1, 2):
        theirs = [took for number, took, _ in pauses if number == generation]
        row = latency.rows[(generation,)]
        check_equal(row["count"], len(theirs), f"collections of generation {generation}")
        # A callback is called before the first probe, and another behind the second one.
        check(row["max"] <= max(theirs), f"the longest: {row['max']} ns, of which the callbacks see {max(theirs)} ns")
        check_near(row["max"] / 1e9, max(theirs) / 1e9, f"the longest of generation {generation}")
    ours = [(span["args"][0], span["duration_ns"], span["args"][1]) for span in largest.spans]
    for generation, took, found in ours:
        check(any(generation == number and took <= theirs and found == collected for number, theirs, collected in pauses),
              f"{generation, took, found} is one of {pauses}")
    surely = [pause for pause in pauses if pause[1] > 3_000_000]
    check(len(surely) >= 5 and len(ours) >= len(surely), f"{len(ours)} of more than 1 ms; by callbacks {len(surely)} of more than 3")


@scenario
def imports_take_as_long_as_python_itself_times(run):
    require_file(PYTHON)
    for name, text in (("inner", "import time\ntime.sleep(0.05)\n"), ("outer", "import time, inner\ntime.sleep(0.03)\n"),
                       ("app", "import outer\n")):
        (run.dir / f"{name}.py").write_text(text)
    result = Recipe(run, "Which imports make a Python program start slowly?").start(PYTHONPROFILEIMPORTTIME="1").finish()
    said = {name.strip(): int(us) / 1e6 for us, name in re.findall(r"^import time: +\d+ \| +(\d+) \|( +.*)$", result.stderr, re.M)}
    took = {span["args"][0]: span["duration_ns"] / 1e9 for span in result.spans}
    for name, atleast in (("inner", 0.05), ("outer", 0.08)):
        check(took[name] >= atleast, f"{name}: {took}")
        check_near(took[name], said[name], name)
    for name in took:
        check(name in said, f"{name} is imported: {list(said)}")


if __name__ == "__main__":
    main()
