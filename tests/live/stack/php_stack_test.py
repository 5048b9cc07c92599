#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of PHP on stacks (--ustack). What debug_backtrace() says at the same places judges."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402 (finds the harness)
from harness import check, check_equal, main, require_file, require_root, require_x86_64, scenario  # noqa: E402
from script_stacks import FULL, Walkers, interpreter, issues_of, script_of  # noqa: E402

PHP = interpreter("USDT_PHP", "/usr/bin/php8.2", "/usr/bin/php8.4")
DELEGATES = "functions of the script are missing: generators that delegate to others (yield from) are not followed"
CLOSURE = "Ways::{closure"  # since PHP 8.4 with the place where it was made
FREED = "its code was freed before its name could be read"


def walk(run, rounds, options=FULL):
    require_root()
    require_x86_64()
    require_file(PHP)
    walkers = Walkers(run, [], rounds, interpreter=PHP, script=HERE / "stack/walkers.php", options=options)
    check_equal(len(walkers.events), rounds, "hits")
    return walkers


def check_functions(walkers):
    """PHP's own function that was hit comes first, then the one that called it, whose line is another by then."""
    for number, (event, (_, view)) in enumerate(zip(walkers.events, walkers.views)):
        script = script_of(event)
        check_equal([each[0] for each in script[:2]], ["posix_getppid", "place"], f"innermost at hit {number}")
        check_equal(len(script[2:]), len(view), f"how many functions at hit {number}")
        frames = [frame for frame in event["ustack"] if "language" in frame][2:]
        for frame, ours, theirs in zip(frames, script[2:], view):
            if frame.get("error") == FREED:  # the code of an included file goes with its end
                check(theirs[0] == "{main}" and theirs[1].endswith("views.php"), f"no name at hit {number}: {theirs}")
            elif frame.get("error") == DELEGATES:  # outer(), to inner() of which the call goes at once
                check(theirs[0].startswith(CLOSURE), f"a generator at hit {number}: {theirs}")
            else:
                check_equal(ours, theirs, f"function at hit {number}")


@scenario
def functions_are_those_that_debug_backtrace_tells(run):
    walkers = walk(run, 240)
    check_functions(walkers)
    for number, event in enumerate(walkers.events):
        check_equal(set(issues_of(event)) - {FREED, DELEGATES}, set(), f"what is missing at hit {number}")
        check_equal(event["ustack"][-1].get("function"), "_start", f"outermost at hit {number}")
        check("ustack_end" not in event, f"hit {number}: {event.get('ustack_end')}")
        loops = [frame for frame in event["ustack"] if frame.get("function") == "execute_ex"]
        check_equal(loops, [], f"hit {number}: calls of the loop without a function of the script")
    functions = sum(len(script_of(event)) for event in walkers.events)
    issues = [issue for event in walkers.events for issue in issues_of(event)]
    print(f"{len(walkers.events)} stacks, {functions} functions of scripts, as debug_backtrace() tells; without a name: "
          f"{issues.count(FREED)} that were freed, {issues.count(DELEGATES)} that delegate")


@scenario
def a_callback_stands_before_the_native_function_that_called_it(run):
    found = 0
    for event in walk(run, 60).events:
        names = [frame.get("function", "") for frame in event["ustack"]]
        for i, name in enumerate(names):
            if name == "array_map" and "language" in event["ustack"][i]:
                check(not names[i - 1].startswith(CLOSURE), "native functions stand between the callback and array_map()")
                check_equal(names[i + 1], "Ways::byMap", "who called array_map()")
                found += 1
    check(found > 0, "array_map() was on no stack")


@scenario
def on_a_cut_stack_they_come_apart(run):
    """How many calls of the loop there are is not known then."""
    walkers = walk(run, 30, options=("--ustack", "dwarf,500", "--ustack-size", "4"))
    check_functions(walkers)
    cut = [event for event in walkers.events if "ustack_end" in event]
    check(cut, "no stack was cut")
    for event in cut:
        check(any("could not be placed" in issue for issue in issues_of(event)), f"{issues_of(event)}")


if __name__ == "__main__":
    main()
