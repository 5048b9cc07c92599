#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What functions of Rust return: scalars, pairs of them, aggregates, enums with a discriminant of their own or in a niche, at each level of
optimisation and by each rustc that is here. What each call returns is known beforehand; what cannot be read is an error."""

import collections
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import AT_ONCE, Skip, check, check_equal, main, require_root, scenario, with_long  # noqa: E402
from said import quiet  # noqa: E402

# A value is kept out of the optimiser's sight; `std::hint::black_box` is there since 1.66 only.
HEAD = """#![allow(warnings)]
#[inline(always)] fn seen<T>(x: T) -> T { unsafe { let r = std::ptr::read_volatile(&x); std::mem::forget(x); r } }
"""

TABLE = HEAD + """
#[derive(Clone, Copy)] pub struct Pair { a: u32, b: u32 }
pub struct Three { a: u8, b: u16, c: u32 }
#[repr(C)] pub struct OfC { a: u8, b: u32 }
#[repr(align(8))] pub struct Aligned { a: u32, b: u32 }
#[repr(packed)] pub struct Packed { a: u8, b: u32 }
pub enum Tiny { A, B(u8), C { x: u16 } }
pub enum Sign { N(i32), P(u32) }
pub enum Deep { L(Option<i64>), R(Result<u8, i16>) }
pub enum Big { One([u64; 3]), Two(String), Zero }
#[repr(u8)] pub enum Fixed { A(u32), B(u32) }
macro_rules! functions { ($($name:ident($n:ident) -> $t:ty $b:block)*) => {
    $( #[inline(never)] fn $name($n: i64) -> $t { seen(()); $b } )* fn all(i: i64) { $( seen($name(seen(i))); )* } } }
functions! {
  int(n) -> i64 { n * 3 }
  small(n) -> i8 { n as i8 - 1 }
  wide(n) -> u128 { (1u128 << 100) + n as u128 }
  opt_u32(n) -> Option<u32> { if n == 1 { None } else { Some(n as u32 + 7) } }
  opt_u64(n) -> Option<u64> { if n == 1 { None } else { Some(n as u64 + 7) } }
  opt_u8(n) -> Option<u8> { if n == 1 { None } else { Some(n as u8 + 7) } }
  opt_bool(n) -> Option<bool> { if n == 1 { None } else { Some(n == 2) } }
  opt_str(n) -> Option<&'static str> { if n == 1 { None } else { Some("hello") } }
  res(n) -> Result<u16, i8> { if n == 1 { Err(-3) } else { Ok(n as u16 + 500) } }
  res32(n) -> Result<u32, i32> { if n == 1 { Err(-3) } else { Ok(n as u32 + 500) } }
  same(n) -> Result<i32, i32> { if n == 1 { Err(-4) } else { Ok(n as i32 + 600) } }
  unit(n) -> Result<(), i32> { if n == 1 { Err(-3) } else { Ok(()) } }
  res_str(n) -> Result<u32, String> { if n == 1 { Err("bad".to_string()) } else { Ok(n as u32 + 500) } }
  pair(n) -> Pair { Pair { a: n as u32, b: n as u32 + 1 } }
  three(n) -> Three { Three { a: n as u8, b: n as u16 + 300, c: 70000 } }
  of_c(n) -> OfC { OfC { a: n as u8, b: 70000 } }
  aligned(n) -> Aligned { Aligned { a: n as u32, b: 4 } }
  packed(n) -> Packed { Packed { a: n as u8, b: 70000 } }
  opt_pair(n) -> Option<Pair> { if n == 1 { None } else { Some(Pair { a: n as u32, b: 5 }) } }
  tup(n) -> (u8, u64) { (n as u8, n as u64 + 1) }
  tiny(n) -> Tiny { match n { 0 => Tiny::A, 1 => Tiny::B(9), _ => Tiny::C { x: 700 } } }
  sign(n) -> Sign { if n == 0 { Sign::N(-5) } else { Sign::P(6) } }
  deep(n) -> Deep { match n { 0 => Deep::L(None), 1 => Deep::L(Some(-9)), 2 => Deep::R(Ok(200)), _ => Deep::R(Err(-2)) } }
  big(n) -> Big { match n { 0 => Big::Zero, 1 => Big::One([1, 2, n as u64]), _ => Big::Two(format!("n{}", n)) } }
  fixed(n) -> Fixed { if n == 1 { Fixed::A(3) } else { Fixed::B(70000) } }
  nested(n) -> Option<Option<bool>> { match n { 0 => None, 1 => Some(None), _ => Some(Some(n == 2)) } }
  array(n) -> [u16; 3] { [n as u16, 2, 3] }
  floats(n) -> Option<f64> { if n == 1 { None } else { Some(n as f64) } }
  text(n) -> String { format!("t{}", n) }
  constant(_n) -> Result<u32, u32> { Ok(4) }
}
#[inline(never)] extern "C" fn by_c(n: i64) -> OfC { seen(()); OfC { a: n as u8, b: 70000 } }
#[inline(never)] fn half(n: i64) -> (u32, u32) { seen(()); (n as u32 + 1, n as u32 + 2) }
#[inline(never)] fn dropped(n: i64) -> u64 { seen(n); n as u64 + 11 }
fn main() { for i in 0..4 { all(i); seen(by_c(seen(i))); seen(half(seen(i)).1); dropped(seen(i)); } }
"""


def some(value):
    return {"Some": {"__0": value}}


NONE = {"None": {}}


def ok_or(error, ok):
    return lambda n: {"Err": {"__0": error}} if n == 1 else {"Ok": {"__0": ok(n)} if ok(n) is not None else {"__0": {}}}


EXPECTED = {
    "int": lambda n: n * 3, "small": lambda n: n - 1, "wide": lambda n: str((1 << 100) + n),
    "opt_u32": lambda n: NONE if n == 1 else some(n + 7), "opt_u64": lambda n: NONE if n == 1 else some(n + 7),
    "opt_u8": lambda n: NONE if n == 1 else some(n + 7), "opt_bool": lambda n: NONE if n == 1 else some(int(n == 2)),
    "opt_str": lambda n: NONE if n == 1 else some("hello"),
    "res": ok_or(-3, lambda n: n + 500), "res32": ok_or(-3, lambda n: n + 500), "same": ok_or(-4, lambda n: n + 600),
    "unit": lambda n: {"Err": {"__0": -3}} if n == 1 else {"Ok": None}, "res_str": ok_or("bad", lambda n: n + 500),
    "pair": lambda n: {"a": n, "b": n + 1}, "three": lambda n: {"a": n, "b": n + 300, "c": 70000},
    "of_c": lambda n: {"a": n, "b": 70000}, "by_c": lambda n: {"a": n, "b": 70000}, "aligned": lambda n: {"a": n, "b": 4},
    "packed": lambda n: {"a": n, "b": 70000}, "opt_pair": lambda n: NONE if n == 1 else some({"a": n, "b": 5}),
    "tup": lambda n: {"__0": n, "__1": n + 1}, "tiny": lambda n: [{"A": {}}, {"B": {"__0": 9}}, {"C": {"x": 700}}][min(n, 2)],
    "sign": lambda n: {"P": {"__0": 6}} if n else {"N": {"__0": -5}},
    "deep": lambda n: [{"L": {"__0": NONE}}, {"L": {"__0": some(-9)}}, {"R": {"__0": {"Ok": {"__0": 200}}}},
                       {"R": {"__0": {"Err": {"__0": -2}}}}][n],
    "big": lambda n: [{"Zero": {}}, {"One": {"__0": [1, 2, 1]}}][n] if n < 2 else {"Two": {"__0": f"n{n}"}},
    "fixed": lambda n: {"A": {"__0": 3}} if n == 1 else {"B": {"__0": 70000}},
    "nested": lambda n: [NONE, some(NONE)][n] if n < 2 else some(some(int(n == 2))),
    "array": lambda n: [n, 2, 3], "floats": lambda n: NONE if n == 1 else some(float(n)), "text": lambda n: f"t{n}",
    "constant": lambda n: {"Ok": {"__0": 4}}, "half": lambda n: {"__0": n + 1, "__1": n + 2}, "dropped": lambda n: n + 11,
}


def compilers():
    require_root()
    found = {os.path.realpath(path): path for path in ("/usr/bin/rustc", shutil.which("rustc")) if path and os.path.exists(path)}
    if not found:
        raise Skip("no rustc")
    return list(found.values())


def build(run, compiler, name, source, level):
    file = run.dir / f"{name}.rs"
    file.write_text(source)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.split()[1]
    program = run.dir / f"{name}-{version}-{level}"
    argv = [compiler, "-g", "-C", f"opt-level={level}", "-o", program, file]
    built = subprocess.run(argv, capture_output=True, text=True)
    check_equal(built.returncode, 0, built.stderr)
    return program


def has_error(shown):
    if isinstance(shown, dict):
        return "error" in shown or any(has_error(each) for each in shown.values())
    return isinstance(shown, list) and any(has_error(each) for each in shown)


def is_unknown(shown):
    """Nothing but errors: of an enum whose discriminant is not known, for each variant."""
    if isinstance(shown, dict):
        return "error" in shown or (shown != {} and all(is_unknown(each) for each in shown.values()))
    return isinstance(shown, list) and shown != [] and all(map(is_unknown, shown))


def agrees(shown, right):
    """Whether what is shown is right, as far as it is shown: an error may be anywhere in it. None: a value without any bytes, however it is
    shown."""
    if right is None or is_unknown(shown):
        return True
    if isinstance(right, dict):
        return isinstance(shown, dict) and set(shown) == set(right) and all(agrees(shown[each], right[each]) for each in right)
    if isinstance(right, list):
        return isinstance(shown, list) and len(shown) == len(right) and all(map(agrees, shown, right))
    return shown == right


def compare(run, program, crate, expected, calls):
    """Each result against what is known; how many were read, and the reasons of the others."""
    prefix = f":{crate}::"
    traced = run.trace([f"uretprobe:{program}:{crate}::{name}" for name in expected], "--print", "retval", "--depth", "8", "--no-inline",
                       *AT_ONCE, command=quiet(program))
    traced.check_code(0)
    read, errors = 0, collections.Counter()
    # The optimiser leaves some functions out, and makes one of several that are alike.
    left_out = traced.stderr.count("nothing matches")
    for name, value in expected.items():
        events = [event for event in traced.events if event["probe"].split(prefix)[-1] == name]
        if not events or (len(events) % calls == 0 and 1 < len(events) // calls <= 1 + left_out):
            continue
        check_equal(len(events), calls, f"{program.name} {name}: {traced.stderr}")
        for n, event in enumerate(events):
            shown = event["args"][0]
            check(agrees(shown, value(n)), f"{program.name} {name}({n}): {shown}, not {value(n)}")
            if has_error(shown):
                errors[f"{name}: {shown}"] += 1
            else:
                read += 1
    return read, errors


@scenario
def results_are_those_that_functions_return(run):
    for compiler in compilers():
        for level in ("0", "1", "3"):
            program = build(run, compiler, "results", TABLE, level)
            read, errors = compare(run, program, "results", EXPECTED, 4)
            print(f"{program.name}: {read} results right, {sum(errors.values())} errors", *sorted(errors), sep="\n    ")
            check(read >= (70 if level == "0" else 45), f"only {read} results could be read")


class Types:
    """Types by chance, with values of them: as Rust writes both, and as they are shown."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.declared = []

    def scalar(self):
        name = self.random.choice(["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bool", "usize", "char", "&'static str", "f32", "()"])
        if name == "bool":
            return name, lambda: (lambda b: (("true" if b else "false"), int(b)))(self.random.random() < 0.5)
        if name == "char":
            return name, lambda: (lambda c: (f"'{c}'", ord(c)))(self.random.choice("aZ09"))
        if name == "&'static str":
            return name, lambda: (lambda t: (f'"{t}"', t))(self.random.choice(["", "a", "longer than that"]))
        if name == "f32":
            return name, lambda: (lambda f: (f"{f:.2f}f32", f))(self.random.randrange(-400, 400) / 4)
        if name == "()":
            return name, lambda: ("()", None)
        bits = 64 if name == "usize" else int(name[1:])
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "i" else (0, (1 << bits) - 1)
        return name, lambda: (lambda n: (f"{n}{name}", n))(self.random.choice([low, high, self.random.randint(low, high), self.random.randint(0, 9)]))

    def struct(self, depth):
        fields = [self.type(depth - 1) for _ in range(self.random.randrange(1, 4))]
        name = f"S{len(self.declared)}"
        attribute = self.random.choice(["", "", "", "#[repr(C)] "])
        self.declared.append(f"{attribute}pub struct {name} {{ {', '.join(f'm{i}: {t}' for i, (t, _) in enumerate(fields))} }}")

        def value():
            values = [make() for _, make in fields]
            return (f"{name} {{ {', '.join(f'm{i}: {text}' for i, (text, _) in enumerate(values))} }}",
                    {f"m{i}": shown for i, (_, shown) in enumerate(values)})
        return name, value

    def enum(self, depth):
        variants = [[self.type(depth - 1) for _ in range(self.random.choice([0, 1, 1, 1, 2]))] for _ in range(self.random.randrange(2, 5))]
        variants[0] = variants[0] or [self.scalar()]  # one without data at all is shown by its name
        name = f"E{len(self.declared)}"
        self.declared.append(f"pub enum {name} {{ {', '.join(f'V{i}' + (f'({chr(44).join(t for t, _ in each)})' if each else '') for i, each in enumerate(variants))} }}")

        def value():
            n = self.random.randrange(len(variants))
            values = [make() for _, make in variants[n]]
            text = f"{name}::V{n}" + (f"({', '.join(text for text, _ in values)})" if values else "")
            return text, {f"V{n}": {f"__{i}": shown for i, (_, shown) in enumerate(values)}}
        return name, value

    def option(self, depth):
        inner, make = self.type(depth - 1)

        def value():
            if self.random.random() < 0.4:
                return "None", NONE
            text, shown = make()
            return f"Some({text})", some(shown)
        return f"Option<{inner}>", value

    def result(self, depth):
        (good, make_good), (bad, make_bad) = self.type(depth - 1), self.type(depth - 1)

        def value():
            name, make = self.random.choice([("Ok", make_good), ("Err", make_bad)])
            text, shown = make()
            return f"{name}({text})", {name: {"__0": shown}}
        return f"Result<{good}, {bad}>", value

    def type(self, depth):
        if depth == 0 or self.random.random() < 0.25:
            return self.scalar()
        return self.random.choice([self.struct, self.enum, self.option, self.option, self.result])(depth)


@scenario
def results_of_types_by_chance_are_right_or_errors(run):
    total = collections.Counter()
    for seed in range(with_long(40, 1)):
        types = Types(seed)
        functions, expected = [], {}
        for i in range(40):
            name, make = types.type(3)
            values = [make() for _ in range(4)]
            arms = " ".join(f"{'_' if n == 3 else n} => {text}," for n, (text, _) in enumerate(values))
            functions.append(f"  f{i}(n) -> {name} {{ match n {{ {arms} }} }}")
            expected[f"f{i}"] = lambda n, values=values: values[n][1]
        macro = TABLE[TABLE.index("macro_rules!"):TABLE.index("functions! {")]
        source = HEAD + "\n".join(types.declared) + "\n" + macro + "functions! {\n" + "\n".join(functions) + "\n}\nfn main() { for i in 0..4 { all(i); } }\n"
        for compiler in compilers():
            for level in ("0", "3"):
                program = build(run, compiler, f"chance{seed}", source, level)
                read, errors = compare(run, program, f"chance{seed}", expected, 4)
                key = "-".join(program.name.split("-")[1:])
                total[f"{key} read"] += read
                total[f"{key} errors"] += sum(errors.values())
    print(dict(total))


if __name__ == "__main__":
    main()
