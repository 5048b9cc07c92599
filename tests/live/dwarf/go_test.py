#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs that move their stacks: returns are seen by probes on RET instructions, and calls told apart by goroutine."""

import collections
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import said  # noqa: E402
from go_programs import build  # noqa: E402
from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import LONG, Skip, attach_at_once, check, check_equal, main, require_program, scenario  # noqa: E402

attach_at_once()

# Of 4 workers, each of 50.5 calls on average: 10^5 calls, or 10^7.
ROUNDS = 50_000 if LONG else 500


def counts_in(text):
    return {name: int(count) for name, count in (line.split() for line in text.splitlines())}


def traced(run, program, probes, *options, rounds):
    """What the program counted, and the tool's result."""
    log = run.dir / "said"
    command = ["sh", "-c", f"exec {program} 4 {rounds} > {log}"]
    result = run.trace([probe.format(program) for probe in probes], *options, command=command, timeout=60 + rounds / 25)
    result.check_code(0)
    return counts_in(log.read_text()), result


@scenario
def hits_are_calls_while_stacks_move(run):
    """A call that is restarted on a larger stack is one call."""
    program = build(run, HERE / "dwarf/moving.go")
    counts, result = traced(run, program, ["uprobe:{}:main.deep", "uretprobe:{}:main.deep"], "--count", rounds=ROUNDS)
    check_equal(counts["deep"], 4 * ROUNDS // 100 * 5050, "calls that the program made")
    hits = {row["probe"].split(":")[0]: row["hits"] for row in result.summary["probes"]}
    check_equal(hits, {"uprobe": counts["deep"], "uretprobe": counts["deep"]}, "hits")


@scenario
def calls_are_those_of_goroutines(run):
    program = build(run, HERE / "dwarf/moving.go")
    counts, result = traced(run, program, ["ucall:{}:main.wander"], rounds=100)
    check(counts["moved"] > 0, "no goroutine changed its thread within a call: nothing is shown")
    check_equal(len(result.events), counts["wander"], f"calls, of which {counts['moved']} ended on another thread")
    result.check_accounted(counts["wander"], lost=0)
    check(all(event["duration_ns"] >= 20000 for event in result.events), "each call sleeps for 20 us")


@scenario
def calls_left_by_panics_are_unfinished(run):
    program = build(run, HERE / "dwarf/moving.go")
    counts, result = traced(run, program, ["ucall:{}:main.throws"], rounds=90)
    check_equal(counts["throws"], 36, "calls")
    check_equal(result.summary["lost"]["unfinished"], 12, "calls that ended by a panic")
    check_equal(len(result.events), 24, "calls that returned")


@scenario
def values_are_those_that_the_program_says(run):
    table = {}
    for flags in ([], ["-gcflags=-N -l"]):
        program = build(run, HERE / "dwarf/values.go", *flags)
        unreadable = collections.Counter()
        names = list(said.said_by(said.output_of(program)))
        check(len(names) == 18, names)
        for name in names:
            function = {"method": "main.(*Mixed).method", "generic": "main.generic*"}.get(name.removesuffix("_ret"),
                                                                                  f"main.{name.removesuffix('_ret')}")
            prefix = "uretprobe" if name.endswith("_ret") else "uprobe"
            said.compare(run, program, prefix, function, name, unreadable)
        check(not [each for each in unreadable if "gaps" in each], f"{flags}: {unreadable}")
        table[" ".join(flags)] = unreadable
    print("values that could not be read, all others were right:")
    for flags, unreadable in table.items():
        print(f"  go build {flags}: {sum(unreadable.values())}", *sorted(unreadable), sep="\n    ")


# What main.fails returns, and main.takes is passed, in order; of what has no message the address is shown.
ERRORS = [{"type": "nil"}, {"type": "*errors.errorString", "message": "plain message"},
          {"type": "*fmt.wrapError", "message": "outer: inner"}, {"type": "*main.Mine"}, {"type": "main.Code"},
          {"type": "*errors.errorString", "message": "EOF"}, {"type": "syscall.Errno"}]


def without_address(shown):
    """What is shown of an interface; an address, which nobody knows beforehand, is only looked at for being one."""
    if "data" in shown:
        check(isinstance(shown["data"], int) and shown["data"] > 4096, shown)
    return {name: value for name, value in shown.items() if name != "data"}


@scenario
def errors_show_their_type_and_message(run):
    for flags in ([], ["-gcflags=-N -l"]):
        program = build(run, HERE / "dwarf/interfaces.go", *flags)
        result = run.trace([f"uretprobe:{program}:main.fails"], "--depth", "3", command=[program])
        result.check_code(0)
        shown = [event["return"] for event in result.events]
        check_equal([each["r0"] for each in shown], list(range(1, 8)), f"the first result {flags}")
        check_equal([without_address(each["r1"]) for each in shown], ERRORS, f"the second result {flags}")
        # A question and a table by what is in them.
        asked = run.trace(f"uretprobe:{program}:main.fails", "--where", "retval.r1.tab != 0", command=[program])
        check_equal(len(asked.events), 6, f"results that are not nil: {asked.stderr}")
    program = build(run, HERE / "dwarf/interfaces.go")
    result = run.trace([f"uprobe:{program}:main.takes"], "--print", "err, ((main.Mine *)err.data)->Op", command=[program])
    check_equal([without_address(event["args"][0]) for event in result.events], ERRORS, "the argument")
    check_equal(result.events[3]["args"][1], "mine", "a member of an error of the program's own")
    text = subprocess.run([run.tool, f"uprobe:{program}:main.takes", "--", program], capture_output=True, text=True).stdout
    check('err={type=*errors.errorString message="plain message"}' in text and "err={type=nil}" in text, text)


@scenario
def interfaces_show_what_they_have(run):
    program = build(run, HERE / "dwarf/interfaces.go")
    result = run.trace([f"uprobe:{program}:main.anything"], "--print", "v, s", command=[program])
    values = [without_address(event["args"][0]) for event in result.events]
    check_equal(values, [{"type": "nil"}, {"type": "int", "value": 42}, {"type": "string", "value": "text"}, {"type": "*main.Mine"},
                         {"type": "bool", "value": True}, {"type": "float64", "value": -2.5}], result.stderr)
    shapes = [without_address(event["args"][1]) for event in result.events]
    check_equal(shapes, [{"type": "nil"}, {"type": "main.Square"}] + [{"type": "nil"}] * 4, result.stderr)


@scenario
def interfaces_of_position_independent_programs_are_two_words(run):
    program = build(run, HERE / "dwarf/interfaces.go", "-buildmode=pie")
    result = run.trace([f"uprobe:{program}:main.takes"], "--print", "err", command=[program])
    shown = [event["args"][0] for event in result.events]
    check_equal([each["type"] for each in shown][0], "nil", "no error")
    check(all(isinstance(each["type"], int) and isinstance(each["data"], int) for each in shown[1:]), shown)


@scenario
def inlined_copies_are_left_out_and_said(run):
    program = build(run, HERE / "dwarf/moving.go")
    result = run.trace(f"uprobe:{program}:main.pick", command=[str(program), "1", "10"])
    check_equal(result.code, 1, result.stderr)
    check("Go does not tell where such a copy begins" in result.stderr, result.stderr)


@scenario
def the_same_program_dies_of_the_return_probes_of_others(run):
    """Why there are none of ours."""
    require_program("bpftrace")
    program = build(run, HERE / "dwarf/moving.go")
    text = f"uretprobe:{program}:main.deep {{ @ = count(); }}"
    argv = ["bpftrace", "-e", text, "-c", f"{program} 4 100"]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=os.environ | {"BPFTRACE_STRLEN": "64"})
    if "Attaching 1 probe" not in result.stdout + result.stderr:
        raise Skip(f"bpftrace does not work here: {result.stderr.strip()}")
    check("unexpected return pc" in result.stderr, f"the program did not die: {result.stdout} {result.stderr[:2000]}")


@scenario
def position_independent_and_stripped_programs_are_known_for_go_too(run):
    program = build(run, HERE / "dwarf/moving.go", "-buildmode=pie")
    counts, result = traced(run, program, ["uretprobe:{}:main.deep"], "--count", rounds=100)
    check_equal(result.summary["probes"][0]["hits"], counts["deep"], "returns of a position-independent program")
    program = build(run, HERE / "dwarf/moving.go", "-ldflags=-w")
    counts, result = traced(run, program, ["ucall:{}:main.deep"], "--count", rounds=100)
    check_equal(result.summary["probes"][0]["hits"], counts["deep"], "calls of a program without debug information")
    subprocess.run(["strip", program], check=True)
    counts, result = traced(run, program, ["ucall:{}:main.deep"], "--count", rounds=100)
    check_equal(result.summary["probes"][0]["hits"], counts["deep"], "calls of a program without symbols")


if __name__ == "__main__":
    main()
