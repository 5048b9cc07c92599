#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks as keys of tables (--by ustack, --folded). GDB's backtraces of the same hits judge."""

import collections
import json
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import stacks  # noqa: E402
from puppet import HERE  # noqa: E402
from harness import check, check_equal, main, require_file, require_root, scenario, wait_line, wait_until, with_long  # noqa: E402

# With optimisation GCC keeps no frame pointer in functions that call none, whatever it is told.
KEEPS = ["-O0"]
LEAVES = ["-probe-stap|stacks:leaf" + str(i) for i in range(stacks.WIDTH)]


def tool(run, *argv, code=0):
    done = subprocess.run([run.tool, *map(str, argv)], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, code, done.stderr)
    return done


def tabled(run, *argv):
    """The last table, and the summary."""
    lines = [json.loads(line) for line in tool(run, "-f", "json", *argv).stdout.splitlines() if line.startswith("{")]
    tables = [line for line in lines if line["type"] == "table"]
    return tables[-1], lines[-1]


def key_of(frames):
    return tuple(tuple(frame) for frame in frames)


def counted(table, position=0):
    """How many hits had each stack, as GDB would show it."""
    counts = collections.Counter()
    for row in table["rows"]:
        counts[key_of(stacks.as_gdb(row["key"][position]))] += row["count"]
    return counts


@scenario
def rows_have_the_stacks_that_gdb_shows(run):
    require_root()
    for compiler, flags in (("gcc", KEEPS), ("clang", KEEPS)):
        program, at = stacks.build(run, f"kept{compiler}", compiler, flags)
        expected = collections.Counter(map(key_of, stacks.by_gdb(run, program, ["60"], LEAVES)))
        table, summary = tabled(run, f"{at}:stacks:leaf*", "--by", "ustack", "--", program, "60")
        check_equal(counted(table), expected, f"{compiler}: hits by stack")
        check_equal(len(table["rows"]), len(expected), "one row each")
        check_equal(summary["events"], 60, "hits in rows")


@scenario
def beside_other_keys_and_with_sums_and_extremes(run):
    require_root()
    program, at = stacks.build(run, "kept", "gcc", KEEPS)
    table, _ = tabled(run, f"{at}:stacks:leaf*", "--by", "arg0 % 2, ustack, comm", "--sum", "arg0", "--max", "arg0", "--",
                      program, "40")
    events = [json.loads(line) for line in
              tool(run, "-f", "json", f"{at}:stacks:leaf*", "--ustack", "--", program, "40").stdout.splitlines()
              if '"event"' in line]
    expected = collections.defaultdict(list)
    for event in events:
        expected[(event["args"][0] % 2, key_of(stacks.as_gdb(event["ustack"])))].append(event["args"][0])
    found = {(row["key"][0], key_of(stacks.as_gdb(row["key"][1]))): (row["count"], row["sum"], row["max"])
             for row in table["rows"]}
    check_equal(found, {key: (len(all_of), sum(all_of), max(all_of)) for key, all_of in expected.items()}, "rows")


@scenario
def at_first_instructions_the_direct_caller_is_there(run):
    """Also where no function keeps a frame pointer: then the rest is said to be uncertain."""
    require_root()
    for flags in (KEEPS, ["-O2", "-fomit-frame-pointer"]):
        program, _ = stacks.build(run, "entry" + flags[0], "gcc", flags)
        expected = stacks.by_gdb(run, program, ["40"], ["*f6_0", "*f3_0"])
        table, _ = tabled(run, f"uprobe:{program}:f6_0", f"uprobe:{program}:f3_0", "--by", "ustack", "--", program, "40")
        shown = 2 if "-O2" in flags else 99
        counts = collections.Counter()
        for key, count in counted(table).items():
            counts[key[:shown]] += count
        check_equal(counts, collections.Counter(key_of(frames[:shown]) for frames in expected), f"{flags}")
        if shown == 2:
            check(all("ustack_end" in row or any("address" not in frame for frame in row["key"][0])
                      for row in table["rows"]), "that callers may be missing is said")


@scenario
def what_no_call_returns_to_is_no_caller(run):
    """A static program's start keeps no frame pointer, and has the address of its initialisers in that register."""
    require_root()
    program, at = stacks.build(run, "static", "gcc", [*KEEPS, "-static"])
    events = tool(run, "-f", "json", f"{at}:stacks:leaf*", "--ustack", "--", program, "1").stdout.splitlines()
    event = json.loads(next(line for line in events if '"event"' in line))
    whole = [frame.get("function") for frame in event["ustack"]]
    table, _ = tabled(run, f"{at}:stacks:leaf*", "--by", "ustack", "--", program, "1")
    (row,) = table["rows"]
    names = [frame["function"] for frame in row["key"][0] if "address" in frame]
    check_equal(names, whole[:len(names)], "callers, as the unwind information has them")
    check("main" in names, f"main is one of {names}")


