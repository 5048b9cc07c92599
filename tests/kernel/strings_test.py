#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Texts with a length, and texts on pages that nobody has touched. strings.c says what each was."""

import pathlib
import subprocess

from puppet import HERE  # noqa: F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario

TEXT = "strings:text"
# Places where more than a page would have to be there for a text without a length.
UNTERMINATED = {"page-end-then-nothing", "cold-page-end-then-nothing"}
NO_TEXT = {"nowhere": "could not be read", "negative": "below 0"}


def build(run):
    require_root()
    return run.build("strings", [HERE / "strings.c"], ["-O2"])


def traced(run, program, items, *options, probe=TEXT):
    """What the program said of each hit, (name, length, bytes); what the tool shows of it; and the tool's result."""
    log = run.dir / "said"
    command = ["sh", "-c", f"cd {run.dir} && exec {program} > {log}"]
    result = run.trace(f"usdt:{program}:{probe}", "--print", items, *options, command=command)
    result.check_code(0)
    said = [line.split(" ") for line in log.read_text().splitlines()]
    rows = [(name, int(length), bytes.fromhex(data)) for name, length, data in said if name != "method"]
    shown = [event["args"] for event in sorted(result.events, key=lambda event: event["ts"])]
    return rows, shown, result


def may_wait(run, program):
    """Kernels before 6.0 have no programs that may wait for a page."""
    lister = pathlib.Path(run.tool).with_name("usdt-list")
    doctor = subprocess.run([lister, "--doctor"], capture_output=True, text=True).stdout
    row = [line for line in doctor.splitlines() if "sleepable_uprobe" in line]
    if not row or " no" in row[0]:
        raise Skip("programs on sites cannot sleep on this kernel")


def expect_bounded(rows, shown, most=200):
    """str(text, length): that many bytes, or up to a NUL, or cut; or the reason."""
    check_equal(len(shown), len(rows), "hits")
    for (name, length, data), values in zip(rows, shown):
        value = values[0]
        if name in NO_TEXT:
            check(NO_TEXT[name] in value["error"], f"{name}: {value}")
            continue
        text = data[:length].split(b"\0")[0].decode()
        check_equal(value, text[:most], name)


CARRIERS = ["auto", "table", "per-link", "ip-hash"]
BACKENDS = ["uprobe_multi", "perf_uprobe"]


@scenario
def a_text_with_a_length_is_shown_that_far(run):
    program = build(run)
    may_wait(run, program)
    for length in ("arg1", "arg2"):
        for carrier in CARRIERS:
            for backend in BACKENDS:
                options = ["--carrier", carrier, "--backend", backend]
                rows, shown, _ = traced(run, program, f"str(arg0, {length})", *options)
                expect_bounded(rows, shown)


@scenario
def a_text_with_a_length_is_not_read_behind_its_end(run):
    """Also where no page is waited for: what is in memory is enough."""
    program = build(run)
    rows, shown, _ = traced(run, program, "str(arg0, arg1), arg1", "--no-wait-for-pages")
    warm = [(row, values) for row, values in zip(rows, shown) if "cold" not in row[0]]
    check("page-end-then-nothing" in [row[0] for row, _ in warm], "the case that matters")
    expect_bounded([row for row, _ in warm], [values for _, values in warm])


@scenario
def a_text_on_a_page_nobody_touched_is_waited_for(run):
    program = build(run)
    may_wait(run, program)
    for carrier in CARRIERS:
        for backend in BACKENDS:
            rows, shown, result = traced(run, program, "str(arg0), arg1", "--carrier", carrier, "--backend", backend)
            result.check_accounted(len(rows), lost=0)
            for (name, length, data), (value, number) in zip(rows, shown):
                check_equal(number, length, f"{name}: its neighbour")
                if name.startswith("cold") and name not in UNTERMINATED:
                    check_equal(value, data.split(b"\0")[0].decode(), name)
                if name in UNTERMINATED:
                    check("could not be read" in value["error"], f"{name} does not end: {value}")


@scenario
def nothing_is_waited_for_where_that_is_not_wanted(run):
    program = build(run)
    rows, shown, _ = traced(run, program, "str(arg0)", "--no-wait-for-pages")
    values = dict(zip([row[0] for row in rows], [values[0] for values in shown]))
    check_equal(values["warm"], "plain text", "a text in memory")
    check("EFAULT" in values["cold"]["error"], f"a text that is not: {values['cold']}")


@scenario
def texts_of_java_have_their_lengths_unasked(run):
    program = build(run)
    may_wait(run, program)
    _, shown, _ = traced(run, program, "str(arg1), str(arg3), str(arg5), arg0", probe="hotspot:method__entry")
    check_equal(shown, [["java/lang/Object", "hashCode", "()I", 4711]], "class, method and signature")


if __name__ == "__main__":
    main()
