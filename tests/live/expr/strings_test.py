#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Texts with a length, and texts on pages that nobody has touched. strings.c says what each was."""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, attach_at_once, check, check_equal, main, require_root, scenario  # noqa: E402

attach_at_once()

TEXT = "strings:text"
# Places where more than a page would have to be there for a text without a length.
UNTERMINATED = {"page-end-then-nothing", "cold-page-end-then-nothing"}
NO_TEXT = {"nowhere": "could not be read", "negative": "below 0"}


def build(run):
    require_root()
    return run.build("strings", [HERE / "expr/strings.c"], ["-O2"])


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
    """str(text, length): that many bytes, NULs among them, or cut; or the reason."""
    check_equal(len(shown), len(rows), "hits")
    for (name, length, data), values in zip(rows, shown):
        value = values[0]
        if name in NO_TEXT:
            check(NO_TEXT[name] in value["error"], f"{name}: {value}")
            continue
        check_equal(value, data[:length].decode()[:most], name)


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


def as_shown(text):
    """As text output escapes it."""
    named = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    return "".join(named.get(c, c if c >= " " else f"\\x{ord(c):02x}") for c in text)


@scenario
def a_text_with_a_length_is_shown_on_a_line_of_text_with_what_is_behind_its_nul(run):
    program = build(run)
    log = run.dir / "said"
    argv = run.tool_argv(f"usdt:{program}:{TEXT}", ["--print", "str(arg0, arg1), arg1"],
                         ["sh", "-c", f"cd {run.dir} && exec {program} > {log}"], "text")
    lines = subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout.splitlines()
    shown = [re.search(r' str\(arg0, arg1\)=(.*) arg1=(-?\d+)$', line) for line in lines]
    rows = [line.split(" ") for line in log.read_text().splitlines() if not line.startswith("method")]
    check_equal(len(shown), len(rows), "lines")
    for (name, length, data), line in zip(rows, shown):
        if name in NO_TEXT:
            check_equal(line[1][0], "<", name)
            continue
        text = bytes.fromhex(data)[:int(length)].decode()
        check_equal(line[1], f'"{as_shown(text[:200])}"' + ("..." if len(text) > 200 else ""), name)
    check(any("\\x00" in line[1] for line in shown), "a NUL among them")


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


def is_plain(text):
    """As a reader of a dump would decide: at least four characters, each printable or white space."""
    return len(text) >= 4 and all(c.isprintable() or c in "\t\n\r" for c in text)


def plain_text(data, most):
    """What is to be shown of these bytes, and whether it is cut, maybe within a character; None: nothing."""
    cut = len(data) > most
    for dropped in range(4 if cut else 1):
        try:
            text = data[:min(len(data), most) - dropped].decode()
        except UnicodeDecodeError:
            continue
        return (text, cut) if is_plain(text) else None
    return None


@scenario
def numbers_that_plainly_point_to_text_are_shown_with_it(run):
    require_root()
    program = run.build("likely", [HERE / "expr/likely.c"], ["-O2"])
    for options in ([], ["--no-wait-for-pages", "--backend", "perf_uprobe"], ["--carrier", "per-link"]):
        log = run.dir / "said"
        result = run.trace(f"usdt:{program}:likely:value", "--strings", "auto", *options,
                           command=["sh", "-c", f"exec {program} > {log}"])
        result.check_code(0)
        said = [line.split(" ") for line in log.read_text().splitlines()]
        events = sorted(result.events, key=lambda event: event["ts"])
        check_equal(len(events), len(said) + 1000, "hits")
        for (name, data), event in zip(said, events):
            expected = plain_text(bytes.fromhex(data), 200)
            texts, cut = event.get("texts", {}), event.get("truncated", [])
            check_equal(texts, {"0": expected[0]} if expected else {}, name)
            check_equal(cut, [0] if expected and expected[1] else [], f"cut: {name}")
            check_equal(type(event["args"][0]), int, f"{name}: numbers stay numbers")
        check(any("texts" in event for event in events), "no text at all")


@scenario
def an_argument_that_was_no_pointer_is_tried_again(run):
    """Wrong numbers now and then do not hide the texts that come after them."""
    require_root()
    program = run.build("likely", [HERE / "expr/likely.c"], ["-O2"])
    result = run.trace(f"usdt:{program}:likely:value", "--strings", "auto", command=[program])
    texts = [event.get("texts", {}).get("0") for event in sorted(result.events, key=lambda event: event["ts"])]
    check("last" in texts, f"the text behind several that are none: {texts[:30]}")


@scenario
def texts_that_are_plain_are_shown_in_text_and_not_in_json_unless_asked(run):
    require_root()
    program = run.build("likely", [HERE / "expr/likely.c"], ["-O2"])
    probe = f"usdt:{program}:likely:value"
    json = run.trace(probe, command=[program])
    check(not any("texts" in event for event in json.events), "JSON has texts nobody asked for")
    argv = [run.tool, probe, "--", program]
    lines = subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout.splitlines()
    shown = [line for line in lines if '"GET /index.html"' in line]
    check_equal(len(shown), 1, f"lines with the text: {lines[:3]}")
    check("arg0=0x" in shown[0] and shown[0].index("0x") < shown[0].index('"GET'), f"the number, then the text: {shown}")
    check(any("arg0=0xffffffff81000000 arg1=-" in line for line in lines), f"an address of the kernel's half: {lines[20:24]}")
    never = subprocess.run([*argv[:2], "--strings", "never", *argv[2:]], capture_output=True, text=True, timeout=60)
    check('"GET' not in never.stdout and "arg0=" in never.stdout, never.stdout[:300])


@scenario
def each_probe_prints_what_is_asked_of_it(run):
    program = build(run)
    both = [f"usdt:{program}:*:*"]
    command = ["sh", "-c", f"cd {run.dir} && exec {program} > {run.dir}/said"]
    result = run.trace(both, "--print", "arg1", "--print", "strings:text=str(arg0, arg1), arg0", command=command)
    result.check_code(0)
    sizes = {}
    for event in result.events:
        sizes.setdefault(event["probe"].rsplit(":", 1)[1], set()).add(len(event["args"]))
    check_equal(sizes.pop("text"), {2}, "items of strings:text")
    check_equal(set().union(*sizes.values()), {1}, f"items of the others: {sizes}")
    of_file = run.trace(both, "--print", "arg1", "--print", f"usdt:{program}:strings:text=arg0,arg1,arg0", command=command)
    check_equal({len(event["args"]) for event in of_file.events if event["probe"].endswith(":text")}, {3}, "by its file")
    for words, what in (("strings:txet=arg0", "strings:text"), ("usdt:/bin/true:strings:text=arg0", "strings:text"),
                        ("strings:text=arg9", "arg9"), ("strings:text=arg", "arg"), ("text=arg0", "PROVIDER:NAME")):
        refused = run.trace(both, "--print", words, command=command)
        check_equal(refused.code, 2, f"--print {words}\n{refused.describe()}")
        check(what in refused.stderr, f"--print {words}\n{refused.describe()}")


if __name__ == "__main__":
    main()
