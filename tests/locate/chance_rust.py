# SPDX-License-Identifier: BSD-2-Clause
"""Programs by chance, in Rust, as those of chance.py: functions fnN are called with values by chance, which the program
works out a second time and logs before each call.

A value is an expression in `i`, the number of the call. Which of an enum's variants a value is counts as a value of its own.
"""

from chance_common import FUNCTIONS, Program as Common, Type

INTEGERS = ("i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize")
#: How the program logs what it has, and keeps the compiler from knowing it.
HEAD = """
#![allow(warnings)]
use std::fmt::Write as _;
#[inline(always)] fn black_box<T>(v: T) -> T { unsafe { std::arch::asm!("/* {} */", in(reg) &v); } v }
use std::io::Write as _;
trait Logged { fn note(&self, to: &mut String); }
macro_rules! as_it_is { ($($t:ty),*) => { $(impl Logged for $t { fn note(&self, to: &mut String) { write!(to, "{}", self).unwrap(); } })* } }
as_it_is!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
impl Logged for bool { fn note(&self, to: &mut String) { (*self as u8).note(to) } }
impl Logged for char { fn note(&self, to: &mut String) { (*self as u32).note(to) } }
impl Logged for str { fn note(&self, to: &mut String) { write!(to, "\\"{}\\"", self).unwrap(); } }
impl Logged for &str { fn note(&self, to: &mut String) { (**self).note(to) } }
impl Logged for String { fn note(&self, to: &mut String) { self.as_str().note(to) } }
impl<T: Logged> Logged for [T] { fn note(&self, to: &mut String) {
  to.push('['); for (n, each) in self.iter().enumerate() { if n > 0 { to.push(','); } each.note(to); } to.push(']'); } }
impl<T: Logged> Logged for &[T] { fn note(&self, to: &mut String) { (**self).note(to) } }
impl<T: Logged> Logged for Vec<T> { fn note(&self, to: &mut String) { self.as_slice().note(to) } }
impl<T: Logged, const N: usize> Logged for [T; N] { fn note(&self, to: &mut String) { self.as_slice().note(to) } }
impl<A: Logged, B: Logged> Logged for (A, B) { fn note(&self, to: &mut String) {
  to.push_str("{\\"__0\\":"); self.0.note(to); to.push_str(",\\"__1\\":"); self.1.note(to); to.push('}'); } }
impl Logged for &'static Item { fn note(&self, to: &mut String) { (*self as *const Item as usize).note(to) } }
impl Logged for *const u32 { fn note(&self, to: &mut String) { (*self as usize).note(to) } }
fn variant(to: &mut String, name: &str, values: &[(&str, &dyn Logged)]) {
  write!(to, "{{\\"variant\\":\\"{}\\",\\"has\\":{{", name).unwrap();
  for (n, (name, value)) in values.iter().enumerate() { if n > 0 { to.push(','); } write!(to, "\\"{}\\":", name).unwrap(); value.note(to); }
  to.push_str("}}"); }
impl<T: Logged> Logged for Option<T> { fn note(&self, to: &mut String) {
  match self { None => variant(to, "None", &[]), Some(v) => variant(to, "Some", &[("__0", v)]) } } }
impl<T: Logged, E: Logged> Logged for Result<T, E> { fn note(&self, to: &mut String) {
  match self { Ok(v) => variant(to, "Ok", &[("__0", v)]), Err(v) => variant(to, "Err", &[("__0", v)]) } } }
pub struct Item { number: u32 }
static ITEMS: [Item; 4] = [Item { number: 1 }, Item { number: 2 }, Item { number: 3 }, Item { number: 4 }];
static NUMBERS: [u32; 8] = [1, 20, 300, 4000, 50000, 600000, 7000000, 80000000];
static TEXTS: [&str; 4] = ["alpha", "b", "gamma ray", "delta!"];
static mut SINK: u64 = 0;
static mut NOW: u64 = 0;
#[inline(never)] fn sink(v: u64) { unsafe { let at = std::ptr::addr_of_mut!(SINK); at.write_volatile(at.read_volatile().wrapping_add(v)); } }
#[inline(never)] fn escape<T>(v: &T) { black_box(v as *const T); sink(3); }
#[inline(never)] fn next(i: u64, k: u64) -> u64 { let h = (i + 3).wrapping_mul(40503).wrapping_add(k.wrapping_mul(2654435761)); black_box(h ^ h >> 5 ^ h << 11) }
fn mix(i: u64, k: u64) -> u64 { let h = (i + 1).wrapping_mul(2654435761).wrapping_add(k.wrapping_mul(40503)); h ^ h >> 7 ^ h << 13 }
#[inline(never)] fn dirty() { let mut junk = [0u64; 320]; for n in 0..320 { junk[n] = 0x6a6b6c6d5a5b5c5d + n as u64 * 65793; } sink(black_box(&junk)[7]); }
"""


