#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lists that libraries keep as an address and a length: std::vector, spans, slices. The programs say theirs themselves."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import go_programs  # noqa: E402
import said  # noqa: E402
from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, attach_at_once, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

attach_at_once()

SHOWN = 8  # elements of a list


def build(run, compiler="g++", level="-O0", *flags):
    require_root()
    name = f"lists-{compiler}{level}{''.join(flags)}".replace("+", "p").replace("=", "-")
    return run.build(name, [], ["-g", level, "-std=c++20", *flags, str(HERE / "resolve/lists.cpp")], compiler)


def calls_in(text):
    """Of each function the calls, and of each call the lists of its parameters, as the program said them."""
    calls = collections.defaultdict(list)
    for line in text.splitlines():
        function, parameter, value = line.split("\t")
        if not calls[function] or parameter in calls[function][-1]:
            calls[function].append({})
        calls[function][-1][parameter] = json.loads(value)
    return calls


def shape(value):
    """As it is shown where there is room for so many."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if not isinstance(value, list):
        return value
    more = [{"error": f"{len(value) - SHOWN} more"}] if len(value) > SHOWN else []
    return [shape(each) for each in value[:SHOWN]] + more


def is_error(value):
    return isinstance(value, dict) and list(value) == ["error"]


def compare(run, program, functions, unreadable, depth="1", names="{}"):
    """Traces `functions` without asking for anything; what is shown of a parameter is what the program says."""
    said_calls = calls_in(said.output_of(program))
    for function in functions:
        parameters = list(said_calls[function][0])
        probe = f"uprobe:{program}:{names.format(function)}"
        result = run.trace(probe, "--print", ", ".join(parameters), "--depth", depth, command=said.quiet(program))
        result.check_code(0)
        check_equal(len(result.events), len(said_calls[function]), f"calls of {function}")
        for event, call in zip(result.events, said_calls[function]):
            for parameter, shown in zip(parameters, event["args"]):
                if is_error(shown) or (isinstance(shown, list) and shown and all(map(is_error, shown))):
                    unreadable[f"{function}: {parameter}: {json.dumps(shown)}"] += 1
                else:
                    check_equal(shown, shape(call[parameter]), f"{program.name} {function} {parameter}")


def report(table):
    print("lists that could not be read, all others were right:")
    for name, unreadable in table.items():
        print(f"  {name}: {sum(unreadable.values())}", *sorted(unreadable), sep="\n    ")


@scenario
def lists_of_cpp_are_what_the_program_says_whatever_compiler_made_it(run):
    table = {}
    for compiler in ("g++", "clang++"):
        for level in ("-O0", "-O2"):
            program = build(run, compiler, level)
            unreadable = table[program.name] = collections.Counter()
            compare(run, program, ["vectors", "kinds", "views", "members"], unreadable)
            compare(run, program, ["nested"], unreadable, depth="2")
            check(not any("vectors" in each or "kinds" in each or "nested" in each for each in unreadable), str(unreadable))
    report(table)


@scenario
def lists_of_libcpp_are_read_too(run):
    require_root()
    probe = run.dir / "empty.cpp"
    probe.write_text("#include <vector>\n")
    found = subprocess.run(["clang++", "-stdlib=libc++", "-fsyntax-only", probe], capture_output=True)
    if found.returncode != 0:
        raise Skip("libc++ is not installed")
    table = {}
    for level in ("-O0", "-O2"):
        program = build(run, "clang++", level, "-stdlib=libc++")
        unreadable = table[program.name] = collections.Counter()
        compare(run, program, ["vectors"], unreadable)
        check_equal(dict(unreadable), {}, program.name)
    report(table)


@scenario
def lists_are_shown_without_being_asked_for(run):
    program = build(run)
    result = run.trace(f"uprobe:{program}:vectors*", command=said.quiet(program))
    calls = calls_in(said.output_of(program))["vectors"]
    check_equal([event["args"] for event in result.events], [[shape(each) for each in call.values()] for call in calls],
                "arguments")
    text = subprocess.run(run.tool_argv(f"uprobe:{program}:vectors*", [], said.quiet(program), "text"),
                          capture_output=True, text=True).stdout
    first, second = text.splitlines()
    check("by_reference=[1 -2 3] by_copy=[0 -1000000007 " in first and "...(92 more)] bytes=[0 255 97]" in first, text)
    check("by_reference=[] by_copy=[] bytes=" in second, text)


@scenario
def elements_and_lengths_have_paths(run):
    program = build(run)
    for function, asked, wanted in [
        ("vectors", "by_copy[99], by_copy[100], by_copy.size, by_reference[3]",
         [[-99000000693, "behind", 100, "behind"], ["behind", "behind", 0, "behind"]]),
        ("nested", "rows[2][0], rows[1][0], rows[0].size, points[1].name, points[1].y, points[2].x",
         [[3, "behind", 2, "second", 4, "behind"]]),
        ("members", "order->items[9], order->notes[1], order->codes[2], order->notes.size",
         [[10, "cold", 1, 2], ["behind", "behind", 0, 0]]),
    ]:
        result = run.trace(f"uprobe:{program}:{function}*", "--print", asked, command=said.quiet(program))
        result.check_code(0)
        shown = [["behind" if each == {"error": "behind the last element"} else each for each in event["args"]]
                 for event in result.events]
        check_equal(shown, wanted, asked)
    for asked, answer in [
        ("*by_copy", "by_copy is no pointer but a list: write by_copy[0]"),
        ("by_copy[0].x", "by_copy[0] has no members"),
        ("by_copy.size[0]", "by_copy.size is a number"),
        ("by_copy.sizes", "has no member 'sizes'"),
    ]:
        refused = run.trace(f"uprobe:{program}:vectors*", "--print", asked, command=said.quiet(program))
        check_equal(refused.code, 2, f"{asked}: {refused.stderr}")
        check(answer in refused.stderr, f"{asked}: {refused.stderr}")


@scenario
def questions_are_about_elements_that_there_are(run):
    """Behind three elements there are thirteen times 77 in memory that is the list's own."""
    program = build(run, "g++", "-O2")
    probe = f"uprobe:{program}:vectors*"
    for asked, shown, undecided in [
        ("by_reference[1] == -2", [[1, -2, 3]], 1),
        ("by_reference[3] != 12345", [], 2),
        ("by_reference.size == 3", [[1, -2, 3]], 0),
        ("by_reference.size == 0 || by_reference[0] > 0", [[1, -2, 3], []], 0),
        ("by_copy.size > 3 && by_copy[99] < 0", [[1, -2, 3]], 0),
        ("moved[1] < -1.0", [[1, -2, 3]], 1),
    ]:
        result = run.trace(probe, "--where", asked, "--print", "by_reference", command=said.quiet(program))
        result.check_code(0)
        check_equal([event["args"][0] for event in result.events], shown, asked)
        check_equal(result.summary["undecided"], undecided, asked)
    counted = run.trace(probe, "--by", "by_reference.size", "--sum", "bytes[1] + bytes.size", command=said.quiet(program))
    rows = sorted((row["key"], row["sum"]) for row in counted.records[0]["rows"])
    check_equal(rows, [([0], 258), ([3], 258)], "keys and sums")
    texts = run.trace(f"uprobe:{program}:kinds*", "--where", 'texts[0] == "one"', "--print", "texts[0], texts[3]",
                      command=said.quiet(program))
    check_equal([event["args"] for event in texts.events], [["one", {"error": "behind the last element"}]], "texts")
    many = run.trace(probe, "--where", "by_copy.size + by_reference.size + bytes.size + moved.size > 0",
                     command=said.quiet(program))
    check("more than 6 different values, of which a list takes some for its length" in many.stderr, many.stderr)
    refused = run.trace(probe, "--where", "by_copy > 3", command=said.quiet(program))
    check("by_copy is no number: ask for by_copy[0], or by_copy.size" in refused.stderr, refused.stderr)


