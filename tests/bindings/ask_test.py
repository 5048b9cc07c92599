#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One question, asked by flags, in a script, and by the libraries for C++, C, Python and JavaScript, has one answer: byte for
byte of a recording; of a running program but for what differs from one trace of it to the next."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "programs"), str(HERE.parent / "live"), str(ROOT / "bindings/python")]

from harness import check, check_equal, main, require_root, scenario, wait_until  # noqa: E402
import puppet  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402

BUILD = pathlib.Path(os.environ["USDT_BUILD_DIR"])
ENVIRONMENT = {**os.environ, "USDT_LIBRARY": str(BUILD / "bindings/c/libusdt-c.so"),
               "USDT_NODE_ADDONS": str(BUILD / "bindings/node")}
PYTHON = """
import json, sys, usdt
points, options, file = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
with usdt.ask(*points, export={"json": file}, **options) as answers, open(file + ".seen", "w") as seen:
    for answer in answers:
        print(json.dumps(answer), file=seen)
"""

# Of events of puppet:beat(n, "beat text", 3 n).
OF_EVENTS = [
    {},
    {"print": "arg0, str(arg1), hex(arg2)"},
    {"print": "arg2, pid, comm, probe"},
    {"where": "arg0 % 2 == 0"},
    {"where": 'str(arg1) =~ "beat*" && arg2 > 9', "print": "str(arg1)"},
    {"where": "arg0 in {1, 3, 5}"},
    {"print": "hex(arg2), arg0, tid"},
    {"strings": "auto"},
    {"max_events": 3},
]
# Of what a recording does not have, unless it was asked for then.
OF_LIVE_EVENTS = [{"string_size": 4, "print": "str(arg1)"}, {"print": "buf(arg1, 4), arg0"}, {"ustack": True, "print": "arg0", "max_events": 8}]
OF_TABLES = [
    {"count": True},
    {"by": "comm, arg0 % 3"},
    {"by": "str(arg1)", "sum": "arg2"},
    {"by": "arg0 % 2", "avg": "arg2", "top": 1},
    {"max": "arg2", "min": "arg2"},
    {"distinct": "arg0 % 4", "by": "probe"},
    {"hist": "arg2"},
    {"hist": "arg2", "hist_detail": 2},
    {"lhist": "arg0:0:10:2", "by": "pid"},
    {"by": "arg0", "max_rows": 64, "where": "arg2 < 12"},
]
# Of calls, whose durations differ from trace to trace: of recordings only.
OF_CALLS = [{"latency": True, "by": "comm"}, {"slowest": 3, "print": "duration"}, {"hist": "duration"}, {"where": "duration > 0"}]


def words_of(options):
    """Options as flags, as what comes behind "--" of the programs in C and C++, and as lines of a script."""
    flags, pairs, lines = [], [], []
    for name, value in options.items():
        option = name.replace("_", "-")
        flags += [f"--{option}"] if value is True else [f"--{option}", str(value)]
        pairs.append(option if value is True else f"{option}={value}")
        lines.append(f"{option} = {json.dumps(value if value is True or isinstance(value, int) else str(value))}")
    return flags, pairs, lines


def camel(name):
    return re.sub("_(.)", lambda letter: letter[1].upper(), name)


def ways(run, points, options, of_run, stem):
    """The commands that ask a question, by the name of the way, each with the file its answers are in."""
    flags, pairs, lines = words_of(options)
    flags_of_run, pairs_of_run, _ = words_of(of_run)
    script = run.dir / f"{stem}.toml"
    script.write_text("\n".join(["[question.all]", f"probes = {json.dumps(points)}", *lines, ""]))
    both = {**options, **of_run}
    file = {way: run.dir / f"{stem}.{way}" for way in ("flags", "script", "cpp", "c", "python", "node")}
    options_of_node = {"export": {"json": str(file["node"])}, **{camel(name): value for name, value in both.items()}}
    return {
        "flags": ([run.tool, *points, *flags, *flags_of_run, "-f", "json", "-o", file["flags"]], file["flags"]),
        "script": ([run.tool, "--script", script, *flags_of_run, "-f", "json", "-o", file["script"]], file["script"]),
        "cpp": ([BUILD / "bin/ask-cpp", file["cpp"], *points, "--", *pairs, *pairs_of_run], file["cpp"]),
        "c": ([BUILD / "bin/ask-c", file["c"], *points, "--", *pairs, *pairs_of_run], file["c"]),
        "python": ([sys.executable, "-c", PYTHON, json.dumps(points), json.dumps(both), file["python"]], file["python"]),
        "node": (["node", HERE / "ask.js", json.dumps(points), json.dumps(options_of_node)], file["node"]),
    }


