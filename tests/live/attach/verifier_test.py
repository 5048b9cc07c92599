#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is said when the kernel's verifier refuses the stock program: no kernel here does, so one is pretended
(refusing_verifier.c). And what is done where one program would be too large for it."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Skip, check, check_equal, main, scenario  # noqa: E402
from puppet import probe_of  # noqa: E402


def refused_trace(run, *options):
    program = puppet.build(run)
    preload = run.build("refusing.so", [puppet.HERE / "attach/refusing_verifier.c"], ["-shared", "-fPIC", "-O1"], libs=["-ldl"])
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


TEXT = "a text that is longer than what a string has within itself"
LEFT_OUT = {"error": "left out: more values than one BPF program can read"}


def deep_program(levels, width):
    """A function that is passed structs within structs, and one that is passed a number. Each struct has `width` of the next inner ones and a list of
    such, the innermost as many numbers and texts; numbers tell where they are."""
    numbers = range(width)
    lines = ["#include <string>", "#include <vector>", f'#define TEXT "{TEXT}"']
    lines.append(f"struct l0 {{ {' '.join(f'int n{i}; std::string t{i};' for i in numbers)} std::vector<std::string> texts; }};")
    lines.append(f"static void fill0(l0 *p, int base) {{ {' '.join(f'p->n{i} = base * 10 + {i}; p->t{i} = TEXT;' for i in numbers)} p->texts = {{TEXT}}; }}")
    for level in range(1, levels + 1):
        inner = f"l{level - 1}"
        lines.append(f"struct l{level} {{ int own{level}; {' '.join(f'{inner} s{i};' for i in numbers)} std::vector<{inner}> more; }};")
        fills = " ".join(f"fill{level - 1}(&p->s{i}, base * 10 + {i});" for i in numbers)
        lines.append(f"static void fill{level}(l{level} *p, int base) {{ p->own{level} = base; {fills} p->more.resize(1); "
                     f"fill{level - 1}(p->more.data(), base * 10 + {width}); }}")
    return "\n".join([*lines, f'extern "C" int wide(l{levels} p, int plain) {{ return plain + p.own{levels}; }}', 'extern "C" int narrow(int a) { return a; }',
                      f"int main() {{ static l{levels} all; fill{levels}(&all, 1); int sum = narrow(7); return sum + wide(all, 100) == 0; }}"])


def counted_values(shown, levels, base, width):
    """How many values of a struct are shown, each of which must be the program's, and how many are left out."""
    wanted = {f"own{levels}": base}
    if levels == 0:
        wanted = {name: value for i in range(width) for name, value in ((f"n{i}", base * 10 + i), (f"t{i}", TEXT))}
    there = missing = 0
    for name, value in wanted.items():
        if name in shown and shown[name] != LEFT_OUT:
            check_equal(shown[name], value, f"{name} of {shown}")
        there, missing = there + (shown.get(name) == value), missing + (shown.get(name) == LEFT_OUT)
    parts = [shown.get(f"s{i}") for i in range(width)] + list(shown.get("more", []))[:1] if levels else []
    for i, part in enumerate(parts):
        missing += part == LEFT_OUT
        if isinstance(part, dict) and "error" not in part:
            counts = counted_values(part, levels - 1, base * 10 + i, width)
            there, missing = there + counts[0], missing + counts[1]
    return there, missing


@scenario
def a_function_of_more_values_than_a_program_can_read_is_shown_without_its_deepest(run):
    left_out = 0
    for levels, width, probe in ((2, 3, "ucall"), (2, 4, "uprobe"), (1, 8, "uprobe")):
        name = f"deep{levels}{width}{probe}"
        source = run.dir / f"{name}.cpp"
        source.write_text(deep_program(levels, width))
        program = run.build(name, [source], ["-O0", "-g"], compiler="c++")
        result = run.trace([f"{probe}:{program}:wide", f"{probe}:{program}:narrow"], "--depth", levels + 2, command=[program], timeout=200)
        check_equal(result.code, 0, result.describe())
        narrow, wide = sorted(result.events, key=lambda event: event["ts"])
        check_equal((narrow["args"], wide["args"][1]), ([7], 100), "what has few values")
        there, missing = counted_values(wide["args"][0], levels, 1, width)
        print(f"  {name}: {there} values are shown, {missing} are left out")
        said = [line for line in result.stderr.splitlines() if "left out" in line]
        left_out += missing
        check(there >= 8 and len(said) == (missing > 0), f"{there} values, {missing} are left out: {said}")
        check(all("wide" in line and "more than one BPF program can read" in line for line in said), result.stderr)
        result.check_accounted(2, lost=0)
    if left_out == 0:
        raise Skip("this kernel's verifier takes all of them")


if __name__ == "__main__":
    main()