@scenario
def what_is_no_list_yet_is_an_error_and_never_elements(run):
    program = build(run)
    result = run.trace(f"uprobe:{program}:forged*", "--print", "*list, list->size, (*list)[1], *span",
                       command=said.quiet(program))
    result.check_code(0)
    before = {"error": "no list: its end is before its beginning"}
    within = {"error": "no list: it ends within an element"}
    absurd = {"error": "no list: its length is below 0, or more than fits into memory"}
    behind = {"error": "behind the last element"}

    def unread(name, numbers):
        return [{"error": f"{name}[{n}]: memory could not be read (EFAULT: unmapped or paged out)"} for n in numbers]

    def null(name, numbers):
        return [{"error": f"{name}'s data is null"} for n in numbers]

    wanted = [
        [[11, 12, 13, 14], 4, 12, [11, 12, 13, 14]],
        [before, before, before, absurd],
        [within, within, within, absurd],
        [absurd, absurd, absurd, unread("(*span)", range(2))],
        [unread("(*list)", range(2)), 2, unread("(*list)", [1])[0],
         unread("(*span)", range(SHOWN)) + [{"error": f"{2**61 - 1 - SHOWN} more"}]],
        [null("*list", range(2)), 2, null("*list", [1])[0], []],
    ]
    for shown, one in zip([event["args"] for event in result.events], wanted, strict=True):
        check_equal(shown, one, "a forged list")
    for asked in ("(*list)[0] != 1 || (*list)[0] == 1", "list->size >= 0"):
        asked_about = run.trace(f"uprobe:{program}:forged*", "--where", asked, "--print", "list->size",
                                command=said.quiet(program))
        decided = [event["args"][0] for event in asked_about.events]
        check(all(isinstance(size, int) for size in decided), f"{asked}: {decided}")
        check_equal(len(decided) + asked_about.summary["undecided"], 6, asked)


