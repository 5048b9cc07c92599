# SPDX-License-Identifier: BSD-2-Clause
"""user_functions.c, which says what each of its functions was called with and what it returned; and what is shown of it."""

import collections

from puppet import HERE
from harness import check, check_equal, require_root

FUNCTIONS = ["small_ones", "eight", "texts", "nothing", "with_float", "recursive", "jumps", "local_one"]
COMPILERS = ["gcc", "clang", "g++", "clang++"]  # the latter two take it for C++


def build(run, compiler="gcc", level="-O2", flags=("-g",)):
    require_root()
    name = f"functions-{compiler}{level}{'-'.join(flags)}".replace("+", "p").replace("=", "-")
    return run.build(name, [HERE / "user_functions.c"], [level, "-w", *flags], compiler)


def traced(run, program, prefix, functions, *options, code=0):
    """What the program said, by function; what the tool shows, by function; and the tool's result."""
    log = run.dir / "said"
    names = [f"{prefix}:{program}:{name}" for name in functions]
    result = run.trace(*names, *options, command=["sh", "-c", f"exec {program} > {log}"])
    result.check_code(code)
    said, shown = collections.defaultdict(list), collections.defaultdict(list)
    for line in log.read_text().splitlines():
        call, result_text = line.split(" -> ")
        name, *args = call.split(" ") if not call.startswith("texts ") else ["texts", *call[6:].rsplit(" ", 1)]
        said[name].append((args, result_text))
    for event in result.events:
        name = event["probe"].rsplit(":", 1)[1].strip("\"").split("(")[0]
        shown[name].append((event["args"], event.get("return")))
    return said, shown, result


def as_text(value):
    """A value of JSON output as printf() says it; None: it has none."""
    if isinstance(value, dict):
        return None if "error" in value else str(value.get("value", value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def compare(where, told, seen, unreadable):
    """Each value that is shown is the one that was passed; `unreadable` counts the others."""
    check_equal(len(seen), len(told), f"{where}: values")
    for number, (said, value) in enumerate(zip(told, seen)):
        text = as_text(value)
        if text is None:
            unreadable[where] += 1
        else:
            check_equal(text, said, f"{where}: value {number} of {told}")


def compare_result(where, told, value, must_be_read):
    """`told` is what the program said that it returns."""
    if told == "void":
        return check_equal(value, None, f"{where} returns nothing")
    text = as_text(value)
    if text is None:
        return check(not must_be_read or "with_float" in where, f"{where}: {value}")
    return check_equal(text, told, where)
