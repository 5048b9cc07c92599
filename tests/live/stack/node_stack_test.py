#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of JavaScript on stacks (--ustack), which V8 names in its perf map. V8's own stack traces at the same places
judge names, files and order; V8's coverage judges where functions are defined. USDT_NODES, paths with ':' between them,
has other programs than the `node` of this machine."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, require_x86_64, scenario, wait_until  # noqa: E402
from script_stacks import FULL, PLACE, Walkers, issues_of  # noqa: E402

SCRIPT = HERE / "stack/walkers.js"
FLAGS = ("--perf-basic-prof", "--interpreted-frames-native-stack")
# Functions that were inlined have no code of their own.
APART = "--no-turbo-inlining"


def nodes():
    """Each program, and what it says it is."""
    require_root()
    require_x86_64()
    found = [path for path in (shutil.which("node"), *os.environ.get("USDT_NODES", "").split(":")) if path]
    if not found:
        raise Skip("no node")
    return [(path, subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip())
            for path in found]


@contextlib.contextmanager
def walking(run, node, rounds, *flags, options=FULL, output="json"):
    walkers = Walkers(run, [], rounds, options=options, interpreter=node, script=SCRIPT, flags=flags, output=output)
    try:
        yield walkers
    finally:
        pathlib.Path(f"/tmp/perf-{walkers.pid}.map").unlink(missing_ok=True)


def functions_of(event):
    """As V8's stack traces have them, and of each its frame, from the place on. (None, None): one that has no name, since
    V8 gave its optimized code up while it ran."""
    found = []
    for frame in event["ustack"]:
        if frame.get("language") == "javascript":
            file = frame.get("definition", {}).get("file")
            found.append((frame["function"], re.sub("^file://", "", file) if file else None, frame))
        elif "interpreted function" in frame.get("error", ""):
            check("optimized code was given up" in frame["error"], f"{frame}")
            found.append((None, None, frame))
    names = [name for name, *_ in found]
    return found[names.index("place"):] if "place" in names else found


def is_one(ours, theirs):
    return ours[0] is None or ours[:2] == theirs


def are_equal(ours, theirs):
    return len(ours) == len(theirs) and all(map(is_one, ours, theirs))


def expected_of(view):
    return [(name or "(anonymous)", re.sub("^file://", "", file) if file else None) for name, file, _ in view]


def definitions_of(walkers):
    """By name, the lines in which V8 says that functions of the script are defined. The whole file is one, too."""
    lines = {"(anonymous)": {1}}
    for name, line in json.loads((walkers.directory / "views.definitions").read_text()):
        lines.setdefault(name or "(anonymous)", set()).add(line)
    return lines


@scenario
def functions_are_those_of_v8s_own_stack_traces(run):
    for node, version in nodes():
        with walking(run, node, 150, *FLAGS, APART) as walkers:
            check(len(walkers.views) >= 150, f"only {len(walkers.views)} places")
            check_equal(len(walkers.events), len(walkers.views), "hits")
            tiers, count, placed, nameless, definitions = {}, 0, 0, 0, definitions_of(walkers)
            for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
                ours = functions_of(event)
                check(are_equal(ours, expected_of(view)),
                      f"{version}: functions at hit {number}: {[each[:2] for each in ours]}, expected {expected_of(view)}")
                check_equal(issues_of(event), [], f"{version}: what is said between frames at hit {number}")
                check("ustack_end" not in event, f"{version}: hit {number} ends early: {event.get('ustack_end')}")
                for name, file, frame in ours:
                    nameless += name is None
                    if name is None:
                        continue
                    tiers[frame["tier"]] = tiers.get(frame["tier"], 0) + 1
                    check("source" not in frame, f"{version}: the line that runs is not known: {frame}")
                    if file == str(SCRIPT) and definitions.get(name):
                        check(frame["definition"]["line"] in definitions[name], f"{frame} is defined at {definitions[name]}")
                        placed += 1
                count += len(ours)
            check(nameless < count / 50, f"{version}: {nameless} of {count} functions have no name")
            check_equal(set(tiers), {"interpreted", "baseline", "optimized"}, f"{version}: how functions were run")
            print(f"{node} {version}: {len(walkers.events)} stacks, {count} functions as V8 has them {tiers}, "
                  f"{placed} of them defined where V8 says; {nameless} without a name")


@scenario
def a_function_that_was_inlined_is_the_only_one_that_is_missing(run):
    """It is missing below one that was optimized, and the others are in order."""
    for node, version in nodes():
        with walking(run, node, 60, *FLAGS) as walkers:
            missing = 0
            for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
                ours, at = functions_of(event), 0
                for function in expected_of(view):
                    if at < len(ours) and is_one(ours[at], function):
                        at += 1
                        continue
                    missing += 1
                    check(at < len(ours) and ours[at][2].get("tier") == "optimized",
                          f"{version}: {function} is missing at hit {number}, and no optimized function follows: {ours}")
                check_equal(at, len(ours), f"{version}: functions that V8 does not have at hit {number}")
            print(f"{node} {version}: {missing} functions were inlined")


