#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Ruby on stacks (--ustack). What caller_locations says at the same places judges: labels, files, lines."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402 (finds the harness)
from harness import check, check_equal, main, require_file, require_root, require_x86_64, scenario  # noqa: E402
from script_stacks import FULL, PLACE, Walkers, functions_cost, interpreter, issues_of, script_of, trace_pretender  # noqa: E402

RUBY = interpreter("USDT_RUBY", "/usr/bin/ruby3.1", "/usr/bin/ruby3.3")
WAIT = "uprobe:libc.so.6:flock"
FREED = "its code was freed before its name could be read"


def walk(run, ways, rounds, **options):
    require_root()
    require_x86_64()
    require_file(RUBY)
    return Walkers(run, ways, rounds, interpreter=RUBY, script=HERE / "stack/walkers.rb", **options)


def as_backtraces_have_it(script):
    """Functions written in C have no line of their own: backtraces give them that of the one that called them."""
    known = []
    place = [None, 0]
    for name, file, line in reversed(script):
        place = [file, line] if file else place
        known.append([name, *place])
    return known[::-1]


def compare(walkers, at_least, by_thread=False, inner=("ppid", "place")):
    """Each event has the functions that caller_locations tells, innermost first, behind the one that looks."""
    views, events = walkers.views, walkers.events
    check(len(views) >= at_least, f"only {len(views)} places")
    check_equal(len(events), len(views), "hits")
    if by_thread:
        events = sorted(events, key=lambda event: (event["tid"], event["ts"]))
        views = sorted(views, key=lambda view: view[0])  # stable
    for number, (event, (tid, view)) in enumerate(zip(events, views)):
        script = script_of(event)
        check_equal(tuple(each[0] for each in script[:len(inner)]), inner, f"innermost at hit {number}")
        check_equal(as_backtraces_have_it(script[len(inner):]), view, f"functions at hit {number}")
        if by_thread:
            check_equal(event["tid"], tid, f"thread of hit {number}")
    return len(views)


def compare_native(walkers):
    """Each call of the interpreter's loop, which rb_vm_exec() makes and nobody else, has functions of the script in its
    place. Later versions do not export that name. Returns how often functions of the script stand before native ones."""
    calls = 0
    for number, event in enumerate(walkers.events):
        stack = event["ustack"]
        for inner, outer in zip(stack, stack[1:]):
            calls += "language" in inner and "language" not in outer
            if outer.get("function") == "rb_vm_exec":
                check_equal(inner.get("language"), "ruby", f"what rb_vm_exec() calls at hit {number}")
    return calls


def compare_whole(walkers):
    """All functions have their places among native ones, which are known up to the outermost one."""
    for number, event in enumerate(walkers.events):
        check_equal(issues_of(event), [], f"what is missing at hit {number}")
        check("ustack_end" not in event, f"hit {number} ends early: {event.get('ustack_end')}")
    return compare_native(walkers)


@scenario
def functions_are_those_that_caller_locations_tells(run):
    walkers = walk(run, ["nested"], 360)
    count = compare(walkers, 360)
    calls = compare_whole(walkers)
    check(calls > 1000, f"only {calls} calls of the loop")
    functions = sum(len(script_of(event)) for event in walkers.events)
    in_c = sum(each[1] is None for event in walkers.events for each in script_of(event))
    print(f"{count} stacks, {functions} functions of scripts in {calls} calls of the loop, {in_c} of them written in C, "
          "all as Ruby has them")


@scenario
def a_callback_stands_between_the_native_functions_that_called_it(run):
    found = 0
    for event in walk(run, ["nested"], 120).events:
        names = [(frame.get("language"), frame.get("function", "")) for frame in event["ustack"]]
        for i, (language, name) in enumerate(names):
            if language == "ruby" and name == "block in by_sort_by":
                check(names[i + 1] in ((None, "rb_vm_exec"), (None, "")), f"what calls the block: {names[i + 1]}")
                outer = [each for each in names[i + 1:] if each[0] == "ruby"]
                check_equal([each[1] for each in outer[:3]], ["each", "sort_by", "by_sort_by"], "who called sort_by")
                found += 1
            if language == "ruby" and name == "by_call":
                check_equal(names[i + 1], ("ruby", "step"), "what calls without native functions between")
    check(found > 0, "sort_by was on no stack")