def environment():
    return {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "bindings/python")}


def has_way(way):
    return way != "node" or (BUILD / "bindings/node/usdt_tracing.node").exists()


def answers_in(file, way):
    """Of a question of a script its name is in each line."""
    text = file.read_text()
    return text.replace('"question":"all",', "") if way == "script" else text


def check_python_saw(file):
    seen = [json.loads(line) for line in pathlib.Path(f"{file}.seen").read_text().splitlines()]
    check_equal(seen, [json.loads(line) for line in file.read_text().splitlines()], "answers that Python was given")


def check_recorded(run, recording, points, questions):
    for number, options in enumerate(questions):
        answers = {}
        for way, (command, file) in ways(run, points, options, {"replay": str(recording)}, f"q{number}").items():
            if not has_way(way):
                continue
            done = subprocess.run(command, env=environment(), capture_output=True, text=True)
            check_equal(done.returncode, 0, f"{way} {options}: {done.stderr}")
            answers[way] = answers_in(file, way)
        check('"type":"summary"' in answers["flags"], f"{options}: {answers['flags']}")
        for way, text in answers.items():
            check_equal(text, answers["flags"], f"{options}: by {way}, and by flags")
        check_python_saw(run.dir / f"q{number}.python")


@scenario
def a_question_about_a_recording_has_one_answer(run):
    program = puppet.build(run)
    recording = run.dir / "beats.rec"
    run.trace(probe_of(program), "--ustack", "--record", recording, command=[program, "fire:12"]).check_code(0)
    check_recorded(run, recording, [probe_of(program)], OF_EVENTS + OF_TABLES)


@scenario
def a_question_about_recorded_calls_has_one_answer(run):
    program = puppet.build(run)
    recording = run.dir / "takes.rec"
    run.trace(f"ucall:{program}:take", "--record", recording, command=[program, "take:40"]).check_code(0)
    check_recorded(run, recording, [f"ucall:{program}:take"], OF_CALLS)


def alike(text):
    """Without what differs from one trace of the same hits to the next."""
    return re.sub(r'"(ts|time)":("[^"]*"|\d+)', r'"\1":0', text)


def has_attached(process):
    """Whether a tracer has a link, or has ended."""
    if process.poll() is not None:
        return True
    with contextlib.suppress(FileNotFoundError):
        return any("bpf_link" in os.readlink(each) for each in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
    return False


def check_live(run, program, options, number):
    """All at once: of the same hits, until the process has ended."""
    target = Puppet(run, program)
    asking = {way: (run.start(*map(str, command), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), file)
              for way, (command, file) in ways(run, [probe_of(program)], options, {"pid": target.pid}, f"live{number}").items() if has_way(way)}
    wait_until(lambda: all(has_attached(process) for process, _ in asking.values()), f"{options}: all are attached")
    target.order("fire:8")
    if "max_events" not in options:  # stacks are looked up while the process is there
        target.process.stdin.close()
    answers = {}
    for way, (process, file) in asking.items():
        _, said = process.communicate(timeout=30)
        check_equal(process.returncode, 0, f"{way} {options}: {said}")
        answers[way] = alike(answers_in(file, way))
    check("beat" in answers["flags"] or '"count":' in answers["flags"], answers["flags"])
    for way, text in answers.items():
        check_equal(text, answers["flags"], f"{options}: by {way}, and by flags")


@scenario
def a_question_about_a_running_program_has_one_answer(run):
    require_root()
    program = puppet.build(run)
    for number, options in enumerate(OF_EVENTS + OF_LIVE_EVENTS + OF_TABLES):
        check_live(run, program, options, number)


if __name__ == "__main__":
    main()
