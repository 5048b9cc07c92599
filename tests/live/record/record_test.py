#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--record and --replay: what is read back is what the program did, and is shown as it would have been shown then."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
import where_hits  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402
from harness import Result, check, check_equal, main, require_root, scenario, wait_until  # noqa: E402


def tool(run, *argv, check_code=0):
    done = subprocess.run([run.tool, *map(str, argv)], capture_output=True, timeout=60)
    result = Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    result.bytes = done.stdout
    if check_code is not None:
        result.check_code(check_code)
    return result


def record(run, program, probe, *options, shown=None):
    """A recording of one run of where.c, and what the program says of its hits."""
    file, log = run.dir / "recording", run.dir / "said"
    both = ["-o", shown] if shown else []
    result = tool(run, probe.format(program), "--record", file, *both, *options, "--", "sh", "-c",
                  f"exec {program} > {log}")
    check_equal(result.bytes, b"", "standard output of a trace that records")
    hits = [where_hits.Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    check_equal(len(hits), 500, "lines of the program")
    return file, hits, result


PROBE = "usdt:{}:" + where_hits.PROBE

# How a trace can be shown, and the flags of it that a replay needs to show it so.
SHOWN = [
    (PROBE, [], []),
    (PROBE, [], ["-f", "json"]),
    (PROBE, ["--print", "arg1, str(arg3), hex(arg2)"], []),
    (PROBE, ["--print", "str(arg3), arg4"], ["-f", "json"]),
    (PROBE, ["-Z", "5", "--where", "arg0 > 0"], []),
    (PROBE, ["-Z", "5", "--where", "arg0 > 0"], ["-f", "json", "--strings", "auto"]),
    (PROBE, ["--sample", "1/2", "--max-rate", "100/s"], ["-f", "json"]),
    ("ucall:{}:serve", ["--sample", "1/2", "--where", "retval != 0"], []),
    (PROBE, ["--ustack=fp,8"], []),
    (PROBE, ["--ustack=8"], ["-f", "json"]),
    ("ucall:{}:serve", [], []),
    ("ucall:{}:serve", [], ["-f", "json"]),
]
SHOWN_OF_KERNEL = [
    ("raw_tp:sys_enter", ["--kstack=6", "--print", "id"], []),
    ("raw_tp:sys_enter", ["--kstack=6"], ["-f", "json"]),
]


def expect_the_same(run, ways):
    program = where_hits.build(run)
    for probe, of_trace, of_both in ways:
        shown = run.dir / "shown"
        file, _, _ = record(run, program, probe, *of_trace, *of_both, shown=shown)
        replayed = tool(run, "--replay", file, *of_both)
        live = shown.read_bytes()
        check(len(live) > 1000, f"{probe} {of_trace}: {len(live)} bytes shown")
        check(replayed.bytes == live, f"{probe} {of_trace} {of_both}: shown differently\n{live[-800:]}\n"
                                      f"{replayed.bytes[-800:]}")
        os.unlink(file)


@scenario
def a_replay_shows_byte_by_byte_what_the_trace_showed(run):
    expect_the_same(run, SHOWN)


@scenario
def a_replay_of_the_kernel_shows_what_the_trace_showed(run):
    expect_the_same(run, SHOWN_OF_KERNEL)


@scenario
def a_replay_answers_as_the_kernel_does(run):
    program = where_hits.build(run)
    file, hits, _ = record(run, program, PROBE)
    for where, holds in where_hits.QUESTIONS:
        if "uid" in where:
            refused = tool(run, "--replay", file, "--where", where, check_code=2)
            check("uid" in refused.stderr, refused.stderr)
            continue
        where_hits.expect(tool(run, "--replay", file, "-f", "json", "--where", where), hits, holds,
                          lambda hit: hit.short)
    live = tool(run, PROBE.format(program), "--where", "arg2 > 100", "-c", "--", "sh", "-c", f"{program} > /dev/null")
    counted = tool(run, "--replay", file, "--where", "arg2 > 100", "-c")
    check_equal(counted.stdout, live.stdout, "table of hits")


# Views that say the same of each run of the program.
VIEWS = [
    ["-c"],
    ["-c", "--where", "arg2 > 100"],
    ["-c", "--where", "str(arg3) =~ \"a*\" || arg4 < 0"],
    ["--by", "probe, comm"],
    ["--by", "arg0"],
    ["--by", "arg0 % 7", "--where", "arg1 != 0"],
    ["--by", "str(arg3)"],
    ["--by", "str(arg3), arg0 > 0", "--top", "5"],
    ["--by", "arg4 < 0.5"],
    ["--sum", "arg0", "--avg", "arg0"],
    ["--min", "arg2", "--max", "arg2", "--by", "str(arg3)"],
    ["--distinct", "arg0"],
    ["--distinct", "arg0 / 3", "--by", "arg0 & 1"],
    ["--hist", "arg2"],
    ["--hist", "arg0", "--by", "arg0 < 0"],
    ["--lhist", "arg0:-100:100:10"],
    ["--lhist", "arg0:0:64:8", "--where", "str(arg3) != \"\""],
    ["--by", "arg0 < 0 ? arg0 : arg2"],
    ["--by", "arg0 in {1, 2, 3}", "--sum", "arg2", "--max", "arg2"],
    ["--format-string", "%d %-12.6s %{comm}", "--print", "arg0, str(arg3)"],
    ["--print", "arg1, hex(arg2)", "--format-string", "%d=%s", "--where", "arg0 == -1"],
]


@scenario
def views_of_a_recording_are_those_of_a_trace(run):
    program = where_hits.build(run)
    file, _, _ = record(run, program, PROBE)
    for view in VIEWS:
        for form in ("text", "json"):
            if form == "json" and "--format-string" in view:
                continue
            live, replayed = run.dir / "live", run.dir / "replayed"
            tool(run, PROBE.format(program), *view, "-f", form, "-o", live, "--", "sh", "-c", f"{program} > /dev/null")
            tool(run, "--replay", file, *view, "-f", form, "-o", replayed)
            check(len(live.read_bytes()) > 4, f"{view}: {live.read_bytes()}")
            check_equal(replayed.read_text(), live.read_text(), f"{view} {form}")


@scenario
def a_replay_shows_other_things_than_the_trace_did(run):
    program = where_hits.build(run)
    file, hits, _ = record(run, program, PROBE)
    result = tool(run, "--replay", file, "-f", "json", "--print", "arg1, str(arg3), arg4", "-M", "100")
    check_equal([event["args"] for event in result.events], [[hit.large, hit.name, hit.real] for hit in hits[:100]],
                "values")
    check_equal((result.summary["events"], result.summary["hits"]), (100, 500), "events and hits")
    check_equal(result.summary["lost"]["discarded"], 400, "events that were not wanted")
    wrong = tool(run, "--replay", file, "--print", "arg77", check_code=2)
    check("no such argument" in wrong.stderr, wrong.stderr)
    check("the recording has 400 more" in tool(run, "--replay", file, "-M", "100").stderr, "what was not asked for")
    for words, found in (([PROBE.format(program)], 500), (["where:*"], 500)):
        check_equal(len(tool(run, "--replay", file, *words, "-f", "json").events), found, f"events of {words}")
    other = tool(run, "--replay", file, "where:nothing", check_code=1)
    check("has none of these probes; it has" in other.stderr, other.stderr)
    for flags in (["-p", "1"], ["--record", "x"], ["--", "true"]):
        refused = tool(run, "--replay", file, *flags, check_code=2)
        check("does not go with --replay" in refused.stderr, refused.stderr)


def beats(result):
    return [event["args"][0] for event in result.events]


@scenario
def a_tracer_that_is_killed_leaves_all_but_the_last_second(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    file = run.dir / "recording"
    tracing = run.start(run.tool, "-p", target.pid, probe_of(program), "--record", file, "-q",
                        stderr=subprocess.DEVNULL)
    target.wait_attached()

    def replayed():
        return tool(run, "--replay", file, "-f", "json", check_code=1)

    target.order("fire:1000")
    # Nobody has ended it, and all of it can be read after a second.
    wait_until(lambda: len(replayed().events) == 1000, "a thousand events in the file", every=0.1)
    target.order("fire:500")
    tracing.send_signal(signal.SIGKILL)
    tracing.wait()
    result = replayed()
    seen = beats(result)
    check(len(seen) >= 1000, f"{len(seen)} events")
    check_equal(seen, list(range(len(seen))), "beats")
    check("not finished" in result.summary["cut"], f"summary: {result.summary}")
    # And of a file that ends in the midst of a block.
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    cut = replayed()
    check_equal(beats(cut), seen[: len(beats(cut))], "beats")
    check("midst of a block" in cut.summary["cut"], f"summary: {cut.summary}")


def flight(run, target, file, *options):
    return run.start(run.tool, "-p", target.pid, probe_of(run.dir / "puppet"), "--record", file, "--last", *options,
                     stderr=subprocess.PIPE, text=True)


def expect_the_last(result, hits, oldest):
    """Beats without a gap from at most `oldest` to the last one; those before are discarded."""
    seen = beats(result)
    check(seen != [] and seen[0] <= oldest, f"{len(seen)} events from {seen[:1]}, {oldest} should be kept")
    check_equal(seen, list(range(seen[0], hits)), "beats")
    check_equal((result.summary["hits"], result.summary["lost"]["discarded"]), (hits, seen[0]), "hits and discarded")
    return seen[0]


@scenario
def the_last_while_is_kept_until_something_happens(run):
    program = puppet.build(run)
    file = run.dir / "recording"
    for dump_on in ([], ["--dump-on", "signal"], ["--dump-on", "arg0 == 2999"]):
        target = Puppet(run, program)
        tracing = flight(run, target, file, "300ms", *dump_on)
        target.wait_attached()
        target.order("fire:1000")
        time.sleep(1.5)
        target.order("fire:1000")
        check_equal(file.stat().st_size, 0, "bytes in the file before the end")
        target.order("fire:1000")
        if "arg0 == 2999" not in dump_on:
            tracing.send_signal(signal.SIGUSR1 if dump_on else signal.SIGINT)
        _, said = tracing.communicate(timeout=20)
        check_equal(tracing.returncode, 0, f"exit code\n{said}")
        result = tool(run, "--replay", file, "-f", "json")
        # What was fired long before is forgotten, what was fired last is there.
        first = expect_the_last(result, 3000, 2000)
        check(first >= 1000, f"beat {first} is too old")
        target.process.kill()


def check_none_written(result):
    """Each of the hits up to the first write that failed, which ends the trace, is said to be lost by that."""
    counts = re.search(r"\b0 events of (\d+) hits.* (\d+) not_written", result.stderr)
    check(counts is not None and counts[1] == counts[2] and 1 <= int(counts[1]) <= 500, result.stderr)


@scenario
def a_recording_that_cannot_be_written_is_a_failure(run):
    program = where_hits.build(run)
    result = tool(run, PROBE.format(program), "--record", "/dev/full", "--", "sh", "-c", f"{program} > /dev/null",
                  check_code=1)
    check("No space left on device" in result.stderr, result.stderr)
    check_none_written(result)
    kept = tool(run, PROBE.format(program), "--record", "/dev/full", "--last", "10s", "--", "sh", "-c",
                f"{program} > /dev/null", check_code=1)
    check_none_written(kept)
    missing = tool(run, PROBE.format(program), "--record", run.dir / "no" / "where", "--", "true", check_code=1)
    check("No such file" in missing.stderr, missing.stderr)


@scenario
def a_file_that_is_no_recording_is_said_to_be_none(run):
    require_root()
    file = run.dir / "file"
    file.write_text("usdtrec? no")
    for path, why in ((file, "no recording"), (pathlib.Path("/dev/zero"), "no regular file"),
                      (run.dir / "nothing", "No such file")):
        result = tool(run, "--replay", path, check_code=1)
        check(why in result.stderr, result.stderr)


@scenario
def a_command_line_that_comes_to_nothing_takes_no_recording_away(run):
    require_root()
    program = where_hits.build(run)
    file, _, _ = record(run, program, PROBE)
    before = file.read_bytes()
    for wrong in ((f"usdt:{program}:no:such", "--record", file), (f"usdt:{program}:no:such", "-o", file),
                  (PROBE.format(program), "--where", "arg99 == 1", "--record", file),
                  ("--replay", file, "-o", file), ("--replay", file, "--export", f"json={file}")):
        check(tool(run, *wrong, *([] if "--replay" in wrong else ["--", "true"]), check_code=None).code != 0, f"{wrong}")
        check_equal(file.read_bytes(), before, f"the recording after {wrong}")
    shorter, _, _ = record(run, program, PROBE, "-Z", "5")
    check(len(shorter.read_bytes()) != len(before), "another one takes its place")
    tool(run, "--replay", shorter)


@scenario
def no_two_outputs_are_one_file_nor_is_what_is_traced(run):
    require_root()
    program = where_hits.build(run)
    file, other, linked = (run.dir / name for name in ("file", "hard", "soft"))
    file.write_text("mine")
    other.hardlink_to(file)
    linked.symlink_to(file)
    for name in (file, other, linked):
        result = tool(run, PROBE.format(program), "-o", file, "--record", name, "--", program, check_code=2)
        check("are one file" in result.stderr, result.stderr)
        check_equal(file.read_text(), "mine", "the file")
    before = pathlib.Path(program).read_bytes()
    also = run.dir / "also"
    also.hardlink_to(program)
    for option in ("-o", "--record"):
        result = tool(run, PROBE.format(program), option, also, "--max-events", 1, "-d", 5, check_code=2)
        check("is to be traced" in result.stderr, result.stderr)
        check_equal(pathlib.Path(program).read_bytes(), before, "the program")


@scenario
def what_follows_a_recording_in_its_file_is_said_not_to_be_read(run):
    file, hits, _ = record(run, where_hits.build(run), PROBE)
    both = run.dir / "both"
    both.write_bytes(file.read_bytes() + file.read_bytes())
    result = tool(run, "--replay", both, "-f", "json", check_code=1)
    check_equal(len(result.bytes.splitlines()), len(hits) + 1, "lines")
    size = file.stat().st_size
    check(f"after its {size} bytes, and the {size} behind it were not read" in result.stderr, result.stderr)


@scenario
def a_recording_that_ends_before_its_first_probe_says_that_it_has_none(run):
    file, _, _ = record(run, where_hits.build(run), PROBE)
    cut = run.dir / "cut"
    cut.write_bytes(file.read_bytes()[:16])
    for names in ([], ["some:probe"]):
        result = tool(run, *names, "--replay", cut, "-f", "json", check_code=1)
        check("it has no probes" in result.stderr and "16 bytes were written" in result.stderr, result.stderr)
        check_equal(result.summary["probes"], [], "probes")
    for view in (["--latency"], ["--distinct", "arg0"], ["--heatmap", "arg0"], ["--hist", "arg0"], ["--top", "3", "--by", "pid"],
                 ["--sum", "arg0"], ["--slowest", "3"], ["--count"]):
        for output in ("text", "json"):
            result = tool(run, "--replay", cut, *view, "-f", output, check_code=1)
            check("it has no probes" in result.stderr and "16 bytes were written" in result.stderr, f"{view}: {result.stderr}")


@scenario
def a_replay_counts_the_calls_that_it_has_and_says_how_many_had_not_ended(run):
    (run.dir / "naps.c").write_text("""
        #include <pthread.h>
        #include <unistd.h>
        __attribute__((noinline)) int naps(int n) { usleep(n); __asm__ volatile(""); return n; }
        static void *for_ever(void *a) { for (;;) naps(20000); return a; }
        int main(void) {
          pthread_t t;
          for (int n = 0; n < 4; n++) pthread_create(&t, 0, for_ever, 0);
          for (;;) pause();
        }""")
    program = run.build("naps", [run.dir / "naps.c"], ["-O1", "-pthread"])
    traced, file = run.start(program), run.dir / "calls.rec"
    result = tool(run, f"ucall:{program}:naps", "-p", traced.pid, "--record", file, "-d", "1")
    ended, begun = map(int, re.search(r"^(\d+) events of (\d+) hits", result.stderr, re.M).groups())
    check(begun > ended > 20, f"{ended} of {begun} calls have ended")
    counted = tool(run, "--replay", file, "--count")
    check(f" {ended}  ucall:" in counted.stdout, counted.stdout)
    check(f"{ended} of {begun} hits counted" in counted.stderr and f", {begun - ended} unfinished" in counted.stderr, counted.stderr)


if __name__ == "__main__":
    main()
