#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines of source files as places to trace. GDB says where they are and what the variables there are."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import check, check_equal, main, require_program, require_root, scenario  # noqa: E402

SOURCE = HERE / "dwarf/lines.c"
LINES = [number for number, text in enumerate(SOURCE.read_text().splitlines(), 1) if "// LINE" in text]


def build(run, compiler, level):
    name = f"lines-{compiler}{level}"
    return run.build(name, [SOURCE], [level, "-g", "-no-pie"], compiler)


def seen_by_gdb(run, program, lines):
    result = run.dir / "stops.json"
    done = subprocess.run(["gdb", "-batch", "-nx", "-x", HERE / "dwarf/lines_judge.py", program], capture_output=True, text=True,
                          env={**os.environ, "JUDGE_LINES": json.dumps(lines), "JUDGE_RESULT": str(result)}, timeout=120)
    check(result.exists(), f"GDB failed: {done.stdout}{done.stderr}")
    return json.loads(result.read_text())


def listed(run, *words, code=0):
    done = subprocess.run([run.tool.with_name("usdt-list"), *map(str, words)], capture_output=True, text=True,
                          timeout=60)
    check_equal(done.returncode, code, f"usdt-list {words}: {done.stderr}")
    return done


def names_by_pc(run, program):
    words = [f"uprobe:{program}:@lines.c:{line}" for line in LINES]
    points = [json.loads(line) for line in listed(run, "-f", "json", *words).stdout.splitlines()]
    return {(point["function"], int(point["pc"], 16)): [arg["name"] for arg in point["args"]] for point in points}


def plain(value):
    if isinstance(value, dict):
        return None if "error" in value else value.get("value", value)
    return int(value) if isinstance(value, bool) else value


@scenario
def the_variables_of_a_line_are_those_that_gdb_sees_there(run):
    require_root()
    require_program("gdb")
    print("variables at stops: GDB, ours, of those right; wrong ones fail")
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-O2", "-Os"):
            program = build(run, compiler, level)
            names = names_by_pc(run, program)
            # Of a line without code GDB takes the next one that has some.
            stops = seen_by_gdb(run, program, sorted({int(line.rsplit(":", 1)[1]) for line, _ in names}))
            events = run.trace(*(f"uprobe:{program}:@lines.c:{line}" for line in LINES), "-Z", "200",
                               command=[program]).events
            ours = [(event["probe"].rsplit(":", 1)[1], int(event["pc"], 16), event) for event in events]
            theirs = {stop["pc"] for stop in stops}
            check(theirs, f"{compiler} {level}: GDB did not stop")
            # GDB leaves out some of a line's blocks; where it stops, we are.
            ours = [each for each in ours if each[1] in theirs]
            check_equal([f"{pc:#x}" for _, pc, _ in ours], [f"{stop['pc']:#x}" for stop in stops],
                        f"{compiler} {level}: stops")
            known = read = 0
            for stop, (line, pc, event) in zip(stops, ours):
                values = dict(zip(names[f"@lines.c:{line}", pc], event["args"]))
                for name, expected in stop["values"].items():
                    value = plain(values.get(name, {"error": "not there"}))
                    known += expected is not None
                    if value is None or expected is None:
                        continue
                    read += 1
                    if isinstance(expected, int) and isinstance(value, int):
                        check_equal(value % 2**64, expected % 2**64, f"{compiler} {level} line {line}: {name}")
                    elif isinstance(value, str) and isinstance(expected, str):
                        check_equal(value, expected, f"{compiler} {level} line {line}: {name}")
            print(f"  {compiler:6} {level}: {known:4} {read:4}")
            check(level != "-O0" or read > 0.6 * known, f"{compiler} {level}: {read} of {known} were read")


@scenario
def a_line_is_listed_with_its_function_and_pastes_back(run):
    program = build(run, "gcc", "-O0")
    line = LINES[1]
    points = [json.loads(text) for text in
              listed(run, "-f", "json", f"uprobe:{program}:@lines.c:{line}").stdout.splitlines()]
    check(points, "listed")
    for point in points:
        check_equal(point["probe"], f"uprobe:{program}:@lines.c:{line}", "its name")
        check_equal(point["caller"], "weigh", "its function")
        check_equal(point["source"]["line"], line, "its line")
        check({"items", "count", "twice", "sum", "each", "weight"} <= {arg["name"] for arg in point["args"]}, point)
    again = listed(run, "-f", "json", points[0]["probe"]).stdout.splitlines()
    check_equal(len(again), len(points), "its name pastes back")


@scenario
def what_is_no_line_is_answered_by_the_next_one_or_by_a_file_of_nearly_that_name(run):
    program = build(run, "gcc", "-O0")
    text = SOURCE.read_text().splitlines()
    comment = 1 + next(i for i, each in enumerate(text) if each.startswith("struct item"))
    check("the next line with code is" in listed(run, f"uprobe:{program}:@lines.c:{comment}", code=1).stderr, "next line")
    check("no code at lines.c:9999, nor behind it" in listed(run, f"uprobe:{program}:@lines.c:9999", code=1).stderr,
          "behind the end")
    check("did you mean lines.c?" in listed(run, f"uprobe:{program}:@lnies.c:12", code=1).stderr, "near name")
    check("a line is no call" in listed(run, f"uretprobe:{program}:@lines.c:12", code=2).stderr, "no return")


@scenario
def inlined_copies_are_left_out_where_nobody_wants_them(run):
    require_root()
    program = build(run, "gcc", "-O2")
    everything = run.trace(f"uprobe:{program}:scaled", command=[program])
    check_equal(len(everything.events), 5, "calls of an inlined function")
    check("inlined" in everything.stderr, everything.stderr)
    run.trace(f"uprobe:{program}:scaled", "--no-inline", command=[program]).check_code(1)
    listed(run, "--no-inline", f"uprobe:{program}:scaled", code=1)
    check(listed(run, f"uprobe:{program}:scaled").stdout, "listed without it")


if __name__ == "__main__":
    main()
