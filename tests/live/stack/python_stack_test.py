#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Python on stacks (--ustack). The interpreter's own view of the stack at the same places judges: names,
files and lines. USDT_PYTHONS, paths with ':' between them, has other interpreters than the distribution's."""

import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, Tracing, check, check_equal, main, require_file, require_root, require_x86_64, scenario  # noqa: E402
from harness import wait_line, wait_until  # noqa: E402
from script_stacks import FULL, PLACE, PYTHON, Walkers, functions_cost, issues_of, most_memory, script_of  # noqa: E402
from script_stacks import trace_pretender  # noqa: E402

WAIT = "uprobe:libc.so.6:clock_nanosleep"


def pythons():
    others = os.environ.get("USDT_PYTHONS", "")
    paths = [f"/usr/bin/python3.{minor}" for minor in (11, 12, 13, 14)] + (others.split(":") if others else [])
    return [path for path in paths if pathlib.Path(path).exists()]


def require_python():
    require_root()
    require_x86_64()  # what pthread_self() returns is the thread pointer there
    require_file(PYTHON)


def compare(walkers, at_least, by_thread=False):
    """Each event has the functions that the interpreter says, innermost first, behind the one that looks."""
    views = walkers.views
    events = walkers.events
    check(len(views) >= at_least, f"only {len(views)} places")
    check_equal(len(events), len(views), "hits")
    if by_thread:
        events = sorted(events, key=lambda event: (event["tid"], event["ts"]))
        views = sorted(views, key=lambda view: view[0])  # stable
    for number, (event, (tid, view)) in enumerate(zip(events, views)):
        script = script_of(event)
        check(script and script[0][0] in ("place", "waiting_place"), f"hit {number}: {script} {issues_of(event)}")
        check_equal(script[1:], view, f"functions at hit {number}")
        check_equal(issues_of(event), [], f"what is missing at hit {number}")
        if by_thread:
            check_equal(event["tid"], tid, f"thread of hit {number}")
    return len(views)


def compare_native(walkers):
    """Native functions are complete around those of the script, and none of them is the interpreter's loop."""
    for number, event in enumerate(walkers.events):
        stack = event["ustack"]
        check("ustack_end" not in event, f"hit {number} ends early: {event.get('ustack_end')}")
        check(stack[-1].get("function") in ("_start", "__clone3", "clone3"), f"outermost at hit {number}: {stack[-1]}")
        innermost = stack[0]
        check("language" not in innermost and "getppid" in innermost["function"], f"innermost at {number}: {innermost}")
        loops = [frame for frame in stack if frame.get("function", "").startswith("_PyEval_EvalFrameDefault")]
        check_equal(loops, [], f"hit {number}: calls of the loop without a function of the script")


@scenario
def functions_are_those_of_the_interpreters_own_view(run):
    require_python()
    for python in pythons():
        walkers = Walkers(run, ["nested"], 240, interpreter=python)
        count = compare(walkers, 200)
        compare_native(walkers)
        functions = sum(len(script_of(event)) for event in walkers.events)
        print(f"{python}: {count} stacks, {functions} functions of scripts, all as the interpreter has them")


@scenario
def a_callback_stands_between_the_native_functions_that_called_it(run):
    """sorted() calls its key: the function that called sorted() comes behind list_sort_impl() and its callers."""
    require_python()
    walkers = Walkers(run, ["nested"], 60)
    found = 0
    for event in walkers.events:
        names = [(frame.get("language"), frame.get("function", "")) for frame in event["ustack"]]
        for i, (language, name) in enumerate(names):
            if language == "python" and name.endswith("by_key_of_sorted.<locals>.<lambda>"):
                caller = next(j for j in range(i + 1, len(names)) if names[j][0] == "python")
                check(caller > i + 1, f"no native function between {names[i]} and {names[caller]}")
                check_equal(names[caller][1], "Ways.by_key_of_sorted", "who called sorted()")
                found += 1
            if language == "python" and name == "Ways.by_call":
                check_equal(names[i + 1], ("python", "Ways.step"), "what calls without native functions between")
    check(found > 0, "sorted() was on no stack")


