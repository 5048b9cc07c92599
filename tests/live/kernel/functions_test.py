#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Kernel functions and raw tracepoints by usdt-trace, alone and with USDT probes: values, counts, names, errors. What
is expected comes from programs that make known system calls, and from strace."""

import collections
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Skip, check, check_equal, main, require_program, require_root, require_x86_64, scenario  # noqa: E402

# Makes 17 getppid (110) and 5 getpgid (121), renames itself twice; prints its parent's number.
CALLER = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	long parent = 0;
	for (int i = 0; i < 17; i++)
		parent = syscall(SYS_getppid);
	for (int i = 0; i < 5; i++)
		syscall(SYS_getpgid, -1);
	prctl(PR_SET_NAME, "first-name");
	prctl(PR_SET_NAME, "second \"name\"");
	printf("%ld\n", parent);
	return 0;
}
"""
GETPPID, GETPGID, EXECVE, EXIT_GROUP = 110, 121, 59, 231


def build(run):
    require_root()
    require_x86_64()
    source = run.dir / "caller.c"
    source.write_text(CALLER)
    return run.build("caller", [source])


def by_tool(run, probes, *options, command):
    """With text output."""
    tracing = run.start(*run.tool_argv(probes, options, command, output="text"), stdout=-1, stderr=-1)
    out, err = tracing.communicate(timeout=60)
    return tracing.returncode, out.decode(), err.decode()


def numbers(events):
    return [event["args"][1] for event in events]


def of_probe(result, name):
    return [event for event in sorted(result.events, key=lambda event: event["ts"]) if event["probe"] == name]


@scenario
def system_calls_have_the_numbers_a_program_makes(run):
    program = build(run)
    for probe in ("raw_tp:sys_enter", "tp_btf:sys_enter"):
        result = run.trace(probe, command=[program])
        result.check_code(0)
        made = collections.Counter(numbers(result.events))
        check_equal((made[GETPPID], made[GETPGID]), (17, 5), f"getppid and getpgid by {probe}")
        result.check_accounted(len(result.events), lost=0)


@scenario
def system_calls_are_those_strace_sees(run):
    require_program("strace")
    program = build(run)
    log = run.dir / "strace.log"
    if run.start("strace", "-n", "-o", log, program, stdout=-1, stderr=-1).wait(30) != 0:
        raise Skip("strace -n does not run here")
    seen = [int(number) for number in re.findall(r"(?m)^\[ *([0-9]+)\] \w+\(", log.read_text())]
    result = run.trace("raw_tp:sys_enter", command=[program])
    made = numbers(of_probe(result, "raw_tp:sys_enter"))
    check_equal(made[made.index(EXECVE):], seen, "numbers of system calls in order")


@scenario
def results_of_system_calls_are_those_the_program_got(run):
    program = build(run)
    for kind in ("raw_tp", "tp_btf"):
        result = run.trace([f"{kind}:sys_enter", f"{kind}:sys_exit"], command=[program])
        parent = next(int(line) for line in result.stdout.splitlines() if line.isdigit())
        events = sorted(result.events, key=lambda event: event["ts"])
        got = [after["args"][1] for before, after in zip(events, events[1:])
               if before["probe"] == f"{kind}:sys_enter" and before["args"][1] == GETPPID]
        check_equal(got, [parent] * 17, f"results of getppid by {kind}")
        missing = [after["args"][1] for before, after in zip(events, events[1:])
                   if before["probe"] == f"{kind}:sys_enter" and before["args"][1] == GETPGID]
        check_equal(missing, [-3] * 5, f"results of getpgid(-1) by {kind}: ESRCH")


@scenario
def a_pointer_to_characters_is_its_text(run):
    program = build(run)
    result = run.trace("raw_tp:task_rename", command=[program])
    names = [event["args"][1] for event in of_probe(result, "raw_tp:task_rename")]
    check_equal(names, ["caller", "first-name", 'second "name"'], "names given to the task")
    _, out, _ = by_tool(run, "raw_tp:task_rename", command=[program])
    check(r'comm="second \"name\""' in out, out)
    _, out, _ = by_tool(run, "raw_tp:task_rename", "--print", "str(args.comm), args.comm, comm", "--string-size", "5",
                        command=[program])
    check(re.search(r'str\(args\.comm\)="first"\.\.\. args\.comm=0x[0-9a-f]{16} comm="caller"$', out, re.M), out)