@scenario
def each_thread_has_functions_of_its_own(run):
    """Ruby has the stack of a thread's functions on the native one, behind which the copy ends."""
    walkers = walk(run, ["threads"], 240)
    compare(walkers, 240, by_thread=True)
    compare_native(walkers)
    for number, event in enumerate(walkers.events):
        check(set(issues_of(event)) <= {"functions of the script alone from here on"}, f"{number}: {issues_of(event)}")


@scenario
def a_thread_without_the_lock_has_its_functions(run):
    walkers = walk(run, ["waiting"], 80, probe=WAIT)
    compare(walkers, 80, by_thread=True, inner=("flock", "waiting_place"))


@scenario
def functions_of_threads_that_ended_are_never_shown(run):
    compare(walk(run, ["ended"], 60), 60)


@scenario
def a_process_of_another_pid_namespace_has_its_functions(run):
    compare(walk(run, ["nested"], 30, prefix=["unshare", "--pid", "--fork", "--kill-child"]), 30)


@scenario
def code_that_is_made_anew_in_the_same_memory_is_never_taken_for_what_was_there(run):
    """What was freed before its name could be read has none, and says so."""
    walkers = walk(run, ["changing"], 400)
    check_equal(len(walkers.events), 400, "hits")
    named = 0
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        frames = [frame for frame in event["ustack"] if "language" in frame]
        check_equal(len(frames) - 2, len(view), f"functions at hit {number}")
        made = frames[2]
        if "error" in made:
            check(made["error"] == FREED and "function" not in made, f"hit {number}: {made}")
            check_equal(script_of(event)[-1], view[-1], f"outermost at hit {number}")
        else:
            check_equal(as_backtraces_have_it(script_of(event)[2:]), view, f"functions at hit {number}")
            named += 1
    print(f"{named} of 400 functions that live for a moment were named in time")


@scenario
def deep_recursion_is_cut_and_that_is_said(run):
    walkers = walk(run, ["deep"], 5)
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        script = script_of(event)
        check_equal(len(script), 128, "functions of a record")
        check_equal(script[2:], view[:126], f"functions at hit {number}")
        issues = issues_of(event)
        check(any("more functions of the script" in issue for issue in issues), f"hit {number}: {issues}")


@scenario
def a_short_copy_of_the_stack_is_followed_by_what_the_script_runs(run):
    """The native functions end where the copy does. Those of the script go on, and it is said that others lie between."""
    walkers = walk(run, ["nested"], 60, options=("--ustack", "dwarf,500", "--ustack-size", "4"))
    compare(walkers, 60)
    compare_native(walkers)
    cut = 0
    for number, event in enumerate(walkers.events):
        if not issues_of(event):
            continue
        cut += 1
        check("ustack_end" in event, f"hit {number} is whole, and functions came apart")
        check_equal(issues_of(event), ["functions of the script alone from here on"], f"hit {number}")
        at = next(i for i, frame in enumerate(event["ustack"]) if "alone" in frame.get("error", ""))
        rest = event["ustack"][at + 1:]
        check(all(frame.get("language") == "ruby" for frame in rest), f"hit {number}: {rest}")
    check(cut > 2, f"only {cut} stacks were cut")


@scenario
def by_frame_pointers_they_come_apart(run):
    walkers = walk(run, ["nested"], 20, options=("--ustack", "fp,64"))
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        script = as_backtraces_have_it(script_of(event)[2:])
        check_equal([each[0] for each in script], [each[0] for each in view[:len(script)]], f"functions at hit {number}")
        first = next(i for i, frame in enumerate(event["ustack"]) if "language" in frame)
        before = event["ustack"][first - 1]
        check("could not be placed" in before["error"], f"hit {number}: {before}")