@scenario
def calls_have_the_stack_of_their_beginning(run):
    require_root()
    program, _ = stacks.build(run, "calls", "gcc", KEEPS)
    expected = stacks.by_gdb(run, program, ["30"], ["*f5_0"])
    table, _ = tabled(run, f"ucall:{program}:f5_0", "--by", "ustack", "--sum", "duration", "--", program, "30")
    check_equal(counted(table), collections.Counter(map(key_of, expected)), "calls by stack")
    check(all(row["sum"] > 0 for row in table["rows"]), "durations")


@scenario
def processes_that_run_the_same_and_end_share_rows(run):
    require_root()
    program, at = stacks.build(run, "shared", "gcc", [*KEEPS, "-fPIE", "-pie"])
    expected = collections.Counter(map(key_of, stacks.by_gdb(run, program, ["10"], LEAVES)))
    table, summary = tabled(run, f"{at}:stacks:leaf*", "--by", "ustack", "--", "sh", "-c",
                            f"for i in 1 2 3 4 5 6 7 8; do {program} 10; done >/dev/null")
    check_equal(counted(table), collections.Counter({key: 8 * count for key, count in expected.items()}), "stacks")
    check_equal((len(table["rows"]), summary["events"]), (len(expected), 80), "rows and hits")


@scenario
def no_stack_takes_the_place_of_another(run):
    """3,000 different ones: those without a room are counted as unknown, and no row has another's hits."""
    require_root()
    program = run.build("deep", [HERE / "session/stack_trees.c"], KEEPS)
    table, summary = tabled(run, f"{program}:trees:leaf", "--by", "ustack, arg0", "--", program, "3000")
    unknown = 0
    for row in table["rows"]:
        frames, path = row["key"]
        if "error" in frames:
            check("no room" in frames["error"], frames["error"])
            unknown += row["count"]
            continue
        names = [frame["function"] for frame in frames]
        walked = [name for name in names[: names.index("main")] if name in ("left", "right")]
        bits = sum((name == "right") << i for i, name in enumerate(walked))
        check_equal(bits, path, f"the way to the leaf: {names}")
    check_equal(sum(row["count"] for row in table["rows"]), 6000, "hits")
    check_equal(summary["events"], 6000, "hits in rows")
    check(unknown < 300, f"{unknown} of 6000 hits without a room")
    print(f"{unknown} of 6000 hits, of 3000 stacks, found no room")


@scenario
def folded_lines_are_what_flame_graphs_are_drawn_of(run):
    require_root()
    program, at = stacks.build(run, "folded", "gcc", KEEPS)
    expected = collections.Counter(";".join(frame[0] for frame in reversed(frames))
                                   for frames in stacks.by_gdb(run, program, ["50"], LEAVES))
    done = tool(run, f"{at}:stacks:leaf*", "--folded", "-q", "--", program, "50")
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        if line == "50":
            continue  # the program's own
        stack, number = line.rsplit(" ", 1)
        frames = [frame.removesuffix("_[i]") for frame in stack.split(";")]
        check_equal(frames[0], "folded", line)
        counts[";".join(frames[frames.index("main"):])] += int(number)
    check_equal(counts, expected, "folded stacks")


@scenario
def a_recording_with_stacks_makes_the_same_rows(run):
    require_root()
    program, at = stacks.build(run, "recorded", "gcc", KEEPS)
    recording = run.dir / "recording"
    tool(run, f"{at}:stacks:leaf*", "--ustack=fp,127", "--record", recording, "--", program, "40")
    live, _ = tabled(run, f"{at}:stacks:leaf*", "--by", "ustack", "--", program, "40")
    replayed, summary = tabled(run, "--replay", recording, "--by", "ustack")
    check_equal(counted(replayed), counted(live), "rows")
    check_equal(len(replayed["rows"]), len(live["rows"]), "number of rows")
    check_equal(summary["events"], 40, "events")
    tool(run, f"{at}:stacks:leaf*", "--record", recording, "--", program, "2")
    done = tool(run, "--replay", recording, "--folded", code=2)
    check("a trace with --record and --ustack has them" in done.stderr, done.stderr)