@scenario
def each_thread_has_functions_of_its_own(run):
    require_python()
    for python in pythons():
        compare(Walkers(run, ["threads"], 200, interpreter=python), 190, by_thread=True)


@scenario
def a_thread_without_the_lock_has_its_functions(run):
    require_python()
    for python in pythons():
        compare(Walkers(run, ["waiting"], 80, probe=WAIT, interpreter=python), 70, by_thread=True)


@scenario
def a_process_of_another_pid_namespace_has_its_functions(run):
    require_python()
    compare(Walkers(run, ["nested"], 30, prefix=["unshare", "--pid", "--fork", "--kill-child"]), 30)


@scenario
def code_that_is_made_anew_in_the_same_memory_is_never_taken_for_what_was_there(run):
    """What was freed before its name could be read has none, and says so."""
    require_python()
    walkers = Walkers(run, ["changing"], 400)
    check_equal(len(walkers.events), 400, "hits")
    named = 0
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        script = script_of(event)
        check_equal(len(script) - 1, len(view), f"functions at hit {number}")
        for frame, ours, theirs in zip([each for each in event["ustack"] if "language" in each][1:], script[1:], view):
            if "error" in frame:
                check("freed" in frame["error"] and "function" not in frame, f"hit {number}: {frame}")
            else:
                check_equal(ours, theirs, f"function at hit {number}")
                named += ours[0].startswith("made_")
    print(f"{named} of 400 functions that live for a moment were named in time")


@scenario
def deep_recursion_is_cut_and_that_is_said(run):
    require_python()
    walkers = Walkers(run, ["deep"], 5, options=FULL)
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        script = script_of(event)
        check_equal(len(script), 128, "functions of a record")
        check_equal(script[1:], view[:127], f"functions at hit {number}")
        issues = issues_of(event)
        check(any("more functions of the script" in issue for issue in issues), f"hit {number}: {issues}")
    walkers = Walkers(run, ["deep"], 5, options=("--ustack", "dwarf,20"))
    for event, (_, view) in zip(walkers.events, walkers.views):
        script = script_of(event)
        check(10 < len(script) <= 20, f"{len(script)} functions of 20")
        check_equal(script[1:], view[:len(script) - 1], "the innermost ones")
        check_equal(event["ustack_end"], "as many frames as were asked for", "why it ends")


@scenario
def a_short_copy_of_the_stack_is_followed_by_what_the_script_runs(run):
    """The native functions end where the copy does. Those of the script go on, and it is said that others lie between."""
    require_python()
    walkers = Walkers(run, ["nested"], 40, options=("--ustack", "dwarf,500", "--ustack-size", "4"))
    cut = 0
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        check_equal(script_of(event)[1:], view, f"functions at hit {number}")
        if not issues_of(event):
            continue
        cut += 1
        check("ustack_end" in event, f"hit {number} is whole, and functions came apart")
        check_equal(issues_of(event), ["functions of the script alone from here on"], f"hit {number}")
        at = next(i for i, frame in enumerate(event["ustack"]) if "alone" in frame.get("error", ""))
        rest = event["ustack"][at + 1:]
        check(all(frame.get("language") == "python" for frame in rest), f"hit {number}: {rest}")
    check(cut > 2, f"only {cut} stacks were cut")


@scenario
def by_frame_pointers_they_come_apart(run):
    """Debian's Python keeps no frame pointers: nobody knows where the functions belong among what was found so."""
    require_python()
    walkers = Walkers(run, ["nested"], 20, options=("--ustack", "fp,64"))
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        check_equal(script_of(event)[1:], view[:len(script_of(event)) - 1], f"functions at hit {number}")
        first = next(i for i, frame in enumerate(event["ustack"]) if "language" in frame)
        before = event["ustack"][first - 1]
        check("could not be placed" in before["error"], f"hit {number}: {before}")


