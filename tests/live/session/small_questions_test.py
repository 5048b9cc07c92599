#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions at the edges: the smallest integer, literals that no double is, texts longer than keys, sites whose types
differ, texts compared beside sums. The program that is traced says what it passes."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

PROGRAM = r"""
#include <sys/sdt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static char texts[40][800];
int main(void) {
  static const int64_t numbers[3] = {INT64_MIN, 5, -1};
  static const double reals[3] = {-0.0, -5, 9007199254740992.0};
  static const char *words[3] = {"hello", "hello", "world"};
  for (int i = 0; i < 3; i++) {
    volatile int64_t n = numbers[i];
    volatile double r = reals[i];
    const char *volatile w = words[i];
    const char *volatile other = words[2];
    DTRACE_PROBE4(small, hit, n, r, w, other);
  }
  /* Of 1 to 40 times 19 characters: those from 64 on begin alike for longer than a key is. */
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 40; i++) {
      memset(texts[i], 'a', 19 * (i + 1));
      texts[i][19 * (i + 1) - 1] = (char)('b' + i % 20);
      const char *volatile t = texts[i];
      DTRACE_PROBE1(small, text, t);
    }
  for (int i = 0; i < 3; i++) {
    static const int32_t narrow[3] = {-1, 5, 7};
    static const uint64_t wide[3] = {5, UINT64_MAX, 9};
    volatile int32_t a = narrow[i];
    volatile uint64_t b = wide[i];
    DTRACE_PROBE1(small, mixed, a);
    DTRACE_PROBE1(small, mixed, b);
  }
}
"""


def build(run):
    require_root()
    (run.dir / "small.c").write_text(PROGRAM)
    return run.build("small", [run.dir / "small.c"], ["-O1"])


@scenario
def answers_are_those_of_the_numbers_that_are_written(run):
    program = build(run)
    for where, wanted in [
        ("arg0 == -9223372036854775808", [0]), ("arg0 > -9223372036854775808", [1, 2]), ("arg0 == -0x8000000000000000", [0]),
        ("arg0 in {-9223372036854775808, 5}", [0, 1]), ("arg1 < -9223372036854775808", []),
        ("arg1 >= 9007199254740993", []), ("arg1 > 9007199254740991", [2]), ("arg0 < 4.5", [0, 2]), ("arg0 == 5.0", [1]),
        (r'str(arg2) == "\150ello"', [0, 1]), ('"a" == "a"', [0, 1, 2]), ('"a" != "a"', []),
        ("(arg0 + 1) >> (str(arg2) == str(arg3)) != 0", [0, 1]), ("(str(arg2) == str(arg3)) + (arg0 * 2 == 10) == 1", [1, 2]),
    ]:
        result = run.trace(f"usdt:{program}:small:hit", "--where", where, "--print", "nsecs, arg0", command=[program])
        result.check_code(0)
        numbers = [-2 ** 63, 5, -1]
        check_equal([numbers.index(event["args"][1]) for event in result.events], wanted, where)
        check_equal(sum(probe["undecided"] for probe in result.summary["probes"]), 0, where)
    for where, why in [(r'str(arg2) == "\h"', "no escape"), ("arg0 == -9223372036854775809", "does not fit 64 bits")]:
        result = run.trace(f"usdt:{program}:small:hit", "--where", where, command=[program])
        check_equal(result.code, 2, where)
        check(why in result.stderr, result.stderr)


@scenario
def a_recording_answers_as_the_kernel_did(run):
    program, file = build(run), run.dir / "small.rec"
    run.trace([f"usdt:{program}:small:*"], "--record", file, "--strings", "auto", "-Z", "1024", "--print", "str(arg0)", command=[program])
    numbers = run.dir / "numbers.rec"
    run.trace([f"usdt:{program}:small:hit"], "--record", numbers, command=[program])
    for where, wanted in [("arg0 == -9223372036854775808", 1), ("arg1 >= 9007199254740993", 0), ("arg0 < 4.5", 2)]:
        result = run.trace([], "--replay", numbers, "--where", where)
        check_equal(len(result.events), wanted, where)


