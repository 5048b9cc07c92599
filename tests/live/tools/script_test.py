#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--script: several questions of one run, each with an answer and an account of its own, which are those it has alone."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import Tracing, check, check_equal, main, require_file, require_root, scenario, wait_until  # noqa: E402
from where_hits import Hit, build  # noqa: E402

EXAMPLES = HERE.parents[1] / "examples/scripts"

SCRIPT = """
[question.rows]
probes = ["usdt:{0}:where:numbers"]
by = "arg2 % 3"
sum = "arg0"

[question.few]
probes = ["usdt:{0}:where:numbers"]
where = "arg0 in {{-250, 0, 249}}"
print = "arg0, str(arg3)"

[question.calls]
probes = ["ucall:{0}:serve"]
by = "step"

[question.spans]
probes = ["usdt:{0}:where:numbers ~~ uretprobe:{0}:serve"]
by = "end.retval % 2"

[question.first]
probes = ["usdt:{0}:where:numbers"]
max-events = 4
format-string = "%{{arg0}}"
"""


def scripted(run, text, *options, command=None, code=0):
    file = run.dir / "script.toml"
    file.write_text(text)
    done = subprocess.run([run.tool, "--script", file, *options, *(["--", *command] if command else [])], capture_output=True, text=True,
                          timeout=120)
    check_equal(done.returncode, code, done.stderr)
    return done


def answers(stdout):
    """The objects of each question."""
    told = collections.defaultdict(list)
    for line in stdout.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            told[record["question"]].append(record)
    return told


def check_answers(told, hits):
    rows = {row["key"][0]: (row["count"], row["sum"]) for row in told["rows"][0]["rows"]}
    check_equal(rows, {rest: (sum(h.byte % 3 == rest for h in hits), sum(h.short for h in hits if h.byte % 3 == rest)) for rest in range(3)},
                "rows")
    check_equal([event["args"] for event in told["few"][:-1]], [[h.short, h.name] for h in hits if h.short in (-250, 0, 249)], "events")
    check_equal(told["few"][-1]["rejected"], 497, "hits that few rejects")
    check_equal({row["key"][0]: row["count"] for row in told["calls"][0]["rows"]}, dict(collections.Counter(h.step for h in hits)), "calls")
    check_equal({row["key"][0]: row["count"] for row in told["spans"][0]["rows"]},
                dict(collections.Counter((abs(h.result) % 2) * (1 if h.result >= 0 else -1) for h in hits)), "spans")
    check_equal([event["args"] for event in told["first"][:-1]], [[h.short] for h in hits[:4]], "the first events")
    for name, events in (("rows", 500), ("few", 3), ("calls", 500), ("spans", 500), ("first", 4)):
        summary = told[name][-1]
        check_equal((summary["type"], summary["events"]), ("summary", events), name)