@scenario
def a_process_that_is_met_by_its_first_hit_has_them_from_then_on(run):
    walkers = walk(run, ["nested"], 3000, options=("--ustack", "dwarf,40", "--ustack-size", "4"),
                   named=False)
    late = [number for number, event in enumerate(walkers.events) if not script_of(event)]
    check(late and len(late) < 2900 and late == list(range(len(late))), f"hits without functions: {late}")
    for number in late:
        issues = issues_of(walkers.events[number])
        check(any("was not known yet" in issue for issue in issues), f"hit {number}: {issues}")
    print(f"{len(late)} of {len(walkers.events)} hits were before the process was known")


@scenario
def a_forked_child_has_them_from_its_first_hit(run):
    """It is known by its parent."""
    walkers = walk(run, ["forked"], 200, options=(*FULL, "--children"))
    compare(walkers, 200)


@scenario
def a_program_that_only_looks_like_ruby_gets_no_names_and_harms_nobody(run):
    result = trace_pretender(run, "ruby3.1", '"3.1.2"', 1000)
    frames = [frame for event in result.events for frame in event["ustack"] if frame.get("language") == "ruby"]
    check(frames, "nothing was followed")
    named = [frame for frame in frames if frame.get("function")]
    check_equal(named, [], "names that nobody has")
    print(f"{len(frames)} made-up functions at {len(result.events)} hits, none of them named")


@scenario
def a_version_that_is_not_known_has_native_functions_and_a_notice(run):
    result = trace_pretender(run, "ruby3.1", '"9.8.7"', 5)
    check("Ruby 9.8: its stacks have no functions of scripts" in result.stderr, result.stderr)
    for event in result.events:
        check(all("language" not in frame for frame in event["ustack"]), event["ustack"])
        check_equal(event["ustack"][-1].get("function"), "_start", "the outermost function")


@scenario
def a_command_is_known_before_its_script_has_run_for_long(run):
    require_root()
    require_x86_64()
    require_file(RUBY)
    script = run.dir / "command.rb"
    script.write_text("sleep 1\n"
                      "def place\n"
                      "  Process.ppid\n"
                      "end\n"
                      "place\n"
                      "sleep 1\n")
    result = run.trace([PLACE], "--ustack", command=[RUBY, script])
    result.check_code(0)
    of_script = [script_of(event) for event in result.events if script_of(event)]
    check_equal(of_script, [[["ppid", None, 0], ["place", str(script), 3], ["<main>", str(script), 5]]], "functions")


@scenario
def text_and_folded_stacks_have_them(run):
    walkers = walk(run, ["nested"], 13, output="text")
    (_, view) = walkers.views[-1]
    name, file, line = view[0]
    text = walkers.result.stdout
    check(f"    {name} at {file}:{line} (ruby)" in text, text[-3000:])
    check("    ppid (ruby)\n" in text, text[-3000:])
    folded = walk(run, ["nested"], 13, output="folded").result.stdout
    names = [each[0] for each in reversed(view)] + ["place", "ppid"]
    rows = [iter(row.rsplit(" ", 1)[0].split(";")) for row in folded.splitlines()]
    check(any(all(name in row for name in names) for row in rows), f"{names} are in no row, in this order:\n{folded}")


@scenario
def a_recording_has_their_names(run):
    file = run.dir / "ruby.rec"
    walkers = walk(run, ["nested"], 60, options=(*FULL, "--record", file))
    walkers.events = run.trace([], "--replay", file).events
    compare(walkers, 60)


@scenario
def a_function_costs_some_hundred_nanoseconds_at_the_hit(run):
    require_root()
    require_x86_64()
    require_file(RUBY)
    script = run.dir / "levels.rb"
    script.write_text("def down(levels)\n"
                      "  return down(levels - 1) if levels > 0\n"
                      "  i = 0\n"
                      "  while (i += 1) <= 200 do Process.ppid end\n"
                      "end\n"
                      "$stdout.sync = true\n"
                      "puts 'ready'\n"
                      "while (line = $stdin.gets) do down(line.to_i); puts 'done' end\n")
    functions_cost(run, RUBY, script)


if __name__ == "__main__":
    main()