def table_of(result):
    return [line for line in map(json.loads, result.stdout.splitlines()) if line["type"] == "table"][-1]


@scenario
def texts_that_begin_alike_are_counted_apart(run):
    program, file = build(run), run.dir / "texts.rec"
    probe = f"usdt:{program}:small:text"
    run.trace([probe], "--record", file, "-Z", "1024", "--print", "str(arg0)", command=[program])
    # The first 512 bytes: of 27 to 40 times 19 characters, which are more, all are one.
    for traced in (run.trace(probe, "--distinct", "str(arg0)", command=[program]),
                   run.trace([], "--replay", file, "--distinct", "str(arg0)")):
        traced.check_code(0)
        rows = table_of(traced)["rows"]
        check_equal([(row["count"], row["distinct"]) for row in rows], [(120, 27)], "26 and one for the rest")
        check_equal(rows[0].get("distinct_at_least"), True, "that it is at least so many")
    few = run.trace(probe, "--distinct", "str(arg0)", "--where", 'str(arg0) =~ "*[b-l]"', command=[program])
    row = table_of(few)["rows"][0]
    check_equal((row["distinct"], row.get("distinct_at_least")), (17, None), "those of up to 500 characters that end so")
    text = subprocess.run([run.tool, probe, "--distinct", "str(arg0)", "--", program], capture_output=True, text=True, timeout=60)
    check(re.search(r"^ *120 +27\+$", text.stdout, re.M), text.stdout)


@scenario
def sites_of_signed_and_unsigned_numbers_share_a_table(run):
    program, file = build(run), run.dir / "mixed.rec"
    probe = f"usdt:{program}:small:mixed"
    run.trace([probe], "--record", file, command=[program])
    for traced in (run.trace(probe, "--by", "arg0", command=[program]), run.trace([], "--replay", file, "--by", "arg0")):
        traced.check_code(0)
        rows = {row["key"][0]: row["count"] for row in table_of(traced)["rows"]}
        check_equal(rows, {-1: 1, 5: 2, 7: 1, 9: 1}, "rows")
        check_equal(sum(probe["undecided"] for probe in traced.summary["probes"]), 1, "2^64 - 1 is no signed number")
    total = table_of(run.trace(probe, "--sum", "arg0", "--where", "arg0 < 100", command=[program]))["rows"][0]
    check_equal((total["count"], total["sum"]), (5, -1 + 5 + 5 + 7 + 9), "the sum")


@scenario
def what_a_question_could_not_be_asked_of_is_said_even_to_who_wants_no_notices(run):
    require_root()
    source = run.dir / "partly.c"
    source.write_text("""
        #include <sys/sdt.h>
        int main(void) {
          static volatile char name[] = "x";
          for (volatile int i = 0; i < 3; i++) {
            DTRACE_PROBE2(partly, hit, i, 7);
            DTRACE_PROBE1(partly, hit, i);
          }
          return name[0] == 0;
        }""")
    program = run.build("partly", [source], ["-O1"])
    probe = f"usdt:{program}:partly:hit"
    for question in (["--sum", "arg1"], ["--by", "arg1"], ["--where", "arg1 == 7"]):
        for quiet in ([], ["-q"]):
            result = run.trace(probe, *question, *quiet, command=[program])
            result.check_code(0)
            lines = [line for line in result.stderr.splitlines() if "not attached" in line]
            check(len(lines) == 1 and "arg1" in lines[0], f"{question} {quiet}: {result.stderr}")
            check_equal(result.summary["hits"], 3, f"hits of the site that has the argument, {question}")
    nothing = run.trace(probe, "-q", command=[program])
    check("not attached" not in nothing.stderr, "each site can be shown")


if __name__ == "__main__":
    main()
