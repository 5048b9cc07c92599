#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Truth rule 4: a probe on any nop form shows true values and never changes the program's locals.

Linux 6.18 turns a traced 5-byte nop into a call, which writes below the stack pointer, where a leaf function's locals
are, and leads to a page that children of the process do not inherit. A lone nop5 must then be left alone, with the
reason; `nop,nop5` and `nop,nop10` are traced on the leading nop.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401  (finds the shared harness)
from elf_view import notes  # noqa: E402
from harness import check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402

ROUNDS = 3000
STEP = 0x123456789


def trace_form(run, form, pattern=None):
    """Runs one form under the tracer; returns (result, calls in which a local was corrupted)."""
    require_root()
    require_x86_64()
    program = run.build("nop_sites", [puppet.HERE / "nop_sites.c"], ["-O1"])
    check_equal(len(notes(program)), 7, "notes built")
    result = run.trace(f"usdt:{program}:nops:{pattern or form}", command=[program, form, ROUNDS])
    numbers = [line for line in result.stdout.splitlines() if line.isdigit()]
    return result, int(numbers[0]) if numbers else None


def expected(rounds):
    seeds = [n * STEP for n in range(rounds)]
    return [[seed, seed + 2, seed + 15] for seed in seeds]


def check_traced(result, corrupted):
    check_equal(corrupted, 0, "calls whose red-zone locals were corrupted")
    result.check_code(0)
    result.check_accounted(ROUNDS, lost=0)
    check_equal([event["args"] for event in result.events], expected(ROUNDS), "arguments")


@scenario
def plain_nop_is_traced(run):
    check_traced(*trace_form(run, "plain"))


@scenario
def nop_nop5_is_traced_and_harmless(run):
    check_traced(*trace_form(run, "nop_nop5"))


@scenario
def nop_nop10_is_traced_and_harmless(run):
    check_traced(*trace_form(run, "nop_nop10"))


@scenario
def children_of_a_traced_program_live_on_whatever_nop_is_at_the_site(run):
    require_root()
    require_x86_64()
    program = run.build("nop_sites", [puppet.HERE / "nop_sites.c"], ["-O1"])
    for form in ("plain", "nop5", "wide_nop5", "nop_nop5", "nop_nop10", "guarded_nop5"):
        result = run.trace(f"usdt:{program}:nops:*", command=[program, form, ROUNDS, 5])
        corrupted, died = [int(line) for line in result.stdout.splitlines() if line.isdigit()][:2]
        check_equal((corrupted, died), (0, 0), f"{form}: calls that were corrupted, children that died")


def check_traced_or_skipped(run, form):
    """A site the kernel cannot trace safely is skipped, with a reason that names the nop; never half of both."""
    result, corrupted = trace_form(run, form, pattern="*")
    check_equal(corrupted, 0, f"calls whose red-zone locals were corrupted\n{result.describe()}")
    if len(result.events) == ROUNDS:
        check_equal([event["args"] for event in result.events], expected(ROUNDS), "arguments")
        return
    check_equal(len(result.events), 0, "events of a skipped site")
    check(form in result.stderr, f"no reason for skipping the {form} site\n{result.describe()}")


@scenario
def bare_nop5_is_harmless_under_default_options(run):
    check_traced_or_skipped(run, "nop5")


@scenario
def a_nop5_in_another_encoding_is_harmless_under_default_options(run):
    check_traced_or_skipped(run, "wide_nop5")


@scenario
def bare_nop10_is_harmless_under_default_options(run):
    check_traced_or_skipped(run, "nop10")


@scenario
def a_lone_unsafe_site_is_an_error_that_says_why(run):
    result, corrupted = trace_form(run, "nop5")
    if result.events:
        check_traced(result, corrupted)
        return
    check(result.code not in (0, 2), f"exit code when every site was skipped\n{result.describe()}")
    check("nop5" in result.stderr, f"no reason given\n{result.describe()}")


if __name__ == "__main__":
    main()
