#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What presets can say, asked by some of the tests' own. Each question of each preset that is built in is asked by a scenario of
presets_languages_test.py, presets_libraries_test.py, presets_tls_test.py, presets_servers_test.py, presets_system_test.py or
heap_test.py; the last one looks whether that is so."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_program, require_root, scenario  # noqa: E402
from presets_support import answers, questions_asked  # noqa: E402

OWN = """
[question.all]
title = "how many"
probes = ["shop:sold"]
count = true

[question.each]
title = "one by one"
probes = ["shop:sold"]
fires-only-if = ["environment SHOP_PROBES=1"]
otherwise = "all"
on-request = true
"""


SHOP = """#include <stdio.h>
#include <sys/sdt.h>
int main(void) { for (int c, n = 0; (c = getchar()) != EOF;) { if (c != 's') continue; DTRACE_PROBE1(shop, sold, n); n++; puts(""); fflush(stdout); } }
"""


@scenario
def another_question_is_asked_of_processes_in_which_probes_never_fire(run):
    """One of two that fires is enough, and children may be started in another way: then it is asked as it is."""
    (run.dir / "presets").mkdir()
    (run.dir / "presets/shop.toml").write_text(OWN)
    (run.dir / "shop.c").write_text(SHOP)
    program = run.build("shop", [run.dir / "shop.c"])
    start = lambda **environment: run.start(program, env={"A": "b", **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: E731
    silent, other, loud = start(), start(), start(SHOP_PROBES="1")

    def sell(*shops):
        for shop in shops:
            shop.stdin.write(b"sss")
            for _ in range(3):
                shop.stdout.readline()
    never = answers(run, "shop.each", options=["-p", f"{silent.pid},{other.pid}"], work=lambda: sell(silent, other))
    check_equal(list(never.of), ["all"], "the question that is asked")
    check_equal(never.objects("all", "summary")[-1]["hits"], 6, "hits of both")
    check(f"each: its probes do not fire in process {silent.pid}, {other.pid}: only if it was started with SHOP_PROBES=1" in never.said and
          "each: 'all' is asked instead" in never.said, never.said)
    some = answers(run, "shop.each", options=["-p", f"{silent.pid},{loud.pid}"], work=lambda: sell(loud))
    check_equal(len(some.args("each")), 3, "hits of one")
    check(f"each: its probes do not fire in process {silent.pid}: only if" in some.said, some.said)
    children = answers(run, "shop.each", options=["-p", silent.pid, "--children"], work=lambda: sell(silent))
    check_equal(len(children.args("each")), 3, "hits of one whose children may fire")


LIMITED = """
[question.some]
probes = ["shop:sold"]
where = "arg0 % 3 == 1"

[question.all]
probes = ["shop:sold"]
where = "arg0 >= 0"
"""


def sold(run, *words):
    """What is shown, and said, of what a shop sells seven times."""
    (run.dir / "presets").mkdir(exist_ok=True)
    (run.dir / "presets/shop.toml").write_text(LIMITED)
    (run.dir / "shop.c").write_text(SHOP)
    program = run.build("shop", [run.dir / "shop.c"])
    command = [] if "--replay" in words else ["--wait", "--hold-exec", "--", "sh", "-c", f"echo sssssss | {program} > /dev/null"]
    done = subprocess.run([run.tool, *words, *command], capture_output=True, text=True, timeout=60, cwd=run.dir,
                          env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})
    check_equal(done.returncode, 0, done.stderr)
    return re.findall(r"arg0=(\d+)", done.stdout), done.stderr


@scenario
def the_condition_of_a_question_is_named_where_it_leaves_hits_out(run):
    """Who asks by a preset wrote no --where."""
    require_root()
    numbers, said = sold(run, "--preset", "shop.some")
    check_equal(numbers, ["1", "4"], "what it holds for")
    check("its condition 'arg0 % 3 == 1' held for 2 of 7 hits" in said and "--where" not in said, said)
    numbers, said = sold(run, "--preset", "shop.all")
    check_equal(len(numbers), 7, "all")
    check("held for" not in said, said)


@scenario
def one_question_ends_when_it_has_so_many_events_and_records_them(run):
    require_root()
    numbers, said = sold(run, "--preset", "shop.all", "--max-events", "3")
    check_equal(numbers, ["0", "1", "2"], f"as many as are asked for: {said}")
    numbers, said = sold(run, "--preset", "shop.some", "--record", "some.rec")
    check_equal(numbers, [], "what is shown of what is recorded")
    check_equal(sold(run, "--replay", "some.rec")[0], ["1", "4"], "what was recorded")


# Programs of the distribution with the functions that presets ask about.
OF_FUNCTIONS = {"bash": "bash", "gnutls": "gnutls-cli", "libc": "ls", "mariadb": "mariadbd", "nginx": "nginx", "openssl": "openssl", "php": "php8.2",
                "redis": "redis-server", "sqlite": "sqlite3"}


@scenario
def no_question_names_debug_packages_whose_types_it_does_not_need(run):
    require_program("php8.2")
    (run.dir / "presets").mkdir()
    (run.dir / "presets/untyped.toml").write_text('[question.error]\nprobes = ["uprobe:*:zend_error_zstr_at"]\n')
    told = {**os.environ, "USDT_PRESETS": str(run.dir / "presets")}

    def explain(preset, program):
        done = subprocess.run([run.tool, "--explain", "--preset", preset, "--", program], capture_output=True, text=True, timeout=60, env=told)
        check_equal(done.returncode, 0, done.stderr)
        return done.stderr
    listed = subprocess.run([run.tool.with_name("usdt-list"), "--presets", "-f", "json"], capture_output=True, text=True, check=True, env=told)
    for each in map(json.loads, listed.stdout.splitlines()):
        program = OF_FUNCTIONS.get(each["preset"])
        if program and shutil.which(program):
            name = f"{each['preset']}.{each['question']}"
            check("no types of functions" not in explain(name, program), name)
    if "no types of functions" not in explain("untyped.error", "php8.2"):
        raise Skip("PHP has its debug information")


STATES = """
[arguments]
"shop:moved" = "state:{-1=unknown, 0=idle, 0x2=busy}, took:duration[us], open:bool"

[question.states]
probes = ["shop:moved"]
by = "state, open"
sum = "took as us"

[question.busy]
probes = ["shop:moved"]
where = "state == busy || state == unknown"
print = "state, took, took as twice:{80=eighty}"

[question.computed]
probes = ["shop:moved"]
by = "took / 10 % 2 as parity:{0=even, 1=odd}"
"""


MOVES = """#include <stdio.h>
#include <sys/sdt.h>
static const char *name_of(int state) { return state == -1 ? "unknown" : state == 0 ? "idle" : state == 2 ? "busy" : "5"; }
int main(void) {
  static const int states[] = {-1, 0, 2, 5};
  for (int n = 0; n < 100; n++) {
    int state = states[(n * n % 7 + n) % 4];
    long took = n % 10 * 10;
    DTRACE_PROBE3(shop, moved, state, took, (char)(n % 3 == 0));
    printf("%s %ld %d\\n", name_of(state), took, n % 3 == 0);
  }
  return 0;
}
"""


@scenario
def numbers_have_the_names_that_a_preset_gives_them_in_all_forms(run):
    """The program prints the names of its own."""
    require_root()
    (run.dir / "presets").mkdir()
    (run.dir / "presets/shop.toml").write_text(STATES)
    (run.dir / "moves.c").write_text(MOVES)
    program = run.build("moves", [run.dir / "moves.c"])
    told = [(name, int(took), is_open == "1") for name, took, is_open in
            map(str.split, subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())]

    def number(name):
        return 5 if name == "5" else name

    def shown(*words):
        done = subprocess.run([run.tool, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=run.dir,
                              env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})
        check_equal(done.returncode, 0, done.stderr)
        return [line for line in done.stdout.splitlines() if not re.fullmatch(r"(\w+|5) \d+ \d", line)]  # the program's own
    got = answers(run, "shop", [program])
    counts = {(name, is_open): sum(1 for each in told if each[::2] == (name, is_open)) for name, _, is_open in told}
    check_equal(got.named_counts("states"), {(number(name), int(is_open)): count for (name, is_open), count in counts.items()}, "JSON, a table")
    busy = [each for each in told if each[0] in ("busy", "unknown")]
    events = got.objects("busy", "event")
    check_equal([event["names"]["0"] for event in events], [name for name, _, _ in busy], "JSON, events")
    check_equal([event["names"].get("2") for event in events], ["eighty" if took == 80 else None for _, took, _ in busy], "JSON, a name of the list's own")
    odd = sum(took // 10 % 2 for _, took, _ in told)
    check_equal(got.named_counts("computed"), {"even": len(told) - odd, "odd": odd}, "a sum")
    table = sorted(f"{name},{str(is_open).lower()},{count},{sum(each[1] for each in told if each[::2] == (name, is_open))}"
                   for (name, is_open), count in counts.items())
    ask = ["--preset", "shop.states", "-f", "csv"]
    check_equal(shown(*ask, "--", program)[:1], ["state,open,count,sum(us)"], "CSV, columns")
    check_equal(sorted(shown(*ask, "--", program)[1:]), table, "CSV, a table")
    lines = shown("--preset", "shop.busy", "--", program)
    check_equal([re.search(r"state=(\w+) took=(\S+) twice=(\S+)$", line).groups() for line in lines],
                [(name, duration(took), "eighty" if took == 80 else str(took)) for name, took, _ in busy], "text")
    # A recording has the names that its numbers had.
    run_record(run, program)
    check_equal(sorted(shown("--replay", "moves.rec", "-f", "csv", "--by", "state, open", "--sum", "took as us")[1:]), table, "a replay")
    replayed = [json.loads(line) for line in shown("--replay", "moves.rec", "-f", "json", "--where", "state == busy")][:-1]
    check_equal([event["names"] for event in replayed], [{"0": "busy"}] * sum(1 for name, _, _ in told if name == "busy"), "a replay of some")


def duration(us):
    return f"{us}us" if us else "0ns"


def run_record(run, program):
    """Makes moves.rec of all that the program passes."""
    (run.dir / "presets/all.toml").write_text(STATES.split("[question")[0] + '[question.all]\nprobes = ["shop:moved"]\nrecord = "moves.rec"\n')
    subprocess.run([run.tool, "--preset", "all", "--", program], capture_output=True, check=True, cwd=run.dir,
                   env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})


@scenario
def each_question_of_each_preset_is_asked_by_a_scenario(run):
    listed = subprocess.run([run.tool.with_name("usdt-list"), "--presets", "-f", "json"], capture_output=True, text=True, check=True,
                            env={**os.environ, "USDT_PRESETS": str(run.dir / "presets")})
    there = {}
    for each in map(json.loads, listed.stdout.splitlines()):
        there.setdefault(each["preset"], set()).add(each["question"])
    check_equal(questions_asked(), there, "questions that scenarios ask")


if __name__ == "__main__":
    main()