@scenario
def arguments_are_printed_by_name(run):
    program = build(run)
    result = run.trace("raw_tp:sys_enter", "--print", "id, hex(id), arg1", command=[program])
    check_equal(collections.Counter(map(tuple, (event["args"] for event in result.events)))[(110, "0x6e", 110)], 17,
                "events of getppid")
    check(all("return" not in event and "duration_ns" not in event and "kstack" not in event
              for event in result.events), "fields of other kinds of event")
    code, out, err = by_tool(run, "raw_tp:sys_enter", command=[program])
    check_equal(code, 0, "exit code")
    check_equal(len(re.findall(r" raw_tp:sys_enter regs=0x[0-9a-f]+ id=110$", out, re.M)), 17, "lines of getppid")
    check(re.search(r"^attached 1 raw tracepoint, after [0-9.]+ ms$", err, re.M), err)


@scenario
def enums_and_truth_values_are_words_in_text_and_numbers_in_json(run):
    require_root()
    sleeper = ["sleep", "0.01"]
    _, out, _ = by_tool(run, "raw_tp:hrtimer_start", "--print", "mode, hex(mode)", command=sleeper)
    # include/linux/hrtimer.h
    words = {0: "HRTIMER_MODE_ABS", 1: "HRTIMER_MODE_REL", 2: "HRTIMER_MODE_PINNED", 4: "HRTIMER_MODE_SOFT",
             8: "HRTIMER_MODE_HARD"}
    shown = re.findall(r"mode=(\S+) hex\(mode\)=(0x[0-9a-f]+)", out)
    check(shown != [], out)
    for word, bits in shown:
        number = int(bits, 16)
        check(word == words.get(number, word) and word.startswith("HRTIMER_MODE_"), f"{word} for {bits}")
    result = run.trace("raw_tp:hrtimer_start", command=sleeper)
    check(all(isinstance(event["args"][1], int) for event in result.events), "modes in JSON")
    _, out, _ = by_tool(run, "raw_tp:sched_switch", command=["sleep", "0.01"])
    check(re.search(r" preempt=false prev=0x[0-9a-f]+ next=0x[0-9a-f]+", out), out)


@scenario
def a_usdt_probe_and_a_tracepoint_are_traced_together(run):
    program = puppet.build(run)
    site = puppet.probe_of(program)
    result = run.trace([site, "raw_tp:sys_enter"], command=[program, "fire:7"])
    result.check_code(0)
    check_equal(len(of_probe(result, site)), 7, "hits of the USDT probe")
    made = numbers(of_probe(result, "raw_tp:sys_enter"))
    check(EXECVE in made and EXIT_GROUP in made, f"system calls: {made}")
    result.check_accounted(len(result.events), lost=0)
    check(re.search(r"(?m)^attached 1 site of 1 probe in 1 file, and 1 raw tracepoint, after ",
                    result.stderr), result.stderr)
    by_probe = {probe["probe"]: probe for probe in result.summary["probes"]}
    check_equal(by_probe["raw_tp:sys_enter"]["args"],
                [{"name": "regs", "type": "struct pt_regs *"}, {"name": "id", "type": "long int"}], "types")
    check("args" not in by_probe[site], "types of a USDT probe are usdt-list's")


@scenario
def every_carrier_brings_specs_to_tracepoints(run):
    program = build(run)
    for carrier in ("cookie", "table", "per-link"):
        for kind in ("raw_tp", "tp_btf"):
            probes = [f"{kind}:sys_enter", f"{kind}:task_rename", f"{kind}:sched_switch"]
            # Without text, which no cookie has room for.
            result = run.trace(probes, "--carrier", carrier, "--print", "arg1", command=[program])
            result.check_code(0)
            check_equal(result.summary["skipped"], [], f"not attached by {carrier}")
            made = collections.Counter(event["args"][0] for event in of_probe(result, f"{kind}:sys_enter"))
            check_equal((made[GETPPID], made[GETPGID]), (17, 5), f"getppid and getpgid of {kind} by {carrier}")
            check_equal(len(of_probe(result, f"{kind}:task_rename")), 3, f"names given to the task, {kind} by {carrier}")