@scenario
def frames_are_followed_by_frame_pointers_alone_too(run):
    for node, version in nodes():
        with walking(run, node, 40, *FLAGS, APART, options=("--ustack", "fp,127")) as walkers:
            check_equal(len(walkers.events), 40, "hits")
            whole = 0
            for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
                ours, theirs = functions_of(event), expected_of(view)
                whole += are_equal(ours, theirs)
                check(are_equal(ours, theirs) or issues_of(event) or "ustack_end" in event,
                      f"{version}: functions are missing at hit {number}, and nothing says so: {event['ustack']}")
                check(ours and is_one(ours[0], theirs[0]), f"{version}: the innermost one at hit {number}: {ours}")
            check(whole > 10, f"{version}: only {whole} of 40 stacks are whole")
            print(f"{node} {version}: {whole} of 40 stacks are whole; functions of C++ that keep no frame pointer end the others")


@scenario
def rows_of_a_table_have_them_as_events_do(run):
    for node, version in nodes():
        with walking(run, node, 60, *FLAGS, APART, options=("--by", "ustack"), output="table") as walkers:
            lines = [json.loads(line) for line in walkers.result.stdout.splitlines() if '"type":"table"' in line]
            views, whole = [expected_of(view) for _, view in walkers.views], 0
            for row in lines[-1]["rows"]:
                event = {"ustack": row["key"][0], "ustack_end": row.get("ustack_end")}
                ours = functions_of(event)
                same = sum(are_equal(ours, view) for view in views)
                check(same > 0 or issues_of(event) or event["ustack_end"],
                      f"{version}: a row has functions that V8 never had, and nothing says so: {event['ustack']}")
                check(same >= row["count"] or same == 0, f"{version}: {row['count']} hits of {same}: {event['ustack']}")
                whole += row["count"] if same else 0
            check_equal(sum(row["count"] for row in lines[-1]["rows"]), len(views), f"{version}: hits in rows")
            print(f"{node} {version}: {whole} of {len(views)} hits are in rows with the functions that V8 has")


@scenario
def without_the_flags_it_is_said_which_are_missing(run):
    for node, version in nodes():
        with walking(run, node, 12) as walkers:
            texts = [frame.get("error", "") for event in walkers.events for frame in event["ustack"]]
            languages = {frame.get("language") for event in walkers.events for frame in event["ustack"]}
            check_equal(languages, {None}, f"{version}: languages")
            check(any("--perf-basic-prof" in text for text in texts), f"{version}: {set(texts)}")
        with walking(run, node, 12, "--perf-basic-prof") as walkers:
            frames = [frame for event in walkers.events for frame in event["ustack"]]
            names = {frame["function"]: frame["error"] for frame in frames
                     if frame.get("function", "").endswith("InterpreterEntryTrampoline")}
            check_equal(len(names), 1, f"{version}: functions that are interpreted, as one")
            check("--interpreted-frames-native-stack" in next(iter(names.values())), f"{version}: {names}")


@scenario
def a_process_with_a_tmp_and_a_number_of_its_own_has_its_map_there(run):
    node, version = nodes()[0]
    (run.dir / "tmp").mkdir()
    program = "function again() { process.ppid; } setInterval(again, 20);"
    within = f"mount --bind {run.dir}/tmp /tmp && exec {node} {' '.join(FLAGS)} -e '{program}'"
    process = run.start("unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", within, cwd=run.dir)
    wait_until(lambda: list((run.dir / "tmp").glob("perf-*.map")), "the map")
    own = next((run.dir / "tmp").glob("perf-*.map")).name
    child = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
    check(own != f"perf-{child}.map", f"{own}: its number is {child} here, too")
    events = run.trace(PLACE, "-p", child, "--max-events", "3", *FULL).events
    for event in events:
        names = [frame.get("function") for frame in event["ustack"] if frame.get("language") == "javascript"]
        check_equal(names[:1], ["again"], f"{version}: the innermost function of JavaScript")


@scenario
def text_says_that_the_line_is_that_of_the_definition(run):
    node, version = nodes()[0]
    with walking(run, node, 10, *FLAGS, options=(*FULL, "--max-events", "10"), output="text") as walkers:
        lines = [line.strip() for line in walkers.result.stdout.splitlines() if "(javascript, " in line]
        line = definitions_of(walkers)["place"].pop()
        shown = [each for each in lines if each.startswith("place+0x")]
        check(shown and all(f" defined at {SCRIPT}:{line} (javascript, " in each for each in shown), f"{version}: {lines[:5]}")


if __name__ == "__main__":
    main()