@scenario
def a_process_that_is_met_by_its_first_hit_has_them_from_then_on(run):
    require_python()
    walkers = Walkers(run, ["nested"], 3000, options=("--ustack", "dwarf,40", "--ustack-size", "4"),
                      named=False)
    late = [number for number, event in enumerate(walkers.events) if not script_of(event)]
    check(late and len(late) < 2900 and late == list(range(len(late))), f"hits without functions: {late}")
    for number in late:
        issues = issues_of(walkers.events[number])
        check(any("was not known yet" in issue for issue in issues), f"hit {number}: {issues}")
    print(f"{len(late)} of {len(walkers.events)} hits were before the process was known")


@scenario
def a_forked_child_has_them_from_its_first_hit(run):
    """It is known by its parent."""
    require_python()
    walkers = Walkers(run, ["forked"], 200, options=(*FULL, "--children"))
    compare(walkers, 200)


@scenario
def a_program_that_only_looks_like_python_gets_no_names_and_harms_nobody(run):
    require_python()
    result = trace_pretender(run, "python3.11", "0x030b02f0ul", 1000)
    frames = [frame for event in result.events for frame in event["ustack"] if frame.get("language") == "python"]
    check(frames, "nothing was followed")
    named = [frame for frame in frames if frame.get("function")]
    check_equal(named, [], "names that nobody has")
    print(f"{len(frames)} made-up functions at {len(result.events)} hits, none of them named")


@scenario
def a_version_that_is_not_known_has_native_functions_and_a_notice(run):
    require_python()
    result = trace_pretender(run, "python3.11", "0x036302f0ul", 5)
    check("CPython 3.99: its stacks have no functions of scripts" in result.stderr, result.stderr)
    for event in result.events:
        check(all("language" not in frame for frame in event["ustack"]), event["ustack"])
        check_equal(event["ustack"][-1].get("function"), "_start", "the outermost function")


@scenario
def a_command_is_known_before_its_script_has_run_for_long(run):
    require_python()
    script = run.dir / "command.py"
    script.write_text("import os, time\n"
                      "time.sleep(1)\n"
                      "def place():\n"
                      "    os.getppid()\n"
                      "for i in range(5):\n"
                      "    place()\n"
                      "time.sleep(1)\n")
    result = run.trace([PLACE], "--ustack", command=[PYTHON, script])
    result.check_code(0)
    of_script = [script_of(event) for event in result.events]
    check_equal(of_script, [[["place", str(script), 4], ["<module>", str(script), 6]]] * 5, "functions at each hit")


def check_in_time(shown, expected, what):
    """Who ends at once is gone before a busy machine runs the tracer: one of some runs is in time."""
    tries = [shown()]
    while tries[-1] != expected and len(tries) < 6:
        tries.append(shown())
    check_equal(tries[-1], expected, f"{what}, the last of {len(tries)} runs")


@scenario
def a_command_that_executes_python_is_known_before_the_first_hit(run):
    """Such a process is looked at again within milliseconds, though nothing else happens meanwhile."""
    require_python()
    script = run.dir / "command.py"
    script.write_text("import os, time\n"
                      "time.sleep(0.03)\n"
                      "os.getppid()\n"
                      "time.sleep(0.5)\n")

    def functions():
        result = run.trace([PLACE], "--ustack", command=["/usr/bin/env", PYTHON, "-I", "-S", script])
        result.check_code(0)
        return [script_of(event) for event in result.events]
    check_in_time(functions, [[["<module>", str(script), 3]]], "functions at each hit")


# Many functions, each hit once, in a process that ends before the first stack is named: files with debug information are
# read for its native functions.
SHORT = """
import os, time
for n in range(30): exec(f"def made_{n}(): os.getppid()")
for n in range(30): globals()[f"made_{n}"]()
time.sleep(0.03)
"""