@scenario
def count_counts_the_hits_and_shows_the_most_first(run):
    program = build(run)
    probes = ["raw_tp:sys_exit", "raw_tp:sys_enter", "raw_tp:task_rename", "raw_tp:clk_disable"]
    code, out, err = by_tool(run, probes, "--count", command=[program])
    check_equal(code, 0, "exit code")
    table = out[out.index("HITS"):].splitlines()
    check_equal(table[0].split(), ["HITS", "PROBE"], "heading")
    rows = [(int(hits), name) for hits, name in (line.split() for line in table[1:])]
    check_equal(rows, sorted(rows, key=lambda row: -row[0]), "order")
    hits = {name: count for count, name in rows}
    check_equal(hits["raw_tp:task_rename"], 3, "names given to the task")
    check("raw_tp:clk_disable" not in hits, "probes without hits are not in the table")
    check(re.search(rf"^{sum(hits.values())} hits? counted; 1 probe without hits$", err, re.M), err)
    result = run.trace(probes, "--count", command=[program])
    check_equal(result.events, [], "events")
    counted = {probe["probe"]: probe["hits"] for probe in result.summary["probes"]}
    check_equal((counted["raw_tp:task_rename"], counted["raw_tp:clk_disable"]), (3, 0), "hits in JSON")
    # The command begins inside a read() of the tracer's and ends inside exit_group().
    check_equal(counted["raw_tp:sys_enter"], counted["raw_tp:sys_exit"], "entries and exits")


@scenario
def a_stack_is_the_way_to_the_hit(run):
    program = build(run)
    result = run.trace("raw_tp:sys_enter", "--kstack", command=[program])
    check(any(any(frame.startswith("do_syscall_64+0x") for frame in event["kstack"]) for event in result.events),
          f"no stack has do_syscall_64: {result.events[0]['kstack']}")
    for number in (1, 2):
        result = run.trace("raw_tp:sys_enter", "--kstack", str(number), command=[program])
        check(all(len(event["kstack"]) == number for event in result.events), f"stacks of {number}")
        # What runs the program is no part of the way to the hit, whether or not it has a name.
        own = re.compile(r"bpf_prog_|bpf_trace_run|__bpf_trace_|__traceiter_|0x|.* \[bpf\]")
        check(not any(own.match(frame) for event in result.events for frame in event["kstack"]),
              result.events[0]["kstack"])
    _, out, _ = by_tool(run, "--kstack", "raw_tp:sys_enter", command=[program])
    check(re.search(r"^    do_syscall_64\+0x[0-9a-f]+$", out, re.M), out[:2000])


@scenario
def errors_say_what_there_is(run):
    require_root()
    require_x86_64()
    for words, code, text in (
            (["raw_tp:sched_swich"], 1, "no raw tracepoint 'sched_swich'; near: sched_switch"),
            (["kprobe:vfs_raed"], 1, "no kernel function 'vfs_raed'; near: vfs_read"),
            *([] if os.path.exists("/sys/bus/event_source/devices/kprobe")
              else [(["kprobe:vfs_read"], 1, "kprobe: this kernel has no kprobes")]),
            (["raw_tp:sys_enter", "raw_tp:nosuch", "--skip-unknown"], 0, "left out: no raw tracepoint 'nosuch'"),
            (["raw_tp:sys_enter", "raw_tp:nosuch"], 1, "no raw tracepoint 'nosuch'"),
            (["raw_tp:nosuch_*"], 1, "no raw tracepoint matches 'nosuch_*'"),
            (["raw_tp:"], 2, "raw_tp:"),
            (["--backend", "kprobe_multi", "raw_tp:sys_enter"], 2, "raw_tp cannot be attached by kprobe_multi"),
            (["--backend", "tracing", "tp_btf:sys_enter"], 2, "tp_btf cannot be attached by tracing"),
            (["raw_tp:sys_enter", "--print", "number"], 2,
             "--print number: no such argument: raw_tp:sys_enter(struct pt_regs *regs, long int id)"),
            (["raw_tp:sys_enter", "--print", "retval"], 2, "--print retval: no such argument"),
            (["raw_tp:sys_enter", "--print", "str(id"], 2, "--print: expected argN, a name"),
            (["raw_tp:sys_enter", "--count", "--print", "id"], 2, "--count shows no events"),
            (["raw_tp:sys_enter", "--count", "-M", "1"], 2, "--count shows no events"),
            (["raw_tp:sys_enter", "--kstack", "128"], 2, "--kstack"),
            (["libc.so.6:libc:*", "--kstack=2"], 2, "a process at a USDT probe is not in the kernel")):
        result = run.trace([], *words, "--duration", "0")
        check_equal(result.code, code, f"exit code of {words}\n{result.describe()}")
        check(text in result.stderr, f"{words}: not in: {result.stderr}")


if __name__ == "__main__":
    main()
