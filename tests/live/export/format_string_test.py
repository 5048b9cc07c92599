#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--format-string: lines of one's own, with what the program says it passed; Python's % judges the numbers."""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import where_hits  # noqa: E402
from harness import at_once, attach_at_once, check, check_equal, main, scenario  # noqa: E402
from strict_text import harmful  # noqa: E402
from where_hits import PROBE, Hit, build  # noqa: E402

attach_at_once()


def lines_of(run, program, probe, *options, code=0):
    """What is shown of a run of where.c, and what it said of its hits."""
    log, shown = run.dir / "said", run.dir / "shown"
    done = subprocess.run([run.tool, probe.format(program), "-o", shown, *options, *at_once([probe], options),
                           "--", "sh", "-c", f"exec {program} > {log}"], capture_output=True, timeout=60)
    check_equal(done.returncode, code, done.stderr.decode(errors="replace"))
    hits = [Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    return shown.read_bytes().decode().split("\n")[:-1], hits


NUMBERS = "usdt:{}:" + PROBE


@scenario
def directives_take_the_values_of_the_list_in_their_order(run):
    program = build(run)
    lines, hits = lines_of(run, program, NUMBERS, "--print", "arg0, str(arg3), arg1, arg4, arg2",
                           "--format-string", "%6d|%-34s|%#018x|%.3f|%c|100%%")
    # (C has no 0x before 0, and Python has.)
    wanted = [("%6d|%-34s|%#018x|%.3f" if h.large else "%6d|%-34s|%018x|%.3f") % (h.short, h.name, h.large, h.real) for h in hits]
    check_equal([line[:len(want)] for line, want in zip(lines, wanted)], wanted, "lines")
    check_equal(len(lines), 500, "lines")
    check(all(line.endswith("|100%") for line in lines), lines[0])
    check(any("|A|" in line for line in lines), "the character of 65")


@scenario
def values_can_be_named_in_place(run):
    program = build(run)
    lines, hits = lines_of(run, program, "ucall:{}:serve", "--format-string",
                           r"%5{pid}\t%{comm}: %{req->size} * %{step} = %{retval} in %{duration} at %{time}, %{probe} on %{cpu}")
    for line, hit in zip(lines, hits):
        words = line.split()
        check_equal(words[1:7], ["where-O2:", str(hit.size), "*", str(hit.step), "=", str(hit.result)], line)
        check(re.fullmatch(r"[\d.]+(ns|us|ms|s)", words[8]), line)
        check_equal(words[11], "ucall:serve", line)
    check_equal(len(lines), 500, "lines")


@scenario
def a_value_that_could_not_be_read_is_its_error_in_its_place(run):
    program = build(run)
    lines, hits = lines_of(run, program, "uprobe:{}:serve", "--print", "req->peer->port", "--format-string", "port %5d.")
    for line, hit in zip(lines, hits):
        if hit.i % 5:
            check_equal(line, f"port {hit.port:5}.", "a port")
        else:
            check("<req->peer is null>" in line, line)


@scenario
def a_recording_is_shown_so_as_well(run):
    program = build(run)
    form = ["--print", "str(arg3), arg0", "--format-string", "%s took %d"]
    live, _ = lines_of(run, program, NUMBERS, *form)
    file = run.dir / "recording"
    done = subprocess.run([run.tool, NUMBERS.format(program), "--record", file, *form[:2], "--", program], capture_output=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    for options in (form, form[2:]):
        done = subprocess.run([run.tool, "--replay", file, *options], capture_output=True, text=True, timeout=60)
        check_equal(done.stdout.splitlines(), live, options)


@scenario
def what_processes_are_called_reaches_the_line_escaped(run):
    program = build(run)
    hostile = run.dir / "a\x1b]0;\n\x7f"
    shutil.copy(program, hostile)
    shown = run.dir / "shown"
    done = subprocess.run([run.tool, "where:numbers", "-M", "3", "-o", shown, "--format-string", "%-20{comm}|%{probe}\x1b[31m|%{str(arg3)}", "--", hostile],
                          capture_output=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    check_equal(harmful(shown.read_bytes() + done.stderr), [], "what does something to a terminal")
    check_equal(len(shown.read_text().splitlines()), 3, "lines")


WRONG = [
    (["--format-string", "%y"], "column 1"),
    (["--format-string", "a %{comm"], "column 4"),
    (["--format-string", "%s %d", "--print", "arg0"], "takes 2 values, and --print has 1"),
    (["--format-string", "%s"], "takes 1 value: --print says which"),
    (["--format-string", "%d", "--print", "str(arg3)"], "%d at column 1 of '%d': str(arg3) of usdt:"),
    (["--format-string", "x %d", "--print", "arg4"], "%d at column 3 of 'x %d': arg4 of usdt:"),
    (["--format-string", "%f", "--print", "arg0"], "is an integer, for which"),
    (["--format-string", "%{arg9}"], "no such argument"),
    (["--format-string", "%{arg0} %d", "--print", "arg0"], "not both"),
    (["--format-string", "%{arg0}", "--print", "arg0"], "--print does not go with that"),
    (["--format-string", "%{arg0}", "-f", "json"], "--format json has every value by itself"),
    (["--format-string", "%{pid}", "--count"], "of events"),
    (["--format-string", "%{pid}", "--by", "pid"], "of events"),
]


@scenario
def what_cannot_be_shown_so_is_refused_with_its_column(run):
    program = build(run)
    for options, reason in WRONG:
        done = subprocess.run([run.tool, f"usdt:{program}:{PROBE}", *options, "--", program], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 2, f"{options}: {done.stderr}")
        check(reason in done.stderr, f"{options}: {done.stderr}")


if __name__ == "__main__":
    main()