@scenario
def the_list_of_functions_says_how_what_is_no_number_is_shown(run):
    program = build(run)

    def listed(*words):
        done = subprocess.run([run.tool.with_name("usdt-list"), *words], capture_output=True, text=True)
        check_equal(done.returncode, 0, done.stderr)
        return done.stdout

    text = listed("-v", f"uprobe:{program}:views*")
    for name, said_of_it in [("span", "shown as a list"), ("fixed", "shown with its members"), ("list", "shown as a list"),
                             ("small", "shown with its elements")]:
        line = next(line for line in text.splitlines() if line.split()[:1] == [name])
        check(line.endswith("  " + said_of_it), line)
    check("unreadable" not in text, text)
    arguments = json.loads(listed("--format", "json", f"uprobe:{program}:vectors*"))["args"]
    check_equal([(each["readable"], each.get("shown")) for each in arguments],
                [(True, None), (False, "list"), (True, None), (True, None)], "arguments of vectors()")


@scenario
def a_vector_of_bits_is_refused_with_the_reason(run):
    program = build(run)
    result = run.trace(f"uprobe:{program}:bits*", command=said.quiet(program))
    check_equal(result.events[0]["args"],
                [{"error": "std::vector<bool> keeps its elements as bits, which are not shown"}], "no list of bits")


@scenario
def recordings_show_the_same_lists_byte_by_byte(run):
    program = build(run)
    for function, options in [("vectors", []), ("nested", ["--depth", "2"]), ("forged", ["--print", "*list, list->size"]),
                              ("kinds", ["--print", "texts, texts[1], texts[5], colors"])]:
        probe = f"uprobe:{program}:{function}*"
        for form in ("text", "json"):
            file, shown = run.dir / f"{function}.rec", run.dir / f"{function}.{form}"
            of_both = [*options, "--format", form]
            recorded = subprocess.run([run.tool, probe, *of_both, "--record", file, "-o", shown, "--",
                                       *said.quiet(program)], capture_output=True, text=True)
            check_equal(recorded.returncode, 0, recorded.stderr)
            of_replay = [each for each in of_both if each not in ("--depth", "2")]
            replayed = subprocess.run([run.tool, "--replay", file, *of_replay], capture_output=True)
            check_equal(replayed.stdout, shown.read_bytes(), f"{function} {of_both} {replayed.stderr}")
            check(shown.stat().st_size > 100, f"{function} {of_both}")
    asked = subprocess.run([run.tool, "--replay", run.dir / "vectors.rec", "--where", "by_reference[2] == 3", "--format",
                            "json"], capture_output=True, text=True)
    summary = json.loads(asked.stdout.splitlines()[-1])
    check_equal((summary["events"], summary["undecided"]), (1, 1), asked.stdout + asked.stderr)


@scenario
def lists_that_could_be_read_are_no_failure_of_a_strict_trace(run):
    program = build(run)
    for options in ([], ["--record", run.dir / "strict.rec"]):
        for function, code in (("vectors", 0), ("forged", 3)):
            asked = "by_copy, bytes" if function == "vectors" else "*list"
            done = subprocess.run([run.tool, f"uprobe:{program}:{function}*", "--print", asked, "--strict", *options, "--",
                                   *said.quiet(program)], capture_output=True, text=True)
            check_equal(done.returncode, code, f"{function} {options}: {done.stderr}")


@scenario
def lists_of_rust_are_what_the_program_says(run):
    require_root()
    require_program("rustc")
    table = {}
    for level in ("1", "3"):
        program = run.dir / f"lists-rust-{level}"
        subprocess.run(["rustc", "-g", "-C", f"opt-level={level}", "-o", program, HERE / "resolve/lists.rs"], check=True,
                       cwd=run.dir)
        unreadable = table[program.name] = collections.Counter()
        said_calls = calls_in(said.output_of(program))
        for function, asked in [("slices", "numbers, texts, owned, *by_reference"), ("changed", "numbers, names")]:
            result = run.trace(f"uprobe:{program}:*::{function}", "--print", asked, command=said.quiet(program))
            result.check_code(0)
            check_equal(len(result.events), len(said_calls[function]), f"calls of {function}")
            for event, call in zip(result.events, said_calls[function]):
                for shown, wanted in zip(event["args"], call.values()):
                    if is_error(shown):
                        unreadable[f"{function}: {shown['error']}"] += 1
                    else:
                        check_equal(shown, shape(wanted), f"{program.name} {function}")
        check(level != "1" or not unreadable, str(unreadable))
    report(table)


@scenario
def slices_of_go_are_what_the_program_says(run):
    program = go_programs.build(run, HERE / "resolve/lists.go")
    unreadable = collections.Counter()
    compare(run, program, ["slices", "named", "members"], unreadable, names="main.{}")
    check_equal(dict(unreadable), {}, "all can be read")
    result = run.trace(f"uprobe:{program}:main.members", "--print", "b->Items.size, b->Items.len, b->Items[2], *b",
                       command=said.quiet(program))
    check_equal(result.events[0]["args"],
                [2, 2, {"error": "behind the last element"}, {"Items": [{"error": "2 more"}], "Count": 2}], "of a member")


if __name__ == "__main__":
    main()
