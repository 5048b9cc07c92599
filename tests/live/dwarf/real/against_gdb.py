#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The values that usdt-trace shows of a program's functions and those that GDB prints, at the same hits of the same run.

Which functions: of those that a program calls, the ones whose arguments have the most types that the others have not.

Usage: against_gdb.py TOOL FILE FUNCTIONS COMMAND...     TOOL: usdt-trace; FILE: the program, or a library of its; as root
Exit code 0: nothing is wrong
"""

import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3] / "programs")]
from harness import Run, Skip, check, wait_until  # noqa: E402

JUDGE = pathlib.Path(__file__).resolve().parent / "judge.py"
SECONDS = 60
CHARACTERS = ("char *", "const char *")


class Program:
    """What is run, and the file of its that has the functions: the program or one of its libraries."""

    def __init__(self, name, file, command, environment=None):
        self.name, self.file, self.command = name, os.path.realpath(file), [str(word) for word in command]
        self.own = environment or {}

    def probe(self, function):
        return f'ucall:{self.file}:"{function}"'


class Row:
    """What came of a program: GDB's values, and ours of those, down to members and elements."""

    def __init__(self, name):
        self.name, self.functions = name, set()
        self.hits = self.gdb = self.ours = self.equal = self.only_ours = 0
        self.wrong, self.reasons = [], collections.Counter()

    def __str__(self):
        return (f"{self.name:22}{len(self.functions):9}{self.hits:6}{self.gdb:9}{self.ours:9}{self.equal:9}{len(self.wrong):7}"
                f"{self.only_ours:11}")

    HEADING = f"{'':22}functions  hits      GDB     ours    equal  wrong  only ours"