@scenario
def each_question_has_the_answer_it_has_alone(run):
    program = build(run)
    log = run.dir / "said"
    done = scripted(run, SCRIPT.format(program), "-f", "json", command=["sh", "-c", f"exec {program} > {log}"])
    hits = [Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    check_equal(len(hits), 500, "lines of the program")
    check_answers(answers(done.stdout), hits)


@scenario
def people_see_whose_line_it_is(run):
    program = build(run)
    done = scripted(run, SCRIPT.format(program), command=["sh", "-c", f"exec {program} > /dev/null"])
    lines = done.stdout.splitlines()
    check_equal(sum(bool(re.match(r"few    \d\d:\d\d:\d\d\.\d{6} where-O2 .* where:numbers arg0=-?\d+ str\(arg3\)=", line)) for line in lines), 3, "few")
    check_equal([line for line in lines if line.startswith("first  ")], [f"first  {n}" for n in range(-250, -246)], "lines of its own")
    for name in ("rows", "calls", "spans"):
        check_equal(sum(bool(re.match(rf"{name:5}  \d\d:\d\d:\d\d\.\d{{6}}$", line)) for line in lines), 1, f"heading of {name}")
    for name, words in (("rows", "500 of 500 hits in the table"), ("few", "3 events of 500 hits"), ("first", "4 events of")):
        check(f"\n{name}: {words}" in "\n" + done.stderr, f"{name}: {done.stderr}")
        check(f"{name}: attached " in done.stderr, done.stderr)


@scenario
def a_recording_answers_the_questions_it_has_the_probes_of(run):
    program = build(run)
    log, file = run.dir / "said", run.dir / "recording"
    done = subprocess.run([run.tool, f"usdt:{program}:where:numbers", f"ucall:{program}:serve", "--record", file, "--",
                           "sh", "-c", f"exec {program} > {log}"], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    hits = [Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    text = SCRIPT.format(program)
    text = text[:text.index("[question.spans]")] + text[text.index("[question.first]"):]
    told = answers(scripted(run, "duration = 5\n" + text.replace('"arg0, str(arg3)"', '"arg0"'), "-f", "json", "--replay", file).stdout)
    rows = {row["key"][0]: row["sum"] for row in told["rows"][0]["rows"]}
    check_equal(rows, {rest: sum(h.short for h in hits if h.byte % 3 == rest) for rest in range(3)}, "rows")
    check_equal([event["args"] for event in told["few"][:-1]], [[h.short] for h in hits if h.short in (-250, 0, 249)], "events")
    check_equal(sum(row["count"] for row in told["calls"][0]["rows"]), 500, "calls")
    check_equal([told[name][-1]["hits"] for name in ("rows", "few", "calls", "first")], [500] * 4, "hits of their own probes")
    other = scripted(run, "[question.a]\nprobes = ['no:such']\n", "--replay", file, code=1)
    check("has none of these probes" in other.stderr, other.stderr)


@scenario
def a_signal_and_the_duration_end_all_of_it(run):
    program = build(run)
    run_file = run.dir / "script.toml"
    run_file.write_text(SCRIPT.format(program) + "\n")
    done = scripted(run, "duration = 0.3\n" + SCRIPT.format(program))
    check_equal(done.stderr.count(" in the table"), 3, done.stderr)
    run_file.write_text(SCRIPT.format(program))
    process = subprocess.Popen([run.tool, "--script", run_file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(5):
        while "attached" not in process.stderr.readline():
            pass
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    check_equal(process.returncode, 0, errors)
    check_equal(errors.count(" in the table"), 3, errors)


@scenario
def one_file_takes_what_all_of_them_find(run):
    program = build(run)
    shown = run.dir / "shown"
    scripted(run, SCRIPT.format(program), "-f", "json", "-o", shown, command=["sh", "-c", f"exec {program} > /dev/null"])
    told = answers(shown.read_text())
    check_equal({name: told[name][-1]["type"] for name in ("rows", "few", "calls", "spans", "first")},
                dict.fromkeys(("rows", "few", "calls", "spans", "first"), "summary"), "summaries")
    check_equal(len(told["few"]), 4, "events of few, and its summary")


@scenario
def a_question_that_cannot_be_asked_is_named_with_its_place(run):
    program = build(run)
    text = "\n[question.good]\nprobes = ['usdt:{0}:where:numbers']\n\n[question.bad]\nprobes = ['usdt:{0}:where:numbers']\nwhere = 'str(arg0) == 1'\n"
    done = scripted(run, text.format(program), code=2)
    check("script.toml:5:11: bad: " in done.stderr, done.stderr)
    check("where:numbers(" in done.stderr, done.stderr)


def example(run, name, *options, command):
    done = subprocess.run([run.tool, "--script", EXAMPLES / name, "-f", "json", *options, "--", *map(str, command)], capture_output=True,
                          text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    return answers(done.stdout)


@scenario
def the_example_about_python_tells_what_a_program_did(run):
    require_file("/usr/bin/python3.11")
    program = run.dir / "work.py"
    program.write_text("import gc\nimport colorsys\n"
                       "for _ in range(7):\n    gc.collect()\n")
    told = example(run, "python.toml", command=["/usr/bin/python3.11", "-I", program])
    check(told["collections"][-1]["events"] >= 7, told["collections"][-1])
    imports = [row["key"][0] for row in told["imports"][0]["rows"]]
    check("colorsys" in imports, f"imports: {imports}")


@scenario
def the_example_about_memory_tells_how_much_was_asked_for(run):
    source = run.dir / "asks.c"
    source.write_text("#include <stdlib.h>\nint main(void) {\n  for (int i = 0; i < 100; i++) { void *volatile p = malloc(3000); free(p); }\n"
                      "  void *volatile q = malloc(5 << 20); free(q); return 0;\n}\n")
    program = run.build("asks", [source], ["-O1"])
    told = example(run, "memory.toml", command=[program])
    bars = {bar["first"]: bar["count"] for bar in told["sizes"][0]["rows"][0]["buckets"]}
    check(bars[2048] >= 100 and bars[4 << 20] >= 1, bars)
    check(any(event["args"] == [5 << 20] for event in told["large"][:-1]), told["large"])
    slices = [record for record in told["sizes-by-time"] if record["type"] == "heat"]
    check_equal(sum(record["count"] for record in slices), sum(bars.values()), "hits of both")
    check(told["times"][0]["rows"][0]["count"] >= 101, told["times"][0])


@scenario
def the_example_about_exceptions_tells_who_threw(run):
    source = run.dir / "throws.cpp"
    source.write_text("#include <stdexcept>\n[[gnu::noinline]] void fails(int n) { throw std::runtime_error(n % 2 ? \"odd\" : \"even\"); }\n"
                      "int main() {\n  int caught = 0;\n  for (int i = 0; i < 25; i++) try { fails(i); } catch (const std::exception&) { ++caught; }\n"
                      "  return caught == 25 ? 0 : 1;\n}\n")
    program = run.dir / "throws"
    done = subprocess.run(["g++", "-O1", "-g", source, "-o", program], capture_output=True, text=True)
    check_equal(done.returncode, 0, done.stderr)
    told = example(run, "exceptions.toml", command=[program])
    rows = told["thrown"][0]["rows"]
    check_equal([(row["key"][0], row["count"]) for row in rows], [("throws", 25)], "exceptions")
    check_equal(told["caught"][-1]["events"], 25, "spans")
    first = [record for record in told["first"] if record["type"] == "event"]
    check_equal(len(first), 3, "events")
    check(all(any(frame.get("function") == "fails(int)" for frame in event["ustack"]) for event in first), first[0]["ustack"])


@scenario
def a_question_of_a_replay_has_the_types_of_its_own_probes(run):
    require_root()
    source = run.dir / "typed.c"
    source.write_text("""
        #include <sys/sdt.h>
        int main(void) {
          for (unsigned long i = 0; i < 30; i++) {
            unsigned long large = i << 40;
            int small = 3 - (int)i;
            DTRACE_PROBE1(app, large, large);
            DTRACE_PROBE1(app, small, small);
          }
        }""")
    program = run.build("typed", [source], ["-O1"])
    file = run.dir / "recording"
    subprocess.run([run.tool, f"usdt:{program}:app:*", "--record", file, "--", program], check=True, timeout=60,
                   capture_output=True)
    told = answers(scripted(run, "[question.a]\nprobes = ['app:small']\nsum = 'arg0'\n", "-f", "json", "--replay", file).stdout)
    check_equal([(row["count"], row["sum"]) for row in told["a"][0]["rows"]], [(30, sum(3 - i for i in range(30)))], "rows")
    both = subprocess.run([run.tool, "--replay", file, "--sum", "arg0", "--by", "probe"], capture_output=True, text=True, timeout=60)
    check("60 of 60 hits in the table" in both.stderr, f"signed and unsigned numbers share a column: {both.stderr}")


@scenario
def a_question_waits_while_others_are_answered(run):
    """Each for its own file; one for what never comes."""
    require_root()
    program = run.build("later", [HERE / "later.c"], ["-O1"], libs=["-ldl"])
    paths = [run.dir / name for name in ("first", "second", "never")]
    file = run.dir / "script.toml"
    file.write_text("wait = true\n" + "".join(f"[question.{path.name}]\nprobes = 'usdt:{path}:late:own'\nby = 'arg0'\n" for path in paths))
    shutil.copy(program, paths[0])
    tracing = Tracing([str(run.tool), "--script", str(file), "-f", "json"], run.dir)
    run.adopt(tracing.process)
    wait_until(lambda: "first: attached " in tracing.stderr() and tracing.stderr().count("waiting: ") == 2, "attached")
    subprocess.run([paths[0], "3"], check=True)
    shutil.copy(program, run.dir / "fresh")
    os.rename(run.dir / "fresh", paths[1])
    wait_until(lambda: "second: followed: " in tracing.stderr(), "followed")
    for path in paths[:2]:
        subprocess.run([path, "2"], check=True)
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    told = answers(tracing.stdout())
    rows = {name: {row["key"][0]: row["count"] for row in told[name][-2]["rows"]} for name in ("first", "second")}
    check_equal(rows, {"first": {0: 2, 1: 2, 2: 1}, "second": {0: 1, 1: 1}}, tracing.stderr())
    check("never: nothing came that matches" in tracing.stderr() and "never" not in told, tracing.stderr())


@scenario
def a_question_ends_the_run_when_it_has_seen_what_its_recording_is_for(run):
    program = build(run)
    files = {name: run.dir / name for name in ("seen", "rest")}
    text = "".join(f"[question.{name}]\nprobes = 'usdt:{program}:where:numbers'\nprint = 'arg0'\nlast = '1h'\nrecord = '{file}'\n" +
                   ("dump-on = 'arg0 == -240'\n" if name == "seen" else "") for name, file in files.items())
    scripted(run, text, command=["sh", "-c", f"{program} > /dev/null; sleep 60"])
    for name, file in files.items():
        done = subprocess.run([run.tool, "--replay", file, "-f", "json", "-q"], capture_output=True, text=True, timeout=60)
        args = [record["args"][0] for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "event"]
        check_equal(args[:11], list(range(-250, -239)), f"{name}: {done.stderr}")


if __name__ == "__main__":
    main()