def cast(text):
    return [f"sink({text} as u64);"]


class Program(Common):
    odd = "black_box(now) & 1 == 1"

    def __init__(self, seed):
        super().__init__(seed)
        for number in range(10):
            self.types.append(self.struct(number))
        for number in range(4):
            self.types.append(self.enum(number))
        for number in range(FUNCTIONS):
            self.function(number)

    def source(self):
        calls = "\n".join(f"    {call}" for call in self.calls)
        return (f"{HEAD}\n" + "\n".join(self.items) + "\nfn main() {\n  let words: Vec<String> = std::env::args().collect();\n"
                "  let rounds: u64 = words[2].parse().unwrap();\n  let mut to = String::new();\n"
                f"  for i in 0..rounds {{ let i = black_box(i);\n{calls}\n  }}\n"
                "  std::fs::File::create(&words[1]).unwrap().write_all(to.as_bytes()).unwrap();\n}\n")

    # --- types ---

    def integer(self):
        name = self.rng.choice(INTEGERS)

        def make(rng):
            k = rng.randrange(1000)
            form = rng.choice(("mix(i, {k})", "next(i, {k})", "next(i, {k})", "i * {k}", "{k}u64", "i"))
            text = form.format(k=k)
            return f"(({text}) as {name}) << 64 | next(i, {k + 1}) as {name}" if "128" in name and rng.random() < 0.7 else f"({text}) as {name}"
        return Type(name, make, cast)

    def scalar(self):
        roll = self.rng.random()
        if roll < 0.6:
            return self.integer()
        if roll < 0.7:
            return Type("bool", lambda rng: f"next(i, {rng.randrange(99)}) & 1 == 1", cast)
        if roll < 0.76:
            return Type("char", lambda rng: f"(b'a' + (next(i, {rng.randrange(99)}) & 15) as u8) as char", lambda text: [f"sink({text} as u32 as u64);"])
        if roll < 0.86:
            name = self.rng.choice(("f32", "f64"))
            return Type(name, lambda rng: f"((next(i, {rng.randrange(99)}) & 255) as {name} - 99.0) / 8.0", cast)
        if roll < 0.93:
            return Type("&'static Item", lambda rng: f"&ITEMS[(next(i, {rng.randrange(99)}) & 3) as usize]", lambda text: [f"sink({text}.number as u64);"])
        return Type("*const u32", lambda rng: f"&NUMBERS[(i & 7) as usize] as *const u32", lambda text: [f"sink({text} as usize as u64);"])

    def wide(self):
        """What is two words, or more."""
        roll = self.rng.random()
        if roll < 0.4:
            return Type("&'static str", lambda rng: f"TEXTS[(next(i, {rng.randrange(99)}) & 3) as usize]", lambda text: [f"sink({text}.len() as u64);"])
        if roll < 0.6:
            return Type("&'static [u32]", lambda rng: f"&NUMBERS[..(next(i, {rng.randrange(99)}) & 7) as usize]",
                        lambda text: [f"for each in {text}.iter() {{ sink(*each as u64); }}"])
        if roll < 0.8:
            inner = self.scalar()
            return Type(f"Option<{inner.name}>", lambda rng: f"if next(i, {rng.randrange(99)}) & 1 == 1 {{ Some({inner.make(rng)}) }} else {{ None }}",
                        lambda text: [f"if let Some(v) = {text} {{ {' '.join(inner.use('v'))} }}"])
        ok, bad = self.scalar(), self.scalar()
        return Type(f"Result<{ok.name}, {bad.name}>",
                    lambda rng: f"if next(i, {rng.randrange(99)}) & 1 == 1 {{ Ok({ok.make(rng)}) }} else {{ Err({bad.make(rng)}) }}",
                    lambda text: [f"match {text} {{ Ok(v) => {{ {' '.join(ok.use('v'))} }} Err(v) => {{ {' '.join(bad.use('v'))} }} }}"])

    def member(self):
        roll = self.rng.random()
        if roll < 0.12:
            inner, count = self.integer(), self.rng.choice((2, 3, 4, 8))
            return Type(f"[{inner.name}; {count}]", lambda rng: "[" + ", ".join(inner.make(rng) for _ in range(count)) + "]",
                        lambda text: [use for n in range(count) for use in inner.use(f"{text}[{n}]")])
        if roll < 0.2:
            first, second = self.scalar(), self.scalar()
            return Type(f"({first.name}, {second.name})", lambda rng: f"({first.make(rng)}, {second.make(rng)})",
                        lambda text: first.use(f"{text}.0") + second.use(f"{text}.1"))
        if roll < 0.28 and self.types:
            return self.rng.choice(self.types)
        return self.wide() if roll < 0.4 else self.scalar()

    def struct(self, number):
        members = [self.member() for _ in range(self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5)))]
        name = f"S{number}"
        form = self.rng.choice(("", "", "", "#[repr(C)] "))
        fields = ", ".join(f"m{n}: {each.name}" for n, each in enumerate(members))
        logged = ' to.push(\',\'); '.join(f'to.push_str("\\"m{n}\\":"); self.m{n}.note(to);' for n in range(len(members)))
        self.items.append(f"{form}#[derive(Clone, Copy)] pub struct {name} {{ {fields} }}\n"
                          f"impl Logged for {name} {{ fn note(&self, to: &mut String) {{ to.push('{{'); {logged} to.push('}}'); }} }}")
        return Type(name, lambda rng: f"{name} {{ " + ", ".join(f"m{n}: {each.make(rng)}" for n, each in enumerate(members)) + " }",
                    lambda text: [use for n, each in enumerate(members) for use in each.use(f"{text}.m{n}")])

    def enum(self, number):
        name = f"E{number}"
        if number == 0:
            self.items.append(f"#[derive(Clone, Copy)] pub enum {name} {{ A, B = 200, C = 7 }}\n"
                              f"impl Logged for {name} {{ fn note(&self, to: &mut String) {{ (*self as u32).note(to) }} }}")
            return Type(name, lambda rng: f"match next(i, {rng.randrange(99)}) % 3 {{ 0 => {name}::A, 1 => {name}::B, _ => {name}::C }}", cast)
        first, second, third = self.scalar(), self.scalar(), self.scalar()
        self.items.append(
            f"#[derive(Clone, Copy)] pub enum {name} {{ A, B({first.name}), C {{ x: {second.name}, y: {third.name} }} }}\n"
            f"impl Logged for {name} {{ fn note(&self, to: &mut String) {{ match self {{ {name}::A => variant(to, \"A\", &[]), "
            f"{name}::B(v) => variant(to, \"B\", &[(\"__0\", v)]), {name}::C {{ x, y }} => variant(to, \"C\", &[(\"x\", x), (\"y\", y)]) }} }} }}")
        return Type(name, lambda rng: f"match next(i, {rng.randrange(99)}) % 3 {{ 0 => {name}::A, 1 => {name}::B({first.make(rng)}), "
                                      f"_ => {name}::C {{ x: {second.make(rng)}, y: {third.make(rng)} }} }}",
                    lambda text: [f"match {text} {{ {name}::A => sink(1), {name}::B(v) => {{ {' '.join(first.use('v'))} }} "
                                  f"{name}::C {{ x, y }} => {{ {' '.join(second.use('x') + third.use('y'))} }} }}"])

    def parameter(self):
        roll = self.rng.random()
        if roll < 0.5:
            return self.scalar()
        if roll < 0.68:
            return self.wide()
        if roll < 0.74:
            return Type("String", lambda rng: f"TEXTS[(next(i, {rng.randrange(99)}) & 3) as usize].to_string()",
                        lambda text: [f"sink({text}.len() as u64);"])
        if roll < 0.78:
            return Type("Vec<u32>", lambda rng: f"NUMBERS[..(next(i, {rng.randrange(99)}) & 7) as usize].to_vec()",
                        lambda text: [f"sink({text}.len() as u64);"])
        return self.rng.choice(self.types) if roll < 0.94 else self.member()

    # --- functions ---

    def escape(self, name):
        return f"escape(&{name});"

    def function(self, number):
        form = self.rng.choice(("plain", "plain", "plain", "inline", "any", "C", "method", "generic", "pointer", "dyn"))
        kinds, result = self.signature()
        if form == "generic" and not kinds:
            form = "plain"
        lines = self.body(kinds)
        returned = result.make(self.rng) if result else ""
        lines = ["let now = unsafe { NOW };", *lines] + ([f"let i = now; {returned}"] if result else [])
        parameters = [f"p{n}: {kind.name}" for n, kind in enumerate(kinds)]
        if form == "generic":
            parameters[0] = "p0: T"
        own = [] if form not in ("method", "dyn") else ["&self"]
        head = {"inline": "#[inline(always)] ", "any": "", "C": '#[inline(never)] extern "C" '}.get(form, "#[inline(never)] ")
        shown = f" -> {result.name}" if result else ""
        name = f"fn{number}"
        # (What is generic is known by nothing but its trait.)
        # (Of functions with the same code one is for all.)
        lines.insert(1, f'unsafe {{ std::arch::asm!("/* {number} */"); }}')
        body = " ".join(lines) if form != "generic" else \
            " ".join([*lines[:2], "escape(&p0);"] + [use for n, kind in enumerate(kinds) if n for use in kind.use(f"p{n}")] +
                     ([f"let i = now; {returned}"] if result else []))
        written = f"{head}fn {name}{'<T: Logged>' if form == 'generic' else ''}({', '.join(own + parameters)}){shown} {{ {body} }}"
        where, before = name, ""
        if form == "method":
            self.items.append(f"struct Host{number} {{ id: u32 }} static HOST{number}: Host{number} = Host{number} {{ id: 1 }}; impl Host{number} {{ {written} }}")
            where = f"HOST{number}.{name}"
        elif form == "dyn":
            of_trait = f"fn {name}({', '.join(own + parameters)}){shown};"
            self.items.append(f"struct Host{number} {{ id: u32 }} static HOST{number}: Host{number} = Host{number} {{ id: 1 }}; trait Trait{number} {{ {of_trait} }} "
                              f"impl Trait{number} for Host{number} {{ {written} }}")
            before = f"let host: &dyn Trait{number} = black_box(&HOST{number});"
            where = f"host.{name}"
        else:
            self.items.append(written)
        if form == "pointer":
            before = f"let at: fn({', '.join(kind.name for kind in kinds)}){shown} = black_box({name});"
            where = "at"
        for site in range(self.rng.choice((1, 1, 2, 3))):
            self.call(number, where, before, site, kinds, bool(own), result, returned)

    def call(self, number, where, before, site, kinds, own, result, returned):
        texts = [kind.make(self.rng) for kind in kinds]
        logged = [f"(&HOST{number} as *const Host{number} as usize).note(to);"] if own else []
        logged += [f"{{ let v: {kind.name} = {text}; v.note(to); }}" for kind, text in zip(kinds, texts)]
        kept = f'to.push_str(",\\"return\\":"); {{ let v: {result.name} = {returned}; v.note(to); }}' if result else ""
        separated = " to.push(','); ".join(logged)
        self.items.append(f"#[inline(never)] fn log{number}_{site}(i: u64, to: &mut String) {{ "
                          f'to.push_str("{{\\"function\\":\\"fn{number}\\",\\"args\\":["); {separated} to.push(\']\'); {kept} to.push_str("}}\\n"); }}')
        call = f"{where}({', '.join(texts)});"
        if result and self.rng.random() < 0.5:
            call = f"let r = {call} {' '.join(result.use('r'))}"
        after = self.rng.choice(("", "sink(4);"))
        self.items.append(f"#[inline(never)] fn call{number}_{site}(i: u64) {{ {before} {call} {after} }}")
        self.calls.append(f"unsafe {{ NOW = i; }} log{number}_{site}(i, &mut to); dirty(); call{number}_{site}(i);")
