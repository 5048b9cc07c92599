#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The last lines of a test run, from CTest's JUnit file: what failed, what was skipped and why, and the counts.

Usage: summary.py CTEST.XML     exit code 0: no test failed, 1: one did, 2: no result can be read
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# How the kinds of tests print a reason: GoogleTest's GTEST_SKIP ("FILE:LINE: Skipped\nREASON"), our Python and CMake
# tests ("SKIP: REASON", "SKIP NAME: REASON"), unittest ("... skipped 'REASON'").
REASONS = [re.compile(pattern, re.MULTILINE) for pattern in (
    r": Skipped\n+(.+)",
    r"^(?:-- )?SKIP(?: [\w.:-]+)?: (.+)",
    r"skipped ['\"](.+)['\"]$",
)]

# Of a failed test's output: who sees only the end of a run shall see why.
LAST_LINES = 40


def ctest_remark(case):
    skipped = case.find("skipped")
    return (skipped.get("message") if skipped is not None else None) or ""


def skip_reason(case):
    if case.get("status") == "disabled":
        return "disabled in CMake"
    output = case.findtext("system-out") or ""
    for pattern in REASONS:
        if found := pattern.search(output):
            return found.group(1).strip()
    return f"no reason printed ({ctest_remark(case)})"


def outcome(case):
    """Passed, failed or skipped. A test whose program is missing is "notrun" too, but nobody chose to skip it."""
    status = case.get("status")
    if status == "run":
        return "passed"
    if status == "disabled" or (status == "notrun" and ctest_remark(case).startswith("SKIP_")):
        return "skipped"
    return "failed"


def print_summary(cases):
    by_outcome = collections.defaultdict(list)
    for case in cases:
        by_outcome[outcome(case)].append(case)
    by_reason = collections.defaultdict(list)
    for case in by_outcome["skipped"]:
        by_reason[skip_reason(case)].append(case.get("name"))
    for reason, names in sorted(by_reason.items()):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(f"skipped: {reason}: {names[0]}{more}")
    for case in by_outcome["failed"]:
        print(f"failed: {case.get('name')}, of which the last lines are")
        for line in (case.findtext("system-out") or "").splitlines()[-LAST_LINES:]:
            print(f"    {line}")
    print(f"{len(by_outcome['passed'])} passed, {len(by_outcome['failed'])} failed, {len(by_outcome['skipped'])} skipped")
    return 1 if by_outcome["failed"] else 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        cases = list(ElementTree.parse(sys.argv[1]).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(print_summary(cases))


if __name__ == "__main__":
    main()