@scenario
def a_script_that_ends_at_once_has_the_names_of_all_its_hits(run):
    require_python()
    script = run.dir / "short.py"
    script.write_text(SHORT)

    def innermost():
        result = run.trace([PLACE], "--ustack", command=[PYTHON, script])
        result.check_code(0)
        times = [event["ts"] for event in result.events]
        check_equal(times, sorted(times), "the order of events")
        return [script_of(event)[0] for event in result.events]
    check_in_time(innermost, [[f"made_{n}", "<string>", 1] for n in range(30)], "innermost functions")


MANY_FILES = """
import mmap, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
time.sleep(0.2)
kept = []
for n in range(3000):
    with open(f"{sys.argv[1]}/{n}", "wb+") as file:
        file.truncate(4096)
        kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC))
def place(): os.getppid()
place()
time.sleep(0.05)
os._exit(0)
"""


@scenario
def names_are_read_before_what_the_process_has_mapped(run):
    """Reading 3000 mapped files takes longer than the process lives on."""
    require_python()
    script = run.dir / "many.py"
    script.write_text(MANY_FILES)

    def names():
        result = run.trace([PLACE], "--ustack", command=[PYTHON, script, run.dir])
        result.check_code(0)
        return [[name for name, _, _ in script_of(event)] for event in result.events]
    check_in_time(names, [["place", "<module>"]], "functions at the hit")


@scenario
def text_and_folded_stacks_have_them(run):
    require_python()
    walkers = Walkers(run, ["nested"], 13, output="text")
    text = walkers.result.stdout
    (_, view) = walkers.views[-1]
    name, file, line = view[0]
    check(f"    {name} at {file}:{line} (python)" in text, text[-3000:])
    walkers = Walkers(run, ["nested"], 13, output="folded")
    folded = walkers.result.stdout
    names = ";".join(each[0] for each in reversed(walkers.views[0][1]))
    check(any(f"{names};place;" in row for row in folded.splitlines()), f"{names} is not in\n{folded}")


@scenario
def a_function_costs_some_hundred_nanoseconds_at_the_hit(run):
    require_python()
    script = run.dir / "levels.py"
    script.write_text("import os, sys\n"
                      "def down(levels):\n"
                      "    if levels: return down(levels - 1)\n"
                      "    for i in range(200): os.getppid()\n"
                      "print('ready', flush=True)\n"
                      "for line in sys.stdin: down(int(line)); print('done', flush=True)\n")
    functions_cost(run, PYTHON, script)


@scenario
def a_recording_has_their_names(run):
    require_python()
    file = run.dir / "python.rec"
    walkers = Walkers(run, ["nested"], 60, options=(*FULL, "--record", file))
    walkers.events = run.trace([], "--replay", file).events
    compare(walkers, 60)


# 600 functions that share a table of lines of 1 MiB: what a reader of processes keeps of each is not bounded by what
# the process takes.
HUGE_TABLES = """
import os, sys, types
def call(): return os.getppid()
table = bytes(1 << 20)
functions = [types.FunctionType(call.__code__.replace(co_linetable=table, co_name=f"f{n}", co_qualname=f"f{n}"), globals())
             for n in range(600)]
print("ready", flush=True)
sys.stdin.readline()
for function in functions: function()
sys.stdin.readline()
"""


@scenario
def functions_with_huge_tables_of_lines_do_not_fill_memory(run):
    require_python()
    traced = run.start(PYTHON, "-c", HUGE_TABLES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    check_equal(wait_line(traced), "ready", "what the program says")
    tracing = Tracing(run.tool_argv([PLACE], ["--ustack", "-p", traced.pid], output="json"), run.dir)
    run.adopt(tracing.process)
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    before = most_memory(tracing.process.pid)
    traced.stdin.write(b"go\n")
    wait_until(lambda: tracing.stdout().count('"type":"event"') >= 600, "the hits are there", 60)
    grown = most_memory(tracing.process.pid) - before
    tracing.signal(signal.SIGINT)
    names = {script_of(event)[0][0] for event in tracing.finish().events}
    check_equal(len(names), 600, "functions with a name")
    check(grown < 200 << 20, f"the tracer took {grown >> 20} MiB more")


if __name__ == "__main__":
    main()
