# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list --doctor against this kernel: what it says of a nop is what happens to a program traced on that nop."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401  (finds the shared harness)
from harness import Skip, check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402

ROUNDS = 1000
FORMS = {"nop": "plain", "nop5": "nop5", "nop10": "nop10"}  # the doctor's names, those of nop_sites.c


def usdt_list(run, *arguments):
    tool = run.tool.with_name("usdt-list")
    if not tool.exists():
        raise Skip(f"no {tool.name} beside {run.tool.name}")
    return subprocess.run([str(tool), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def doctor(run):
    """(red_zone lines, verdict lines), each by nop."""
    require_root()
    require_x86_64()
    done = usdt_list(run, "--doctor", "-f", "json")
    check_equal(done.returncode, 0, f"exit code as root\n{done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tests, verdicts = ({line["nop"]: line for line in lines if line["type"] == kind} for kind in ("red_zone", "verdict"))
    check_equal((list(tests), list(verdicts)), (list(FORMS), list(FORMS)), "nops")
    return tests, verdicts


def build(run):
    return run.build("nop_sites", [puppet.HERE / "nop_sites.c"], ["-O1"])


def trace(run, program, form, *options):
    """Hits of one form's site, and calls in which a local of the program was corrupted."""
    result = run.trace(f"usdt:{program}:nops:{form}", *options, command=[program, form, ROUNDS])
    numbers = [int(line) for line in result.stdout.splitlines() if line.isdigit()]
    return len(result.events), numbers[0] if numbers else 0


@scenario
def a_probe_on_a_plain_nop_is_a_trap_and_harmless(run):
    test = doctor(run)[0]["nop"]
    check_equal((test["intact"], test["cost"], test["calls"], test["overwritten"]), ("yes", "trap", 1000, 0), "nop")


@scenario
def nop5_is_called_unsafe_exactly_where_a_program_is_corrupted(run):
    test = doctor(run)[0]["nop5"]
    hits, corrupted = trace(run, build(run), "nop5", "--allow-unsafe-nop5")
    check_equal(hits, ROUNDS, "hits of the nop5 site")
    check_equal(test["intact"], "no" if corrupted else "yes", f"verdict, with {corrupted} calls corrupted")
    check_equal(test["overwritten"], corrupted, "calls corrupted")
    check_equal(test["cost"] == "optimised", test["overwritten"] > 0, "optimised, as the only way to be corrupted")


@scenario
def sites_are_traced_exactly_where_the_verdict_says_used(run):
    program, (_, verdicts) = build(run), doctor(run)
    for nop, form in FORMS.items():
        hits, corrupted = trace(run, program, form)
        check_equal(hits, ROUNDS if verdicts[nop]["used"] else 0, f"hits of the {form} site: {verdicts[nop]['text']}")
        check_equal(corrupted, 0, f"calls corrupted under default options, {form}")


@scenario
def the_cost_usdt_list_predicts_is_the_cost_measured(run):
    program, (tests, _) = build(run), doctor(run)
    listed = usdt_list(run, "-f", "json", program)
    costs = {site["name"]: site["site"]["cost"] for site in map(json.loads, listed.stdout.splitlines())}
    compared = 0
    for nop, form in FORMS.items():
        if costs[form] == "refused":
            check(tests[nop]["intact"] != "yes", f"{form} is refused although harmless: {tests[nop]}")
            continue
        check_equal(costs[form], tests[nop]["cost"], f"cost of {form}")
        compared += 1
    check(compared > 0, "no cost to compare")


@scenario
def every_answer_is_certain_for_root(run):
    lines = [json.loads(line) for line in usdt_list(run, "--doctor", "-f", "json").stdout.splitlines()]
    require_root()
    unsure = [line for line in lines if line["type"] == "feature" and line["answer"] == "unknown"]
    check_equal(unsure, [], "features that could not be told")
    backend = [line["name"] for line in lines if line["type"] == "backend"]
    check(backend in (["uprobe_multi"], ["perf_uprobe"]), f"backend {backend}")


if __name__ == "__main__":
    main()