@scenario
def what_a_stack_cannot_be_is_refused(run):
    require_root()
    program, at = stacks.build(run, "wrong", "gcc", KEEPS)
    for options, reason in ((["--by", "kstack"], "no stack there"), (["--by", "ustack, ustack"], "once is enough"),
                            (["--where", "ustack == 1"], "can be a key of a table"), (["--sum", "ustack"], "key of a table"),
                            (["--folded", "--by", "comm"], "--folded"), (["--folded", "--hist", "arg0"], "--folded"),
                            (["--folded", "-f", "json"], "--folded")):
        done = tool(run, f"{at}:stacks:leaf*", *options, "--", program, "1", code=2)
        check(reason in done.stderr, f"{options}: {done.stderr}")


@scenario
def many_processes_of_one_program_have_one_row(run):
    """Far more of them than there is room for rows, which each has of its own in the kernel while it runs."""
    require_root()
    program = run.build("starts", [HERE / "starts.c"], ["-O1", "-g"])
    starts = with_long(3000, 1500)
    for keys in ("ustack", "ustack, comm"):
        table, summary = tabled(run, f"usdt:{program}:starts:here", "--by", keys, "--max-rows", "1000", "--", program,
                                str(starts))
        check_equal((summary["hits"], summary["events"]), (starts, starts), f"hits in rows: {summary}")
        check_equal(sum(row["count"] for row in table["rows"]), starts, "hits of all rows")
        # A machine that is too busy to look at what processes map while they live misses some of them.
        check(table["rows"][0]["count"] > starts * 9 // 10, f"the row of all: {table['rows'][:3]}")
        functions = [frame.get("function") for frame in table["rows"][0]["key"][0]]
        check("main" in functions or "passes" in functions, f"its stack: {functions}")


WALK = """
import os, sys
def outer(n): return inner(n) if n % 2 else os.getppid()
def inner(n): return os.getppid()
sys.stdin.readline()
for n in range(30): outer(n)
print(flush=True)
sys.stdin.readline()
"""


@scenario
def functions_of_a_script_are_in_rows_of_a_recording_and_live_rows_say_that_they_are_not(run):
    require_root()
    python = "/usr/bin/python3.11"
    require_file(python)
    process = run.start(python, "-c", WALK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    probe, recording = "uprobe:libc.so.6:getppid", run.dir / "walk.rec"
    live = run.trace_start(probe, "--by", "ustack", "-p", str(process.pid))
    events = run.trace_start(probe, "--ustack", "--record", recording, "-p", str(process.pid))
    for tracing in (live, events):
        wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    process.stdin.write(b"\n")
    wait_line(process)
    live.signal(signal.SIGINT)
    events.signal(signal.SIGINT)
    live.finish(), events.finish()
    process.stdin.write(b"\n")
    table = json.loads([line for line in live.stdout().splitlines() if '"type":"table"' in line][-1])
    check_equal(sum(row["count"] for row in table["rows"]), 30, "hits in rows")
    for row in table["rows"]:
        check("rows have native functions alone; --ustack beside --by has them" in row["key"][0][-1].get("error", ""), f"{row['key'][0]}")
    table, _ = tabled(run, "--replay", recording, "--by", "ustack")
    check_equal(counts_by_script(table), {("outer", "<module>"): 15, ("inner", "outer", "<module>"): 15}, "functions of the script, by row")


def counts_by_script(table):
    counts = collections.Counter()
    for row in table["rows"]:
        counts[tuple(frame["function"] for frame in row["key"][0] if "language" in frame)] += row["count"]
    return counts


STORM = """
import os, sys
def inner(n):
    for i in range(n): os.getppid()
def outer(n): inner(n)
for i in range(int(sys.argv[1]) // 2000): inner(1000), outer(1000)
"""


@scenario
def a_storm_of_hits_in_a_script_is_in_rows_with_its_functions_or_counted_as_lost(run):
    """Rows are made of events then. Which are lost is nobody's choice, but none is in another's row or in none."""
    require_root()
    python, hits = "/usr/bin/python3.11", 40000
    require_file(python)
    script = run.dir / "storm.py"
    script.write_text(STORM)
    table, summary = tabled(run, "--by", "ustack", "--ustack", "uprobe:libc.so.6:getppid", "--", python, script, str(hits))
    counts = counts_by_script(table)
    early = counts.pop((), 0)  # before it was known that it runs Python
    check_equal(set(counts), {("inner", "<module>"), ("inner", "outer", "<module>")}, "functions of the script, by row")
    check(max(counts.values()) <= hits // 2, f"more hits than there were: {counts}")
    check_equal(sum(counts.values()) + early + summary["lost"]["ring_full"], hits, "hits in rows, and lost")
    print(f"{counts}, {early} before the interpreter was known, {summary['lost']['ring_full']} lost")


if __name__ == "__main__":
    main()
