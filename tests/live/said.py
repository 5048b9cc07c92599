# SPDX-License-Identifier: BSD-2-Clause
"""Programs that say their own values, "FUNCTION<TAB>EXPRESSION<TAB>VALUE", and the comparison with what is traced."""

import collections
import re
import subprocess

import puppet  # noqa: F401 (finds the harness)
from harness import check, check_equal


def output_of(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def quiet(program):
    """Runs it with what it says out of the way of what the tool says."""
    return ["sh", "-c", f"exec {program} > /dev/null"]


def said_by(text):
    """Expressions of each function in order, and for each call the values that the program itself has for them."""
    calls = collections.defaultdict(list)
    for line in text.splitlines():
        function, expression, value = line.split("\t")
        if not calls[function] or expression in calls[function][-1]:
            calls[function].append({})
        calls[function][-1][expression] = value
    return calls


def number_of(text):
    return float(text) if re.search(r"[.e]|inf|nan", text) else int(text)


def same(shown, said):
    if said.startswith('"'):
        return shown == said[1:-1]
    if isinstance(shown, bool):
        shown = int(shown)
    wanted = number_of(said)
    if isinstance(wanted, float) or isinstance(shown, float):
        return shown == wanted or abs(shown - wanted) <= 1e-6 * abs(wanted)
    return shown == wanted


def compare(run, program, prefix, function, name, unreadable, *options):
    """Traces `function` with every expression that the program says of it."""
    said = said_by(output_of(program))[name]
    expressions = list(said[0])
    result = run.trace(f"{prefix}:{program}:{function}", "--print", ", ".join(expressions), *options,
                       command=quiet(program))
    result.check_code(0)
    check_equal(len(result.events), len(said), f"calls of {function}")
    for event, call in zip(result.events, said):
        check_equal(len(event["args"]), len(call), f"values of {function}")
        for expression, shown in zip(expressions, event["args"]):
            if isinstance(shown, dict) and "error" in shown:
                unreadable[f"{name}: {expression}: {shown['error']}"] += 1
            else:
                check(same(shown, call[expression]),
                      f"{program.name} {expression}: {shown!r:.200}, the program says {call[expression]}")