def listed(run, pattern):
    done = subprocess.run([run.tool.with_name("usdt-list"), "-f", "json", "--no-inline", pattern], capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def called(run, program):
    """Functions that the program calls, by the number of calls."""
    words = ["env", *(f"{name}={value}" for name, value in program.own.items()), *program.command]  # the tracer has an environment of its own
    result = run.trace(f"uprobe:{program.file}:*", "--no-inline", "--no-follow", "--count", command=words, env={**os.environ, "LC_ALL": "C"}, timeout=300)
    check(result.summary is not None, result.describe())
    return {probe["probe"].rsplit(f":{program.file}:", 1)[-1].strip('"'): probe["hits"] for probe in result.summary["probes"] if probe["hits"]}


def kind_of(argument):
    return argument["type"].replace("const ", "").replace("struct ", "").strip()


def chosen(run, program, many):
    """The places, of functions that have one place each."""
    calls = called(run, program)
    places = collections.defaultdict(list)
    for place in listed(run, f"uprobe:{program.file}:*"):
        places[place["function"]].append(place)
    usable = [found[0] for name, found in places.items()
              if len(found) == 1 and name in calls and not name.startswith("__libc_start") and found[0]["args"] and "\"" not in name and "(untyped)" not in str(found[0]["type"])
              and all(argument.get("type") for argument in found[0]["args"])]
    usable.sort(key=lambda place: hashlib.sha256(place["function"].encode()).digest())
    check(usable, f"{program.name}: {len(calls)} functions are called, and none of them has types")
    seen, taken = collections.Counter(), []
    while usable and len(taken) < many:
        best = max(usable, key=lambda place: sum(1 / (1 + seen[kind_of(argument)]) for argument in place["args"]))
        usable.remove(best)
        taken.append(best)
        seen.update(kind_of(argument) for argument in best["args"])
    return taken


def expressions_of(place):
    """Each argument; of the first that is a pointer to more than characters what it points to as well."""
    found, behind = [], 0
    for argument in place["args"]:
        name, kind = argument["name"], argument["type"]
        found.append((name, name))
        if kind in CHARACTERS:
            found.append((f"str({name})", name))
        elif kind.endswith("*") and "(" not in kind and "void *" not in kind and not kind.endswith("**") and behind < 1:
            behind += 1
            found.append((f"*{name}", name))
    return found


def has_result(place):
    return not place["type"].startswith("void (")


def asked_of(place, wanted):
    return [each[0] for each in wanted[place["function"]]] + (["retval"] if has_result(place) else [])


def same(ours, gdb):
    if isinstance(gdb, float) and isinstance(ours, (int, float)):
        return ours == gdb or abs(ours - gdb) <= 1e-6 * abs(gdb)
    if isinstance(ours, int) and isinstance(gdb, int):
        return ours % 2**64 == gdb % 2**64
    return ours == gdb


def absent_from(ours):
    return {"error": "beyond the members that are shown" if "..." in ours else "not there"}


class Comparison:
    def __init__(self, row):
        self.row = row

    def leaves(self, what, ours, gdb):
        row = self.row
        if isinstance(gdb, dict):
            if isinstance(ours, dict) and "error" in ours and "error" not in gdb:
                ours = {member: ours for member in gdb}
            for member, value in gdb.items():
                self.leaves(f"{what}.{member}", ours.get(member, absent_from(ours)) if isinstance(ours, dict) else ours, value)
        elif isinstance(gdb, list):
            for i, value in enumerate(gdb):
                self.leaves(f"{what}[{i}]", ours[i] if isinstance(ours, list) and i < len(ours) else
                            ours if isinstance(ours, dict) else {"error": "not there"}, value)
        elif isinstance(ours, dict) and "error" in ours or ours is None:
            if gdb is not None:
                row.gdb += 1
                row.reasons[(ours or {"error": "not there"})["error"]] += 1
        elif gdb is None:
            row.only_ours += 1
        else:
            row.gdb, row.ours = row.gdb + 1, row.ours + 1
            if same(ours, gdb):
                row.equal += 1
            else:
                row.wrong.append(f"{what}: ours {ours!r:.200}, GDB {gdb!r:.200}")


def traced(run, program, place, wanted, pid):
    """A tracer of one function."""
    tracing = run.trace_start(program.probe(place["function"]), "--no-inline", "--print", ", ".join(asked_of(place, wanted)), "-p", pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached", timeout=60)
    check(tracing.alive(), f"{program.name}: {tracing.argv} {tracing.stderr()[-2000:]}")
    return tracing


def judged(run, program, places, wanted, hits):
    """GDB's stops, our events, and the functions with calls that did not end, of one run."""
    directory = run.dir / f"judge{len(list(run.dir.glob('judge*')))}"
    directory.mkdir()
    asked = [{"pc": int(place["pc"], 16), "function": place["function"], "inlined": False, "values": wanted[place["function"]]} for place in places]
    environment = {**os.environ, "LC_ALL": "C", "JUDGE_ENVIRONMENT": json.dumps(program.own), "JUDGE_PLACES": json.dumps(asked), "JUDGE_FILE": program.file, "JUDGE_HITS": str(hits),
                   "JUDGE_ALL": str(SECONDS), "JUDGE_DIRECTORY": str(directory)}
    gdb = run.start("gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-x", JUDGE, "--args", *program.command,
                    stdin=subprocess.DEVNULL, stdout=open(directory / "out", "w"), stderr=subprocess.STDOUT, env=environment)
    wait_until(lambda: (directory / "pid").exists() or gdb.poll() is not None, "GDB starts the program", timeout=60)
    said = (directory / "out").read_text()
    if "insert hardware breakpoint" in said or "does not stop at its breakpoints" in said:
        raise Skip("no breakpoints of the processor for GDB")
    check(gdb.poll() is None, said[-2000:])
    pid = (directory / "pid").read_text()
    tracings = [traced(run, program, place, wanted, pid) for place in places]
    (directory / "go").touch()
    gdb.wait(SECONDS + 60)
    results = [tracing.finish(60) for tracing in tracings]
    events = [event for result in results for event in result.events]
    unfinished = {place["function"] for place, result in zip(places, results) if not result.summary or result.summary["lost"]["unfinished"]}
    check((directory / "result").exists(), (directory / "out").read_text()[-2000:])
    return json.loads((directory / "result").read_text()), events, unfinished


def add(row, stops, events, unfinished, wanted, places):
    """What a run has for the places; one in which GDB did not stop is left out."""
    comparison = Comparison(row)
    by_pc = collections.defaultdict(list)
    for event in sorted(events, key=lambda event: event["ts"]):
        by_pc[int(event["pc"], 16)].append(event)
    names = {int(place["pc"], 16): place["function"] for place in places}
    for stop in stops:
        name = names[stop["pc"]]
        if not stop.get("ended") and name in unfinished:  # it may be no event
            continue
        hits = [each for each in by_pc[stop["pc"]] if stop.get("after", 0) < each["ts"] < stop.get("until", 0)]
        if not hits:
            continue
        event = hits[-1 if stop.get("behind") else 0]
        row.functions.add(name)
        row.hits += 1
        labels = [each[0] for each in wanted[name]]
        ours = dict(zip(labels, event["args"]))
        for label in labels:
            comparison.leaves(f"{name}: {label}", ours[label], stop["values"].get(label))
        if len(event["args"]) > len(labels) and "result" in stop:
            comparison.leaves(f"{name}: result", event["args"][-1], stop["result"])


def compare(run, program, many, hits=3, together=4):
    """Its row; `together` functions in one run, as many as the processor has breakpoints."""
    row = Row(program.name)
    places = chosen(run, program, many)
    wanted = {place["function"]: expressions_of(place) for place in places}
    for first in range(0, len(places), together):
        some = places[first:first + together]
        add(row, *judged(run, program, some, wanted, hits), wanted, some)
    return row


def show(rows):
    print(Row.HEADING)
    for row in rows:
        print(row)
        for wrong in row.wrong[:20]:
            print(f"  wrong: {wrong}")
        for reason, count in row.reasons.most_common(5):
            print(f"  {count} only GDB has: {reason}")


def main():
    tool, file, many, *command = sys.argv[1:]
    run = Run(pathlib.Path(tool).resolve())
    try:
        row = compare(run, Program(os.path.basename(file), file, command), int(many))
    finally:
        run.close()
    show([row])
    sys.exit(1 if row.wrong or not row.functions else 0)


if __name__ == "__main__":
    main()
