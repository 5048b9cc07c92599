#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cookbook itself: nothing in it that no test runs."""

import re

from recipes import HERE, ROOT, recipes
from harness import check_equal, main, scenario


@scenario
def each_question_is_asked_by_one_test(run):
    del run
    tests = [*HERE.glob("cookbook_*_test.py"), ROOT / "tests/vm/cookbook.py"]
    asked = [question for test in tests for question in re.findall(r'"([A-Z][^"\n]*\?)"', test.read_text())]
    check_equal(sorted(asked), sorted(recipes()), "questions of the tests, and of docs/cookbook.md")


if __name__ == "__main__":
    main()
