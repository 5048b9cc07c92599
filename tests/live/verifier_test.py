#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is said when the kernel's verifier refuses the stock program: no kernel here does, so one is pretended
(refusing_verifier.c). And what is done where one program would be too large for it."""

import os

import puppet
from harness import check, check_equal, main, scenario
from puppet import probe_of


def refused_trace(run, *options):
    program = puppet.build(run)
    preload = run.build("refusing.so", [puppet.HERE / "refusing_verifier.c"], ["-shared", "-fPIC", "-O1"], libs=["-ldl"])
    env = {**os.environ, "LD_PRELOAD": str(preload), "REFUSED_PROGRAM": "usdt_trace_hit"}
    result = run.trace(probe_of(program), "--duration", 1, *options, env=env)
    check_equal(result.code, 1, f"exit code\n{result.describe()}")
    return result


@scenario
def a_refusal_of_the_verifier_is_called_so_and_shown_by_its_end(run):
    said = refused_trace(run).stderr
    check("verifier refuses the program 'usdt_trace_hit'" in said, said)
    check("1998: (b7) r0 = 0; 1999: (b7) r0 = 0; R2 is not to my taste" in said, said)
    check("CAP_" not in said and "run as root" not in said, said)
    check(len(said.splitlines()) < 5, f"the whole log on the terminal\n{said}")
    check("--verifier-log FILE" in said, said)


@scenario
def its_whole_log_is_written_where_it_is_asked_for(run):
    log = run.dir / "log"
    said = refused_trace(run, "--verifier-log", log).stderr
    check(str(log) in said and "2002 lines" in said, said)
    lines = log.read_text().splitlines()
    check_equal((lines[0], lines[-2], len(lines)), ("0: (b7) r0 = 0", "R2 is not to my taste", 2002), "log")


@scenario
def a_log_that_cannot_be_written_is_said(run):
    said = refused_trace(run, "--verifier-log", run.dir / "no" / "log").stderr
    check("No such file or directory" in said and "not to my taste" in said, said)


MANY = 90
MEMBERS = ["s->inner->" + "next->" * steps + "wanted" for steps in range(8)]
NUMBERS = ", ".join(f"x{i}" for i in range(20))


def many_functions():
    """Functions whose arguments are all in other places, with members of structs among them. Each is called once."""
    lines = ["struct inner { struct inner *next; int wanted; };"]
    numbers = ", ".join(f"int {x}" for x in NUMBERS.split(", "))
    for n in range(MANY):
        lines.append(f"struct s{n} {{ char pad[{8 * (n + 1)}]; struct inner *inner; int own; }};")
        lines.append(f"__attribute__((noipa)) int many{n}(struct s{n} *s, {numbers}) {{ return s->own + x0; }}")
    lines.append("int main(void) { struct inner inner = {&inner, 7}; int sum = 0;")
    for n in range(MANY):
        values = ", ".join(str(100 * n + i) for i in range(20))
        lines.append(f"{{ struct s{n} s = {{.inner = &inner, .own = {n}}}; sum += many{n}(&s, {values}); }}")
    lines.append("return sum == 0; }")
    return "\n".join(lines)


@scenario
def what_is_too_much_for_one_program_is_divided(run):
    source = run.dir / "many.c"
    source.write_text(many_functions())
    program = run.build("many", [source], ["-O1", "-g"])
    result = run.trace(f"uprobe:{program}:many*", "--print", f"s->own, {', '.join(MEMBERS)}, {NUMBERS}", command=[program], timeout=120)
    check_equal(result.code, 0, result.describe())
    check_equal(len(result.events), MANY, "events")
    for event in result.events:
        n = int(event["probe"].rpartition("many")[2])
        values = event["args"]
        check_equal(values, [n, *[7] * len(MEMBERS), *range(100 * n, 100 * n + 20)], f"values of {event}")
    result.check_accounted(MANY, lost=0)


if __name__ == "__main__":
    main()
