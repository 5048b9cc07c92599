#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Methods of Java on stacks (--ustack): OpenJDK's probes and its perf map. Thread.getStackTrace() at the same places judges.
Methods of one class are compiled when they are first called, each by itself."""

import contextlib
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402 (finds the harness)
from harness import Skip, check, check_equal, main, require_program, require_root, require_x86_64, scenario  # noqa: E402
from harness import wait_line, wait_until  # noqa: E402
from script_stacks import FULL, Walkers, most_memory  # noqa: E402

PLACE = "uprobe:libc.so.6:sched_yield"
COMPILED = ("-Xcomp", "-XX:-Inline", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,Walkers*::*",
            "-XX:+PreserveFramePointer", "-XX:+UseSerialGC", "-Xshare:auto")


def require_java(run):
    """The version; a class is in the scenario's directory."""
    require_root()
    require_x86_64()
    require_program("java", "javac", "jcmd")
    shown = subprocess.run(["java", "-XshowSettings:properties", "-version"], capture_output=True, text=True).stderr
    home = re.search(r"java\.home = (.*)", shown)[1]
    library = f"{home}/lib/server/libjvm.so"
    if "compiled__method__load" not in subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout:
        raise Skip(f"{library} has no probes")
    built = subprocess.run(["javac", "-d", run.dir, HERE / "stack/Walkers.java"], capture_output=True, text=True)
    check(built.returncode == 0, built.stderr)
    return re.search(r"java\.runtime\.version = (.*)", shown)[1]


@contextlib.contextmanager
def walking(run, rounds, *flags, **calls):
    walkers = Walkers(run, [], rounds, probe=PLACE, options=FULL, interpreter="java", script="Walkers",
                      flags=("-cp", run.dir, *flags), **calls)
    try:
        yield walkers
    finally:
        pathlib.Path(f"/tmp/perf-{walkers.pid}.map").unlink(missing_ok=True)


def write_map(pid):
    done = subprocess.run(["jcmd", str(pid), "Compiler.perfmap"], capture_output=True, text=True)
    check(done.returncode == 0, f"jcmd: {done.stdout}{done.stderr}")


def methods_of(event):
    """Of the walkers' classes, but for what the compiler of lambdas made: each with its frame. (None, frame): code that has no
    name of a method, as the interpreter."""
    found = []
    for frame in event["ustack"]:
        if frame.get("language") == "java":
            name = re.sub(r"\(.*", "", frame["function"].split(" ", 1)[1])
            if name.startswith("Walkers") and "$$Lambda" not in name:
                found.append((name, frame))
        elif "address" in frame and "module" not in frame:
            found.append((None, frame))
    return found


def compare(version, number, event, view):
    """Methods are those of the view and in its order. Where one is missing, there is code without a name of a method: it is
    interpreted, since its compiled code was given up at a branch that had never been taken. Returns the methods, and how
    many have no name."""
    ours, at, nameless = methods_of(event), 0, 0
    for name in [name for name, _ in view if name.startswith("Walkers")]:
        upto = next((i for i in range(at, len(ours)) if ours[i][0] is not None), len(ours))
        if upto < len(ours) and ours[upto][0] == name:
            at = upto + 1
            continue
        check(at < upto, f"{version}: {name} is missing at hit {number}: {[each for each, _ in ours]}, expected {view}")
        at, nameless = at + 1, nameless + 1
    check(all(name is None for name, _ in ours[at:]), f"{version}: hit {number}: {[each for each, _ in ours]}, expected {view}")
    return [(name, frame) for name, frame in ours if name is not None], nameless


@scenario
def methods_that_are_compiled_while_the_trace_runs_are_those_of_the_threads_own_view(run):
    version = require_java(run)
    with walking(run, 150, *COMPILED) as walkers:
        check(len(walkers.views) >= 150, f"only {len(walkers.views)} places")
        check_equal(len(walkers.events), len(walkers.views), "hits")
        named, nameless = 0, 0
        for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
            ours, without = compare(version, number, event, view)
            check(not any("error" in frame for _, frame in ours), f"{version}: hit {number}: {ours}")
            # What was compiled before the trace has no name.
            check("Walkers.main" not in [name for name, _ in ours], f"{version}: hit {number}: {ours}")
            named, nameless = named + len(ours), nameless + without
        texts = {frame.get("error") for event in walkers.events for frame in event["ustack"]}
        check(any("jcmd PID Compiler.perfmap" in str(text) for text in texts), f"{texts}")
        check(nameless < len(walkers.views) + named / 10, f"{nameless} methods have no name, {named} have")
        print(f"OpenJDK {version}: {len(walkers.events)} stacks, {named} methods as getStackTrace() has them; without a name "
              f"{nameless}: main(), and those that are interpreted")


@scenario
def a_map_that_was_written_while_the_trace_runs_has_the_rest(run):
    version = require_java(run)
    with walking(run, 40, *COMPILED, before=write_map) as walkers:
        for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
            ours, _ = compare(version, number, event, view)
            check_equal(ours[-1][0], "Walkers.main", f"{version}: the outermost method at hit {number}")
            check(not any("error" in frame for _, frame in ours), f"{version}: hit {number}: {ours}")
        frames = [frame for event in walkers.events for frame in event["ustack"]]
        interpreted = [frame for frame in frames if frame.get("function") == "Interpreter"]
        check(interpreted and all("interpreter runs it" in frame["error"] for frame in interpreted), f"{interpreted[:2]}")


@scenario
def a_map_that_was_written_before_says_so(run):
    """What it has may have been another method's code by the time of the trace."""
    version = require_java(run)
    with walking(run, 20, *COMPILED, early=write_map) as walkers:
        for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
            ours, _ = compare(version, number, event, view)
            check_equal(ours[-1][0], "Walkers.main", f"{version}: the outermost method at hit {number}")
            check("as its perf map said at another time: written at " in ours[-1][1]["error"], f"{ours[-1]}")
            check(not any("error" in frame for _, frame in ours[:-1]), f"{version}: hit {number}: {ours}")


@scenario
def a_program_that_compiles_without_end_holds_nobody_up_and_fills_no_memory(run):
    require_root()
    require_x86_64()
    program = run.build("java", [HERE / "stack/fake_java.c"], ["-O1", "-rdynamic", "-pthread"])
    process = run.start(program, "800", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    tracing = run.trace_start([PLACE], "--ustack", "-p", str(process.pid))
    wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
    before = most_memory(tracing.process.pid)
    process.stdin.write(b"go\n")
    wait_until(lambda: tracing.stdout().count('"type":"event"') >= 600, "hits are shown while it goes on", 60)
    check(process.poll() is None, "it has ended")
    grown = most_memory(tracing.process.pid) - before
    tracing.signal(signal.SIGINT)
    result = tracing.finish(20)
    result.check_code(0)
    process.kill()
    check(grown < 200 << 20, f"the tracer took {grown >> 20} MiB more")
    print(f"{len(result.events)} hits, the tracer took {grown >> 20} MiB more")


if __name__ == "__main__":
    main()
