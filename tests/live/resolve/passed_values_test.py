#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Objects that are passed and returned by value, of random types: packed and aligned ones, unions, bit-fields with and
without names, flexible arrays, complex and 128-bit numbers. The values are known beforehand; what is shown is one of
them or says why it cannot be read."""

import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import AT_ONCE, check, check_equal, main, require_root, scenario, with_long  # noqa: E402
from said import quiet  # noqa: E402

INTEGERS = [("signed char", 8, True), ("unsigned char", 8, False), ("short", 16, True), ("unsigned short", 16, False),
            ("int", 32, True), ("unsigned", 32, False), ("long long", 64, True), ("unsigned long long", 64, False)]
FUNCTIONS = 40
HEAD = """void use(void *object) { asm volatile("" :: "r"(object) : "memory"); }
#define USE(p) { __typeof__(p) copy = p; use(&copy); }
"""


class Program:
    def __init__(self, seed, bits32):
        self.random, self.bits32 = random.Random(seed), bits32
        self.structs, self.lines, self.calls, self.expected = [], [], [], {}
        for number in range(FUNCTIONS):
            self.function(f"fn{number}")

    def source(self):
        return "\n".join([HEAD, *self.structs, *self.lines, "int main(void) {", *self.calls, "return 0; }"])

    def number(self, width, signed):
        bits = self.random.getrandbits(width)
        return bits - (1 << width) if signed and bits >> (width - 1) else bits

    def scalar(self):
        """A declaration of NAME, and what makes a value: its C text, and what is to be shown (None: not compared)."""
        kind = self.random.random()
        if kind < 0.6:
            name, width, signed = self.random.choice(INTEGERS)
            return f"{name} NAME", lambda: self.literal(name, width, signed)
        if kind < 0.85:
            return f"{self.random.choice(('float', 'double'))} NAME", self.real
        if kind < 0.9:
            return "long double NAME", lambda: (self.real()[0], None)
        if kind < 0.95 and not self.bits32:
            return "__int128 NAME", lambda: (self.literal("__int128", 60, True)[0], None)
        return f"_Complex {self.random.choice(('double', 'float', 'int'))} NAME", lambda: (f"{self.number(8, True)} + 2i", None)

    def literal(self, name, width, signed):
        value = self.number(width, signed)
        return f"({name}){value & 0xffffffffffffffff:#x}ull", value

    def real(self):
        value = self.random.randrange(-4000, 4000) / 8
        return f"{value}", value

    def member(self, name, depth):
        kind = self.random.random()
        if kind < 0.25:
            base, width, signed = self.random.choice(INTEGERS)
            width = self.random.randrange(1, width)  # (as wide as its type, Clang tells the byte it begins in, not the bit)
            nameless = f"{base} : {self.random.randrange(0, width + 1)}; " if self.random.random() < 0.2 else ""

            def bits():
                value = self.number(width, signed)
                return f"{value}ll" if signed else f"{value}ull", value
            return f"{nameless}{base} {name} : {width};", bits
        if kind < 0.35 and depth < 2:
            declared, make = self.object(depth + 1)
        else:
            declared, make = self.scalar()
        aligned = f" __attribute__((aligned({self.random.choice((8, 16, 32))})))" if self.random.random() < 0.06 else ""
        return f"{declared.replace('NAME', name)}{aligned};", make

    def object(self, depth=0):
        name, keyword = f"S{len(self.structs)}", "union" if self.random.random() < 0.1 else "struct"
        self.structs.append("")  # has the name, while its members are declared before it
        count = 1 if keyword == "union" else self.random.choice((1, 1, 2, 2, 3, 4, 5))
        members = [(f"m{i}", *self.member(f"m{i}", depth)) for i in range(count)]
        flexible = " int flexible[];" if keyword == "struct" and self.random.random() < 0.1 else ""
        attribute = self.random.choice(("", "", "", "", "packed", "aligned(16)", "aligned(32)"))
        body = " ".join(declared for _, declared, _ in members)
        self.structs.append(f"{keyword} __attribute__(({attribute})) {name} {{ {body}{flexible} }};")

        def make():
            values = [(member, *value()) for member, _, value in members]
            return (f"{{ {', '.join(f'.{member} = {text}' for member, text, _ in values)} }}",
                    {member: shown for member, _, shown in values})
        return f"{keyword} {name} NAME", make

    def function(self, name):
        kinds = [self.object() if self.random.random() < 0.6 else self.scalar()
                 for _ in range(self.random.choice((1, 2, 3, 4, 6, 9)))]
        result, make_result = self.object()
        values = [make() for _, make in kinds]
        returned = make_result()
        for i, ((declared, _), (text, _)) in enumerate(zip(kinds, values)):
            self.lines.append(f"{declared.replace('NAME', f'{name}_{i}')} = {text};")
        self.lines.append(f"{result.replace('NAME', f'{name}_r')} = {returned[0]};")
        uses = " ".join(f"use(&p{i});" if self.random.random() < 0.5 else f"USE(p{i})" for i in range(len(kinds)))
        parameters = ", ".join(declared.replace("NAME", f"p{i}") for i, (declared, _) in enumerate(kinds))
        self.lines.append(f"{self.random.choice(('', 'static '))}__attribute__((noinline)) {result.replace(' NAME', '')} {name}"
                          f"({parameters}) {{ {uses} return {name}_r; }}")
        self.calls.append(f"{{ {result.replace('NAME', 'r')} = {name}("
                          f"{', '.join(f'{name}_{i}' for i in range(len(kinds)))}); use(&r); }}")
        self.expected[name] = [shown for _, shown in values] + [returned[1]]


def read(shown, wanted, what):
    """How many numbers were shown; a wrong one fails the scenario."""
    if wanted is None or isinstance(shown, dict) and "error" in shown:
        return 0
    if isinstance(wanted, dict):
        check(isinstance(shown, dict), f"{what}: {shown} for {wanted}")
        return sum(read(shown[name], value, f"{what}.{name}") for name, value in wanted.items() if name in shown)
    check_equal(shown, wanted, what)
    return 1


def compare(run, seed, compiler, flags):
    program = Program(seed, "-m32" in flags)
    name = f"passed-{compiler}{''.join(flags)}-{seed}".replace("=", "-")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "program.c"
        path.write_text(program.source())
        built = run.build(name, [path], ["-g", "-w", *flags], compiler)
    shown, most = 0, 8  # functions of one trace
    for first in range(0, FUNCTIONS, most):
        names = list(program.expected)[first:first + most]
        traced = run.trace([f"ucall:{built}:{each}" for each in names], "--depth", 4, *AT_ONCE, command=quiet(built))
        check_equal(len(traced.events), len(names), f"{name}: calls\n{traced.stderr}")
        for event in traced.events:
            function = event["probe"].rsplit(":", 1)[1]
            got = [*event["args"], event.get("return", {"error": "none"})]
            for i, (value, wanted) in enumerate(zip(got, program.expected[function], strict=True)):
                shown += read(value, wanted, f"{name} {function} {i}")
    print(f"{name}: {shown} values, all right")
    check(shown > 50, f"{name}: only {shown} values could be read")


@scenario
def what_is_passed_by_value_is_shown_as_it_was_passed(run):
    require_root()
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O2"):
            for seed in with_long((1, 2, 3, 4), (1,)):
                compare(run, seed, compiler, [level])


@scenario
def what_is_passed_by_value_in_programs_of_32_bits_is_shown_as_it_was_passed(run):
    require_root()
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O2"):
            compare(run, 3, compiler, [level, "-m32"])


# What nobody gave a name, or classes whose functions have a parameter that nobody wrote. Each "NAME NUMBERS..." of what
# is said is a call.
UNNAMED = r"""
#include <cstdio>
#include <optional>
#define KEEP __attribute__((noinline, noclone))
template <class... T> void said(const char *name, T... values) { printf("%s", name); ((printf(" %ld", (long)values)), ...); puts(""); }
struct Base { int kept; Base(int x) : kept(x) {} virtual ~Base() {} };
struct Middle : virtual Base { long m; KEEP Middle(int first, long second) : Base(first), m(second) { said("Middle", first, second); } };
struct Last : Middle { KEEP Last(int first, long second) : Base(first), Middle(11, 22) { m += second; said("Last", first, second); } };
template <class F> KEEP long call(F f, long first, int second) { said("call", first, second); return f() + first + second; }
template <class F> KEEP long one(F f, long first, int second) { said("one", first, second); return f() + first + second; }
template <class T> KEEP long go(T t, long first, int second) { said("go", first, second); return t.q + first + second; }
template <class T> KEEP long maybe(std::optional<T> t, long first, int second) { said("maybe", first, second); return (*t)() + first + second; }
int main() {
  long here = 7;
  struct Local { long *p; long q; };
  struct Small { int q; };
  long sum = go(Local{&here, 3}, 1000, 50) + go(Small{4}, 1001, 51);
  sum += call([p = &here, q = 99L] { return *p + q; }, 10, 20) + call([q = 5] { return q; }, 11, 21) + call([] { return 1; }, 12, 22);
  sum += call([&here] { return here; }, 13, 23) + one([a = 1L, b = 2L, c = 3L, &here] { return a + b + c + here; }, 14, 24);
  sum += maybe(std::optional([q = 6] { return q; }), 15, 25);
  Middle middle(31, 32);
  Last last(41, 42);
  return sum + middle.m + last.m == 1;
}
"""
TRANSPARENT = r"""
#include <stdio.h>
typedef union { int *p; long *q; } pointers __attribute__((transparent_union));
__attribute__((noinline)) int go(pointers u, int first, int second) { printf("go %d %d\n", first, second); return *u.p + first + second; }
int main(void) { int one = 1; return go(&one, 333, 1) + go(&one, 444, 2) == 1; }
"""


@scenario
def values_behind_what_has_no_name_are_those_that_were_passed(run):
    require_root()
    for language, text, compilers in (("cpp", UNNAMED, ("g++", "clang++")), ("c", TRANSPARENT, ("gcc", "clang"))):
        source = run.dir / f"unnamed.{language}"
        source.write_text(text)
        for compiler in compilers:
            for level in ("-O0", "-O1", "-O2"):
                program = run.build(f"unnamed-{compiler}{level}", [source], ["-g", "-w", level, *(["-std=c++17"] if language == "cpp" else [])],
                                    compiler)
                said = run.dir / "said"
                names = ["go*"] if language == "c" else ["go*", "call*", "one*", "maybe*", "Middle::Middle", "Last::Last"]
                traced = run.trace([f"uprobe:{program}:{name}" for name in names], "--print", "first, second",
                                   *AT_ONCE, command=["sh", "-c", f"exec {program} > {said}"])
                judge_unnamed(f"{compiler} {level}", traced, said.read_text().splitlines())


def judge_unnamed(where, traced, said):
    """Each hit has the numbers that were said, or errors."""
    right = 0
    check_equal(len(traced.events), len(said), f"{where}: hits\n{traced.stderr}")
    names = list(dict.fromkeys(line.split()[0] for line in said))

    def of_name(event):  # a copy is in quotes: "Middle::Middle(int, long) [clone .specialized.1]"
        probe = event["probe"].replace("Last::", "").replace("Middle::", "").replace('"', "")
        return next(n for n, name in enumerate(names) if f":{name}" in probe)
    # (Those within others say it later than they are hit.)
    for event, line in zip(sorted(traced.events, key=of_name), sorted(said, key=lambda line: names.index(line.split()[0]))):
        name, *numbers = line.split()
        check(name in event["probe"], f"{where}: {line} is not {event}")
        for shown, number in zip(event["args"], numbers):
            check(shown == int(number) or isinstance(shown, dict), f"{where}: {line} is shown as {event}")
            right += shown == int(number)
    check(right >= 6 or where.startswith(("gcc", "clang ")), f"{where}: {right} values are right\n{traced.stderr}")


if __name__ == "__main__":
    main()
