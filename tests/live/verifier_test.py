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


def structs(levels, width, text):
    """Structs within structs: each has `width` of the next inner ones and a list of such, the innermost as many numbers and texts."""
    lines = [f"struct l0 {{ {' '.join(f'int n{i}; {text} t{i};' for i in range(width))} std::vector<{text}> texts; }};"]
    for level in range(1, levels + 1):
        lines.append(f"struct l{level} {{ int own{level}; {' '.join(f'struct l{level - 1} s{i};' for i in range(width))} std::vector<l{level - 1}> more; }};")
    return "\n".join(lines)


def deep_program(levels, width, text, functions):
    """Functions that are passed such a struct by pointer, and one that is passed a number. Numbers tell where they are."""
    fill = [f"static void fill0(l0 *p, int base) {{ {' '.join(f'p->n{i} = base * 10 + {i}; p->t{i} = TEXT;' for i in range(width))} p->texts = {{TEXT}}; }}"]
    for level in range(1, levels + 1):
        inner = " ".join(f"fill{level - 1}(&p->s{i}, base * 10 + {i});" for i in range(width))
        more = f"p->more.resize(1); fill{level - 1}(p->more.data(), base * 10 + {width});"
        fill.append(f"static void fill{level}(l{level} *p, int base) {{ p->own{level} = base; {inner} {more} }}")
    outer = f"l{levels}"
    wide = [f'extern "C" __attribute__((noipa)) int wide{n}({outer} p, int plain) {{ return plain + p.own{levels}; }}' for n in range(functions)]
    calls = " ".join(f"sum += wide{n}(all, {100 + n});" for n in range(functions))
    return "\n".join(["#include <string>", "#include <vector>", '#define TEXT "a text that is longer than what a string has within itself"', structs(levels, width, text), *fill, *wide,
                      'extern "C" __attribute__((noipa)) int narrow(int a) { return a; }', f"int main() {{ static {outer} all; fill{levels}(&all, 1); int sum = narrow(7);",
                      f"{calls} return sum == 0; }}"])


TEXT = "a text that is longer than what a string has within itself"


def count_values(run, shown, levels, base, width):
    """How many of a struct's values are shown, each of which must be the program's, and how many are not."""
    if levels == 0:
        wanted = {name: value for i in range(width) for name, value in ((f"n{i}", base * 10 + i), (f"t{i}", TEXT))}
    else:
        wanted = {f"own{levels}": base}
    there = missing = 0
    for name, value in wanted.items():
        got = shown.get(name)
        if isinstance(got, dict):
            check_equal(got, {"error": "left out: more values than one BPF program can read"}, name)
        elif isinstance(got, int) and isinstance(value, str):
            continue  # a pointer to characters
        elif got is not None:
            check_equal(got, value, f"{name} of {shown}")
        there, missing = there + (got is not None and not isinstance(got, dict)), missing + isinstance(got, dict)
    for i in range(width + 1 if levels else 0):
        inner = shown.get(f"s{i}") if i < width else dict(enumerate(shown.get("more", []))).get(0)
        if isinstance(inner, dict) and "error" not in inner:
            counts = count_values(run, inner, levels - 1, base * 10 + i, width)
            there, missing = there + counts[0], missing + counts[1]
    return there, missing


@scenario
def a_function_of_more_values_than_a_program_can_read_is_shown_without_its_deepest(run):
    for levels, width, text, probe in ((3, 4, "std::string", "uprobe"), (2, 7, "std::string", "ucall"), (3, 4, "const char *", "ucall")):
        name = f"deep{levels}{width}{probe}"
        source = run.dir / f"{name}.cpp"
        source.write_text(deep_program(levels, width, text, functions=1))
        program = run.build(name, [source], ["-O1", "-g"], compiler="c++")
        result = run.trace(f"{probe}:{program}:wide0", f"{probe}:{program}:narrow", "--depth", levels + 1, "--print", f"{probe}:wide0=*p, plain", "--print", f"{probe}:narrow=a",
                           command=[program], timeout=200)
        check_equal(result.code, 0, result.describe())
        narrow, wide = sorted(result.events, key=lambda event: event["ts"])
        check_equal((narrow["args"], wide["args"][1]), ([7], 100), "what has few values")
        there, missing = count_values(run, wide["args"][0], levels, 1, width)
        print(f"  {name}: {there} values are shown, {missing} are left out")
        said = [line for line in result.stderr.splitlines() if "left out" in line]
        if text != "std::string":
            check_equal((missing, said), (0, []), "what fits is whole")
            continue
        check(there >= 8 and missing > 0, f"{there} values, and {missing} are left out")
        check(len(said) == 1 and "wide0" in said[0] and "than one BPF program can read" in said[0], result.stderr)
        result.check_accounted(2, lost=0)


if __name__ == "__main__":
    main()
