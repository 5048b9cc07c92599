#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Numbers of all the types that C and C++ compilers have, in structs of either byte order, in programs by chance whose
values are known beforehand: behind a pointer, by value, in tables and questions. What is shown is right, or says why it
cannot be read."""

import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, attach_at_once, check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402
from said import quiet  # noqa: E402

attach_at_once()

INTEGERS = [("signed char", 8, True), ("unsigned char", 8, False), ("short", 16, True), ("unsigned short", 16, False),
            ("int", 32, True), ("unsigned", 32, False), ("long", 64, True), ("unsigned long", 64, False)]
HEAD = """
enum color { RED = 1, GREEN = 70000, BLUE = -3 };
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")
"""
BIG = '__attribute__((scalar_storage_order("big-endian")))'
STRUCTS = 12


class Struct:
    """A struct by chance, with a value of it, and what is to be shown of that; None: an error is right as well."""

    def __init__(self, number, rng, big, halves):
        self.name, self.random, self.big, self.halves = f"S{number}", rng, big, halves
        self.assigned = []
        packed = rng.random() < 0.4
        members = [self.member(f"m{i}", packed) for i in range(rng.randrange(2, 7))]
        attribute = " ".join([BIG if big else "", "__attribute__((packed))" if packed else ""])
        self.declared = f"struct {attribute} {self.name} {{ {' '.join(each[0] for each in members)} }};"
        self.value = "{ " + ", ".join(f".m{i} = {each[1]}" for i, each in enumerate(members)) + " }"
        self.shown = {f"m{i}": each[2] for i, each in enumerate(members)}

    def integer(self, width, signed):
        bits = self.random.getrandbits(width)
        value = bits - (1 << width) if signed and bits >> (width - 1) else bits
        return f"({'' if signed else 'unsigned '}long)0x{value & (1 << 64) - 1:x}ull", value

    def real(self, most):
        value = self.random.randrange(-most, most) / 8
        return f"{value}", value

    def member(self, name, packed):
        kind = self.random.random()
        if kind < 0.3:
            declared, width, signed = self.random.choice(INTEGERS)
            return f"{declared} {name};", *self.integer(width, signed)
        if kind < 0.45:
            base, most, signed = self.random.choice(INTEGERS[4:])
            width = self.random.randrange(1, most)
            return f"{base} {name} : {width};", *self.integer(width, signed)
        if kind < 0.6:
            return f"{self.random.choice(('float', 'double'))} {name};", *self.real(4000)
        if kind < 0.75 and self.halves:
            text, value = self.real(1000)
            if self.big:  # (GCC 12 makes constants of those 0, and stores them rightly.)
                self.assigned.append(f"v_{self.name}.{name} = (_Float16){text};")
                text = "0"
            return f"_Float16 {name};", text, value
        if kind < 0.8:
            color, value = self.random.choice((("RED", 1), ("GREEN", 70000), ("BLUE", -3)))
            return f"enum color {name};", color, value
        if kind < 0.87:
            values = [self.integer(16, False) for _ in range(3)]
            return f"unsigned short {name}[3];", "{" + ", ".join(v[0] for v in values) + "}", [v[1] for v in values]
        if kind < 0.92 and not self.big:
            text, value = self.integer(120, True)
            text = f"((__int128){value >> 64}ll << 64 | 0x{value & (1 << 64) - 1:x}ull)"
            return f"__int128 {name};", text, str(value)
        if kind < 0.95 and not self.big:
            text, value = self.real(4000)
            return f"long double {name};", f"{text}L", f"{value:g}"
        if not self.big:
            (text, real), (_, imaginary) = self.real(4000), self.real(4000)
            return f"_Complex double {name};", f"{text} + {imaginary} * 1.0i", {"real": real, "imaginary": imaginary}
        return f"const char *{name};", "0", None


def program_of(seed, big, halves):
    rng = random.Random(seed)
    structs = [Struct(i, rng, big, halves) for i in range(STRUCTS)]
    lines = [HEAD]
    for each in structs:
        lines += [each.declared, f"static struct {each.name} v_{each.name} = {each.value};",
                  f"__attribute__((noinline)) void p_{each.name}(struct {each.name} *p) {{ KEEP(p); }}",
                  f"__attribute__((noinline)) void v_{each.name}_(struct {each.name} v) {{ KEEP(&v); }}",
                  f"__attribute__((noinline)) void a_{each.name}(struct {each.name} (*a)[2]) {{ KEEP(a); }}"]
    lines += ["int main(void) {"]
    for each in structs:
        lines += [*each.assigned, f"p_{each.name}(&v_{each.name}); v_{each.name}_(v_{each.name});",
                  f"{{ struct {each.name} two[2]; two[0] = two[1] = v_{each.name}; a_{each.name}(&two); }}"]
    return structs, "\n".join([*lines, "return 0; }"])


def compared(shown, wanted, what, errors):
    """How many numbers were shown; a wrong one fails the scenario."""
    if isinstance(shown, dict) and "error" in shown:
        errors.append(f"{what}: {shown['error']}")
        return 0
    if isinstance(wanted, dict):
        check(isinstance(shown, dict) and set(shown) == set(wanted), f"{what}: {shown} for {wanted}")
        return sum(compared(shown[name], value, f"{what}.{name}", errors) for name, value in wanted.items())
    if isinstance(wanted, list):
        check_equal(len(shown), len(wanted), what)
        return sum(compared(*pair, what, errors) for pair in zip(shown, wanted))
    if wanted is not None:
        check_equal(shown, wanted, what)
    return 1


def build(run, seed, compiler, flags, big):
    halves = subprocess.run([compiler, "-x", "c", "-fsyntax-only", "-"], input="_Float16 half;", text=True,
                            capture_output=True).returncode == 0
    structs, source = program_of(seed, big, halves)
    name = f"numbers-{compiler}{''.join(flags)}-{seed}-{'big' if big else 'little'}".replace("=", "-")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "program.c"
        path.write_text(source)
        return structs, run.build(name, [path], ["-g", "-w", *flags], compiler)


def traced_values(run, built, structs, function, asked):
    result = run.trace([f"uprobe:{built}:{function.format(each.name)}" for each in structs], "--depth", "3", "--print", asked,
                       command=quiet(built))
    result.check_code(0)
    values = {event["probe"].rsplit(":", 1)[1]: event["args"][0] for event in result.events}
    check_equal(len(values), len(structs), f"calls: {result.stderr}")
    return [values[function.format(each.name)] for each in structs]


def compare(run, seed, compiler, flags, big):
    structs, built = build(run, seed, compiler, flags, big)
    shown, errors = 0, []
    for function, asked in (("p_{}", "*p"), ("a_{}", "(*a)[1]"), ("v_{}_", "v")):
        for first in range(0, STRUCTS, 6):
            some = structs[first:first + 6]
            for each, value in zip(some, traced_values(run, built, some, function, asked)):
                shown += compared(value, each.shown, f"{built.name} {function.format(each.name)}", errors)
    behind_pointers = [each for each in errors if " p_" in each or " a_" in each]
    print(f"{built.name}: {shown} values right, {len(errors)} errors", *errors[:4], sep="\n    ")
    check_equal(behind_pointers, [], "what is behind a pointer is read")
    return structs, built


def asked_of(run, built, structs):
    """Questions about each number: its value answers them, what it would be in the other byte order does not."""
    for each in structs:
        for name, value in each.shown.items():
            if isinstance(value, (dict, list, str)) or value is None:
                continue
            probe = f"uprobe:{built}:p_{each.name}"
            literal = f"{value!r}" if value >= 0 else f"({value!r})"
            result = run.trace(probe, "--where", f"p->{name} == {literal}", "--print", f"p->{name}", command=quiet(built))
            check_equal([event["args"] for event in result.events], [[value]], f"{probe} p->{name} == {literal}: {result.stderr}")
            if isinstance(value, float) or value in (0, -1):
                continue
            result = run.trace(probe, "--where", f"p->{name} != {literal}", command=quiet(built))
            check_equal(len(result.events), 0, f"{probe} p->{name} != {literal}")


@scenario
def numbers_of_all_types_are_what_the_program_has(run):
    require_root()
    for compiler, flags in (("gcc", ["-O0"]), ("gcc", ["-O2"]), ("gcc", ["-O1", "-gdwarf-4"]), ("clang", ["-O1"])):
        for seed in (1, 2):
            compare(run, seed, compiler, flags, big=False)


@scenario
def numbers_of_the_other_byte_order_are_what_the_program_has(run):
    require_root()
    for flags in (["-O0"], ["-O2"], ["-O1", "-gdwarf-4"]):
        for seed in (3, 4):
            structs, built = compare(run, seed, "gcc", flags, big=True)
    asked_of(run, built, structs[:4])


@scenario
def questions_have_the_numbers_that_are_shown(run):
    require_root()
    structs, built = build(run, 5, "gcc", ["-O1"], big=False)
    asked_of(run, built, structs[:4])


HALVES = """
struct h { unsigned short bits; _Float16 f; };
__attribute__((noinline)) void all(struct h *h) { __asm__ volatile("" : : "r"(h) : "memory"); }
int main(void) { struct h h; for (unsigned i = 0; i < 65536; i += 7) { h.bits = i; __builtin_memcpy(&h.f, &h.bits, 2); all(&h); } }
"""


def build_with_halves(run, name, text):
    source = run.dir / f"{name}.c"
    source.write_text(text)
    if subprocess.run(["gcc", "-fsyntax-only", source], capture_output=True).returncode != 0:
        raise Skip("gcc has no _Float16")
    return run.build(name, [source], ["-g", "-O1"])


@scenario
def every_half_is_the_number_that_it_is(run):
    require_root()
    built = build_with_halves(run, "halves", HALVES)
    probe = f"uprobe:{built}:all"
    result = run.trace(probe, "--print", "h->bits, h->f", "--ring-size", "16", command=quiet(built))
    result.check_code(0)
    import struct
    seen = 0
    for event in result.events:
        bits, shown = event["args"]
        wanted = struct.unpack("e", struct.pack("H", bits))[0]
        if wanted != wanted or wanted in (float("inf"), float("-inf")):
            continue
        check_equal(shown, wanted, f"{bits:#x}")
        seen += 1
    check(seen > 9000, f"{seen} of them")
    bits = range(0, 65536, 7)
    values = [struct.unpack("e", struct.pack("H", each))[0] for each in bits]
    for question, count in [("h->f > 1000.0", sum(v > 1000 for v in values)), ("h->f < 0.00001 && h->f > 0.0", sum(0 < v < 0.00001 for v in values)),
                            ("h->f == 0.5", sum(v == 0.5 for v in values)), ("h->f < -60000.0", sum(v < -60000 for v in values))]:
        result = run.trace(probe, "--where", question, "--print", "h->bits", "--ring-size", "16", command=quiet(built))
        check_equal(len(result.events), count, f"{question}\n{result.stderr}")


ODD = """
struct odd { _Decimal64 d; _Complex int c; int last; };
struct odd odd = { 2.5DD, 1, 9 };
__attribute__((noinline)) void f(struct odd *o, _Decimal64 d, int n) { __asm__ volatile("" : : "r"(o), "r"(n) : "memory"); }
int main(void) { f(&odd, odd.d, 5); return 0; }
"""


@scenario
def numbers_of_unknown_formats_say_what_they_are(run):
    require_root()
    source = run.dir / "odd.c"
    source.write_text(ODD)
    if subprocess.run(["gcc", "-fsyntax-only", source], capture_output=True).returncode != 0:
        raise Skip("gcc has no decimal numbers")
    built = run.build("odd", [source], ["-g", "-O1"])
    traced = run.trace(f"uprobe:{built}:f", "--print", "*o, d", command=quiet(built))
    decimal = {"error": "a decimal number"}
    check_equal([event["args"] for event in traced.events],
                [[{"d": decimal, "c": {"error": "a number in an encoding that is not known (0x80)"}, "last": 9}, decimal]], traced.stderr)
    text = subprocess.run(run.tool_argv(f"uprobe:{built}:f", ["--print", "*o"], quiet(built), "text"), capture_output=True, text=True).stdout
    check("*o={d=<a decimal number> c=<a number in an encoding that is not known (0x80)> last=9}" in text, text)
    refused = run.trace(f"uprobe:{built}:f", "--where", "o->d == 1", command=quiet(built))
    check_equal(refused.code, 2, refused.stderr)


# In tables: by the numbers that the program makes from `i`, which this test makes as well.
ASKED = """
struct half { int group; _Float16 f; };
struct BIG big { unsigned short port; int less; double real; unsigned long wide : 40; unsigned rest : 24; };
__attribute__((noinline)) void asked(struct half *h, struct big *b) { __asm__ volatile("" : : "r"(h), "r"(b) : "memory"); }
int main(void) {
  struct half h; struct big b;
  for (int i = 0; i < 40; i++) {
    h.group = i % 3; h.f = (_Float16)(i - 10) / 4;
    b.port = 8080 + i % 4; b.less = -i; b.real = i * 0.5; b.wide = 1ull * i << 30; b.rest = i;
    asked(&h, &b);
  }
}
""".replace("BIG", BIG)
NUMBERS = {"h->group": lambda i: i % 3, "h->f": lambda i: (i - 10) / 4, "b->port": lambda i: 8080 + i % 4, "b->less": lambda i: -i,
           "b->real": lambda i: i / 2, "b->wide": lambda i: i << 30, "b->rest": lambda i: i}


def rows_of(result):
    result.check_code(0)
    return next(record["rows"] for record in reversed(result.records) if record["type"] == "table")


def tables_are_those_of(number, group, traced, where):
    """Each way to ask a table about `number`, of all and by `group`; `traced(options)` is the trace that answers."""
    of = [NUMBERS[number](i) for i in range(40)]
    groups = [NUMBERS[group](i) for i in range(40)]
    check_equal({row["key"][0]: row["count"] for row in rows_of(traced("--by", number))}, {value: of.count(value) for value in of},
                f"--by {number}, {where}")
    sums = {each: sum(value for value, its in zip(of, groups) if its == each) for each in groups}
    check_equal({row["key"][0]: row["sum"] for row in rows_of(traced("--by", group, "--sum", number))}, sums, f"--sum {number}, {where}")
    [row] = rows_of(traced("--hist", number))
    check_equal(sum(bucket["count"] for bucket in row["buckets"]), 40, f"--hist {number}, {where}")
    for bucket in row["buckets"]:
        if "first" in bucket:
            there = [value for value in of if bucket["first"] <= value <= bucket["last"]]
        else:  # of reals, what is nearer to 0 is among them, and what is at the other end is not
            low, high = bucket["low"], bucket["high"]
            there = [value for value in of if (low <= value < high if low >= 0 else low < value <= high) or value == low == high]
        check_equal(bucket["count"], len(there), f"--hist {number}, {where}: {bucket}")


@scenario
def tables_have_the_numbers_that_the_program_has(run):
    require_root()
    built, file = build_with_halves(run, "asked", ASKED), run.dir / "asked.rec"
    probe = f"uprobe:{built}:asked"
    run.trace(probe, "--record", file, "--print", ", ".join(NUMBERS), command=quiet(built)).check_code(0)
    replayed = run.trace([], "--replay", file, "--print", ", ".join(NUMBERS))
    check_equal([event["args"] for event in replayed.events], [[of(i) for of in NUMBERS.values()] for i in range(40)], "replayed")
    for number, group in (("h->f", "h->group"), ("h->f", "b->port"), ("b->less", "b->port"), ("b->real", "b->port"), ("b->wide", "b->port"),
                          ("b->rest", "h->group")):
        tables_are_those_of(number, group, lambda *options: run.trace(probe, *options, command=quiet(built)), "live")
        tables_are_those_of(number, group, lambda *options: run.trace([], "--replay", file, *options), "replayed")


BITS = """
struct bits { _BitInt(7) small; unsigned _BitInt(33) word; _BitInt(90) large; int last; };
__attribute__((noinline)) void f(struct bits *b, _BitInt(7) n) { __asm__ volatile("" : : "r"(b), "r"((int)n) : "memory"); }
int main(void) { struct bits b = {-3, 5000000000, -7, 9}; f(&b, -5); return 0; }
"""


@scenario
def integers_that_do_not_fill_their_bytes_are_none(run):
    """What is in the other bits means nothing."""
    require_root()
    source = run.dir / "bits.c"
    source.write_text(BITS)
    tried = 0
    for compiler in ("clang", "gcc"):
        if subprocess.run([compiler, "-w", "-std=c2x", "-fsyntax-only", source], capture_output=True).returncode != 0:
            continue
        tried += 1
        built = run.build(f"bits-{compiler}", [source], ["-g", "-O1", "-w", "-std=c2x"], compiler)
        traced = run.trace(f"uprobe:{built}:f", "--print", "*b, n, b->small, b->last", command=quiet(built))
        traced.check_code(0)
        [[whole, *values]] = [event["args"] for event in traced.events]
        for value in (whole["small"], whole["word"], whole["large"], *values[:2]):
            check(isinstance(value, dict) and "not fill" in value["error"], f"{compiler}: {value} of {traced.events}")
        check_equal((whole["last"], values[2]), (9, 9), "what is behind them")
        refused = run.trace(f"uprobe:{built}:f", "--where", "b->small == -3", command=quiet(built))
        check(refused.code == 2 and "not fill" in refused.stderr, refused.describe())
    if not tried:
        raise Skip("no compiler here has _BitInt")


#: Callers pass doubles, which the function makes floats: those on the stack are told as floats from the first instruction on.
WITHOUT_PROTOTYPE = """
__attribute__((noinline)) int serve(a, b, c, d, e, f, g, h, i, last) float a, b, c, d, e, f, g, h, i; long last; { __asm__ volatile(""); return last + i; }
int main(void) { return serve(1., 2., 3., 4., 5., 6., 7., 8., 9., 77L) != 86; }
"""


@scenario
def floats_of_a_function_without_a_prototype_are_no_floats_when_it_begins(run):
    require_root()
    path = run.dir / "old.c"
    path.write_text(WITHOUT_PROTOTYPE)
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-Og", "-O2"):
            try:
                program = run.build(f"old-{compiler}{level}", [path], ["-g", "-w", "-std=c99", level], compiler)
            except Skip:
                continue
            traced = run.trace(f"uprobe:{program}:serve", command=quiet(program))
            (event,) = traced.events
            *floats, last = event["args"]
            check(all(isinstance(each, dict) for each in floats), f"{compiler} {level}: {event['args']}")
            check(last == 77 or isinstance(last, dict), f"{compiler} {level}: {event['args']}")


LONG_DOUBLES = """
struct wide { long double v; int k; };
__attribute__((noinline)) int serve(struct wide w, int k, struct wide *p) { KEEP(p); return (int)w.v + k; }
__attribute__((noinline)) int pass(long double v, int k) { KEEP(k); return v > 1 ? k : 0; }
int main(int argc, char **argv) { struct wide w = { 1.5L * argc, 7 }; return serve(w, 3, &w) + pass(w.v, 4) != 8; }
"""


@scenario
def long_doubles_are_numbers_of_the_size_that_the_compiler_was_told(run):
    require_root()
    require_x86_64()
    path = run.dir / "long_doubles.c"
    path.write_text(HEAD + LONG_DOUBLES)
    for compiler in ("gcc", "clang"):
        for option in ("-mlong-double-80", "-mlong-double-128", "-mlong-double-64"):
            for level in ("-O0", "-O2"):
                program = run.build(f"long{option}-{compiler}{level}", [path], ["-g", "-w", option, level], compiler)
                traced = run.trace(f"uprobe:{program}:serve", "--print", "*p, w, k", command=quiet(program))
                (event,) = traced.events
                known = compiler == "gcc" or option != "-mlong-double-128"
                right = [{"v": 1.5 if option == "-mlong-double-64" else "1.5", "k": 7}] * 2 + [3]
                errors = []
                compared(event["args"], right, program.name, errors)
                check(not known or not isinstance(event["args"][0]["v"], dict), f"{errors}")
                traced = run.trace(f"uprobe:{program}:pass", command=quiet(program))
                (event,) = traced.events
                compared(event["args"], ["1.5", 4], program.name, errors)


if __name__ == "__main__":
    main()
