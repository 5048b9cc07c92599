# SPDX-License-Identifier: BSD-2-Clause
"""What was shown of a program of chance.py against what it logged itself, value by value."""

import collections
import dataclasses
import json
import re


@dataclasses.dataclass
class Verdict:
    """Of one build, or of several."""

    right: int = 0
    errors: int = 0
    unjudged: int = 0  # shown in a form that has no number of its own
    calls: int = 0
    hits: int = 0
    wrong: list = dataclasses.field(default_factory=list)
    miscounted: list = dataclasses.field(default_factory=list)
    reasons: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    @property
    def values(self):
        return self.right + self.errors + self.unjudged + len(self.wrong)

    def add(self, other):
        for name in ("right", "errors", "unjudged", "calls", "hits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wrong += other.wrong
        self.miscounted += other.miscounted
        self.reasons += other.reasons


def leaves(value):
    """How many numbers and texts there are in what was logged."""
    if isinstance(value, dict) and "variant" in value:
        return 1 + leaves(value["has"])
    if isinstance(value, dict) and "complex" not in value and "at" not in value:
        return sum(leaves(each) for each in value.values())
    if isinstance(value, list):
        return sum(leaves(each) for each in value)
    return 1


def is_error(shown):
    return isinstance(shown, dict) and list(shown) == ["error"]


def as_number(shown, logged):
    """Numbers of more than 8 bytes are texts in JSON, of which readers would lose digits."""
    if not isinstance(shown, str) or isinstance(logged, bool) or not isinstance(logged, (int, float)):
        return shown
    try:
        return int(shown) if isinstance(logged, int) else float(shown)
    except ValueError:
        return shown


def compare(verdict, shown, logged, where):
    """Counts each number and text; `where` says which one it is."""
    shown = as_number(shown, logged)
    if is_error(shown):
        verdict.errors += leaves(logged)
        verdict.reasons[re.sub(r"\d+", "N", re.sub(r"p\d+[^ ]*", "P", shown["error"]))] += leaves(logged)
    elif isinstance(logged, dict) and "complex" in logged:
        verdict.unjudged += 1
    elif isinstance(logged, dict) and "at" in logged:  # a text, or where it is
        if shown in (logged["text"], logged["at"]):
            verdict.right += 1
        else:
            verdict.wrong.append((where, shown, logged))
    elif isinstance(logged, dict) and "variant" in logged:
        if isinstance(shown, dict) and len(shown) > 1:  # which one it is could not be read
            verdict.errors += leaves(logged)
            verdict.reasons.update(each["error"] for each in shown.values() if is_error(each))
        elif not isinstance(shown, dict) or list(shown) != [logged["variant"]]:
            verdict.wrong.append((where, shown, logged))
        else:
            verdict.right += 1
            compare(verdict, shown[logged["variant"]], logged["has"], f"{where}.{logged['variant']}")
    elif isinstance(logged, dict) and isinstance(shown, dict):
        for name, value in logged.items():
            # (Where several classes have a member of that name, it is shown with its class.)
            found = [each for each in shown if each == name or each.endswith("::" + name)]
            compare(verdict, shown[found[0]] if len(found) == 1 else {"error": "no such member is shown"}, value, f"{where}.{name}")
    elif isinstance(logged, list) and isinstance(shown, list):
        for i, value in enumerate(logged):
            compare(verdict, shown[i] if i < len(shown) else {"error": "not shown"}, value, f"{where}[{i}]")
        if len(shown) > len(logged):
            verdict.wrong.append((where, shown, logged))
    elif shown == logged and isinstance(shown, (int, float)) == isinstance(logged, (int, float)):
        verdict.right += 1
    else:
        verdict.wrong.append((where, shown, logged))


def read_log(path):
    """By function its calls, in order."""
    calls = collections.defaultdict(list)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            call = json.loads(line)
            calls[call["function"]].append(call)
    return calls


def function_of(event):
    return re.search(r"\b(fn\d+)\b", event["probe"].split(":", 2)[-1])[1]


def judge(events, log, entries=("uprobe",)):
    """`events`: of entries and returns of all functions."""
    verdict = Verdict()
    calls = read_log(log)
    seen = {True: collections.defaultdict(list), False: collections.defaultdict(list)}
    for event in sorted(events, key=lambda event: event["ts"]):
        seen[event["probe"].split(":", 1)[0] in entries][function_of(event)].append(event)
    for function, logged in calls.items():
        hits = seen[True][function]
        verdict.calls += len(logged)
        verdict.hits += len(hits)
        if len(hits) != len(logged):
            verdict.miscounted.append((function, len(logged), len(hits)))
            continue
        for event, call in zip(hits, logged):
            if len(event["args"]) != len(call["args"]):  # debug information lacks some, and nothing says which
                verdict.errors += leaves(call["args"])
                verdict.reasons["debug information lacks arguments"] += leaves(call["args"])
                continue
            for i, (shown, value) in enumerate(zip(event["args"], call["args"])):
                compare(verdict, shown, value, f"{function} {i} pc={event['pc']}")
        returns = seen[False][function]
        if len(returns) != len(logged):
            continue  # inlined, or left by a jump
        for event, call in zip(returns, logged):
            if "return" in call:
                compare(verdict, event.get("return", {"error": "not shown"}), call["return"], f"{function} return pc={event['pc']}")
    return verdict
