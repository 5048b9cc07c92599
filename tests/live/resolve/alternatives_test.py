#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What an object holds only at times: variants of Rust's enums, std::optional. Of each hit what is there is shown, and
nothing of what is not; questions about what is not there have no answer. The values are known beforehand."""

import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import AT_ONCE, Skip, check, check_equal, main, require_program, require_root, scenario  # noqa: E402
from said import quiet  # noqa: E402

RUST = """
use std::hint::black_box;
pub enum Shape { Circle(u32), Rect { w: i64, h: i16 }, Named(String), Empty }
pub enum Inner { A(u8), B(Option<i32>) }
pub struct Order { id: u32, note: Option<&'static str>, shape: Shape, inner: Inner, boxed: Option<Box<u64>> }
#[inline(never)] fn shape(s: &Shape) { black_box(s); }
#[inline(never)] fn option(o: &Option<i32>, small: &Option<u8>, text: &Option<&str>) { black_box((o, small, text)); }
#[inline(never)] fn result(r: &Result<u16, i8>) { black_box(r); }
#[inline(never)] fn inner(i: &Inner) { black_box(i); }
#[inline(never)] fn order(o: &Order) { black_box(o); }
#[inline(never)] fn list(v: &[Option<u32>]) { black_box(v); }
fn main() {
    shape(&Shape::Circle(7)); shape(&Shape::Rect { w: -5, h: 300 }); shape(&Shape::Named("tea".to_string())); shape(&Shape::Empty);
    option(&Some(-3), &Some(9), &Some("yes")); option(&None, &None, &None);
    result(&Ok(65000)); result(&Err(-7));
    inner(&Inner::A(200)); inner(&Inner::B(Some(44))); inner(&Inner::B(None));
    order(&Order { id: 1, note: Some("cold"), shape: Shape::Circle(3), inner: Inner::B(Some(5)), boxed: Some(Box::new(77)) });
    order(&Order { id: 2, note: None, shape: Shape::Empty, inner: Inner::A(1), boxed: None });
    list(&[Some(1), None, Some(3)]);
}
"""
SOME = lambda value: {"Some": {"__0": value}}  # noqa: E731
NONE = {"None": {}}


def rust_program(run, *flags):
    require_root()
    if not shutil.which("rustc"):
        raise Skip("no rustc")
    source = run.dir / "enums.rs"
    source.write_text(RUST)
    program = run.dir / f"enums{''.join(flags)}".replace("=", "")
    done = subprocess.run(["rustc", "-g", *flags, str(source), "-o", str(program)], capture_output=True, text=True)
    check_equal(done.returncode, 0, done.stderr)
    return program


def args_of(run, program, function, asked, *options):
    traced = run.trace(f"uprobe:{program}:enums::{function}", "--print", asked, "--depth", "6", *options, *AT_ONCE, command=quiet(program))
    traced.check_code(0)
    return [event["args"] for event in traced.events]


@scenario
def variants_of_rust_are_those_that_are_there(run):
    for flags in (["-C", "opt-level=0"], ["-C", "opt-level=2"]):
        program = rust_program(run, *flags)
        check_equal(args_of(run, program, "shape", "*s"),
                    [[{"Circle": {"__0": 7}}], [{"Rect": {"w": -5, "h": 300}}], [{"Named": {"__0": "tea"}}], [{"Empty": {}}]], "shape")
        check_equal(args_of(run, program, "option", "*o, *small, *text"), [[SOME(-3), SOME(9), SOME("yes")], [NONE, NONE, NONE]], "option")
        check_equal(args_of(run, program, "result", "*r"), [[{"Ok": {"__0": 65000}}], [{"Err": {"__0": -7}}]], "result")
        check_equal(args_of(run, program, "inner", "*i"), [[{"A": {"__0": 200}}], [{"B": {"__0": SOME(44)}}], [{"B": {"__0": NONE}}]], "inner")
        orders = args_of(run, program, "order", "o->id, o->note, o->shape, o->inner")
        check_equal(orders, [[1, SOME("cold"), {"Circle": {"__0": 3}}, {"B": {"__0": SOME(5)}}], [2, NONE, {"Empty": {}}, {"A": {"__0": 1}}]],
                    "order")
        check_equal(args_of(run, program, "order", "*o->boxed.Some.__0"), [[77], [{"error": "o->boxed is not Some"}]], "boxed")


@scenario
def questions_about_variants_are_undecided_where_they_are_not_there(run):
    program = rust_program(run, "-C", "opt-level=2")
    for function, question, hits, undecided in [("shape", "s->Circle.__0 == 7", 1, 3), ("shape", "s->Circle.__0 != 7", 0, 3),
                                                ("shape", "s->Rect.h == 300", 1, 3), ("inner", "i->B.__0.Some.__0 == 44", 1, 2),
                                                ("inner", "i->B.__0.Some.__0 >= 0", 1, 2), ("option", "o->Some.__0 < 0", 1, 1)]:
        traced = run.trace(f"uprobe:{program}:enums::{function}", "--where", question, command=quiet(program))
        check_equal(len(traced.events), hits, f"{question}: {traced.stderr}")
        check(f"{undecided} " in traced.stderr, f"{question}: {traced.stderr}")
    traced = run.trace(f"uprobe:{program}:enums::shape", "--by", "s->Circle.__0", command=quiet(program))
    traced.check_code(0)
    check(json.dumps(7) in traced.stdout, traced.stdout)


@scenario
def variants_are_the_same_in_a_recording(run):
    program = rust_program(run, "-C", "opt-level=2")
    file = run.dir / "record"
    asked = "o->id, o->note, o->shape, o->inner"
    live = args_of(run, program, "order", asked)
    subprocess.run([run.tool, f"uprobe:{program}:enums::order", "--print", asked, "--depth", "6", "--record", str(file), "--", "sh", "-c",
                    f"exec {program} > /dev/null"], check=True, capture_output=True)
    replayed = subprocess.run([run.tool, "--replay", str(file), "--format", "json"], capture_output=True, text=True)
    shown = [json.loads(line)["args"] for line in replayed.stdout.splitlines() if '"args"' in line and '"ts"' in line]
    check_equal(shown, live, replayed.stderr)


CPP = """
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#define KEEP(x) __asm__ volatile("" : : "r"(&x) : "memory")
#define NI __attribute__((noinline))
static volatile long read;  // what a function reads its callers wrote
struct Point { int x, y; };
NI void numbers(const std::optional<int> &o) { KEEP(o); }
NI void texts(const std::optional<std::string> &o) { read = o ? o->size() + (*o)[0] : 0; KEEP(o); }
NI void points(const std::vector<std::optional<Point>> &v) { read = v.size() + (v[0] ? v[0]->x : 0); KEEP(v); }
NI void path(const std::filesystem::path &p, std::string *s) { read = p.native().size() + p.native()[0]; KEEP(p); KEEP(s); }
int main() {
  numbers(5); numbers({}); texts("a text that is longer than sixteen"); texts({});
  points({Point{1, 2}, std::nullopt, Point{3, 4}});
  std::string s("pointed at"); path("/tmp/of/a/file", &s);
}
"""


@scenario
def optionals_of_cpp_are_there_or_not(run):
    require_root()
    for compiler in ("g++", "clang++"):
        for level in ("-O0", "-O2"):
            source = run.dir / "optional.cpp"
            source.write_text(CPP)
            program = run.build(f"optional-{compiler}{level}".replace("+", "p"), [source], ["-g", "-std=c++20", level], compiler)

            def args(function, asked):
                traced = run.trace(f"uprobe:{program}:{function}*", "--print", asked, "--depth", "4", *AT_ONCE, command=quiet(program))
                traced.check_code(0)
                return [event["args"][0] for event in traced.events]

            check_equal(args("numbers", "o"), [{"value": 5}, {}], "numbers")
            check_equal(args("texts", "o"), [{"value": "a text that is longer than sixteen"}, {}], "texts")
            check_equal(args("points", "v"), [[{"value": {"x": 1, "y": 2}}, {}, {"value": {"x": 3, "y": 4}}]], "points")
            check_equal(args("path", "p"), ["/tmp/of/a/file"], "path")


LIBRARY = """
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#define KEEP(x) __asm__ volatile("" : : "r"(&x) : "memory")
#define NI __attribute__((noinline))
static volatile long read;  // what a function reads its callers wrote
struct Point { int x, y; };
using Any = std::variant<std::monostate, int, std::string, Point, double>;
using Small = std::variant<char, short>;
struct Throws { Throws() = default; Throws(const Throws &) { throw 1; } Throws &operator=(const Throws &) = default; };
struct Order { long id; std::optional<Point> at; Any what; std::map<int, int> lines; };
NI void any(const Any &v) { read = v.index() + (v.index() == 2 ? std::get<2>(v).size() + std::get<2>(v)[0] : 0); KEEP(v); }
NI void small(Small *v) { KEEP(*v); KEEP(v); }
NI void order(Order *o) { KEEP(*o); KEEP(o); }
NI void nothing(std::variant<int, Throws> *v) { KEEP(*v); KEEP(v); }
NI std::optional<int> maybe(int n) { KEEP(n); return n == 1 ? std::nullopt : std::optional<int>(n + 5); }
NI std::optional<std::string> maybe_text(int n) { KEEP(n); return n == 1 ? std::nullopt : std::optional<std::string>("a text of some length"); }
NI std::variant<int, Point> either(int n) { KEEP(n); if (n == 1) return n + 7; return Point{n, 3}; }
NI void by_value(std::optional<int> o, int n) { KEEP(o); KEEP(n); read = o.value_or(3) + n; }
NI void sizes(std::map<std::string, int> *m, std::set<int> *s, std::multimap<int, int> *mm, std::unordered_map<int, int> *u, std::list<int> *l) {
  KEEP(*m); KEEP(m); KEEP(*s); KEEP(s); KEEP(*mm); KEEP(mm); KEEP(*u); KEEP(u); KEEP(*l); KEEP(l); }
NI void wide(std::u16string *u, std::u32string *v, std::wstring *w, std::u16string_view *x, const char16_t *c, const wchar_t *d) {
  KEEP(*u); KEEP(u); KEEP(*v); KEEP(v); KEEP(*w); KEEP(w); KEEP(*x); KEEP(x); KEEP(c); KEEP(d); }
int main() {
  any({}); any(5); any("a text that is longer than sixteen"); any(Point{1, -2}); any(2.5);
  Small a = 'x', b = short(-300); small(&a); small(&b);
  Order o{7, Point{1, 2}, "tea", {{1, 2}, {3, 4}}}; order(&o); o = {8, {}, 4, {}}; order(&o);
  std::variant<int, Throws> v = 1; nothing(&v); try { Throws t; v.emplace<1>(t); } catch (int) {} nothing(&v);
  for (int n = 0; n < 3; ++n) { KEEP(n); maybe(n); maybe_text(n); either(n); by_value(n == 1 ? std::nullopt : std::optional<int>(n), n); }
  std::map<std::string, int> m{{"a", 1}, {"b", 2}, {"c", 3}}; std::set<int> s{4}; std::multimap<int, int> mm; std::unordered_map<int, int> u{{1, 1}, {2, 2}};
  std::list<int> l{1, 2, 3, 4}; sizes(&m, &s, &mm, &u, &l);
  std::u16string u16 = u"h\u00e9\u20ac"; std::u32string u32 = U"\U0001F600!"; std::wstring w = L"wide"; std::u16string_view x = u16; wide(&u16, &u32, &w, &x, u16.c_str(), w.c_str());
}
"""
# The value without any data of std::monostate, by its name or not.
HELD = [({"index": 0}, None), ({"index": 1}, 5), ({"index": 2}, "a text that is longer than sixteen"), ({"index": 3}, {"x": 1, "y": -2}), ({"index": 4}, 2.5)]


def libraries():
    """What builds with the libraries of C++ that are here, and how."""
    found = [(compiler, level, []) for compiler in ("g++", "clang++") for level in ("-O0", "-O2")]
    probe = subprocess.run(["clang++", "-stdlib=libc++", "-x", "c++", "-", "-o", "/dev/null"], input="#include <map>\nint main() {}", text=True, capture_output=True)
    return found + ([("clang++", level, ["-stdlib=libc++"]) for level in ("-O0", "-O2")] if probe.returncode == 0 else [])


def is_error(shown):
    return isinstance(shown, dict) and "error" in shown


@scenario
def variants_optionals_and_containers_of_cpp(run):
    require_root()
    source = run.dir / "library.cpp"
    source.write_text(LIBRARY)
    for compiler, level, flags in libraries():
        name = f"library-{compiler}{level}{''.join(flags)}".replace("+", "p").replace("=", "")
        program = run.build(name, [source], ["-g", "-std=c++20", level, *flags, *(["-fstandalone-debug"] if compiler == "clang++" else [])], compiler)

        def traced(kind, function, asked):
            result = run.trace(f"{kind}:{program}:{function}*", "--print", asked, "--depth", "4", "--no-inline", *AT_ONCE, command=quiet(program))
            result.check_code(0)
            return [event["args"] for event in result.events]

        # Of what the optimiser may have left out the reason is shown, and never another value.
        for (shown,), (index, value) in zip(traced("uprobe", "any(", "v"), HELD, strict=True):
            if isinstance(shown["index"], dict) and "-O" in level and level != "-O0":
                check("left out" in shown["index"]["error"], f"{name}: {shown}")
                continue
            check_equal({"index": shown["index"]}, index, name)
            of_library = isinstance(value, str) and flags  # libc++'s strings have two forms in one place, and are shown as they are
            check(value is None or of_library or shown["value"] == value, f"{name}: {shown}")
        check_equal(traced("uprobe", "small", "*v"), [[{"index": 0, "value": "x"}], [{"index": 1, "value": -300}]]
                    if traced("uprobe", "small", "*v")[0][0]["value"] == "x" else [[{"index": 0, "value": 120}], [{"index": 1, "value": -300}]], name)
        check_equal(traced("uprobe", "nothing", "*v")[0], [{"index": 0, "value": 1}], name)
        check_equal(traced("uprobe", "nothing", "*v")[1], [{}], f"{name}: valueless")
        check_equal(traced("uprobe", "order", "o->at, o->lines.size, o->at.value.y, o->what.index"),
                    [[{"value": {"x": 1, "y": 2}}, 2, 2, 2], [{}, 0, {"error": "o->at is empty"}, 1]], name)
        check_equal(traced("uprobe", "sizes", "*m, *s, *mm, *u, *l"), [[{"size": 3}, {"size": 1}, {"size": 0}, {"size": 2}, {"size": 4}]], name)
        for function, right in [("maybe(", [{"value": 5}, {}, {"value": 7}]),
                                ("maybe_text", [{"value": "a text of some length"}, {}, {"value": "a text of some length"}]),
                                ("either", [{"index": 1, "value": {"x": 0, "y": 3}}, {"index": 0, "value": 8}, {"index": 1, "value": {"x": 2, "y": 3}}])]:
            if flags and function == "maybe_text":
                continue
            shown = [each[0] for each in traced("uretprobe", function, "retval")]
            check(all(is_error(one) or one == other for one, other in zip(shown, right, strict=True)), f"{name} {function}: {shown}")
            check(level != "-O0" or shown == right, f"{name} {function}: {shown}")
        shown = traced("uprobe", "by_value", "o, n")
        check(all(is_error(o) or o == right for (o, _), right in zip(shown, [{"value": 0}, {}, {"value": 2}], strict=True)), f"{name}: {shown}")
        if flags:
            continue  # libc++'s strings have two forms in one place
        check_equal(traced("uprobe", "wide", "*u, *v, *w, *x, u->size"),
                    [[[0x68, 0xe9, 0x20ac], [0x1f600, 0x21], [0x77, 0x69, 0x64, 0x65], [0x68, 0xe9, 0x20ac], 3]], name)
        for text, size in (("c", 2), ("d", 4)):
            refused = run.trace(f"uprobe:{program}:wide*", "--print", f"str({text})", command=quiet(program))
            check(refused.code == 2 and f"characters of {size} bytes" in refused.stderr, refused.stderr)


ADA = {"shapes.ads": """package Shapes is
   type Kind is range -5 .. 100;
   type Rec (K : Kind := 0) is record
      Id : Integer;
      case K is
         when -5 .. 2 => A : Integer;
         when 3 | 7 .. 9 => B : Long_Integer;
         when others => C : Short_Integer;
      end case;
   end record;
   type Ptr is access all Rec;
   procedure Look (R : Ptr);
   pragma No_Inline (Look);
   pragma Export (C, Look, "look");
end Shapes;
""", "shapes.adb": """package body Shapes is
   Sum : Long_Integer := 0;
   pragma Volatile (Sum);
   procedure Look (R : Ptr) is
   begin
      Sum := Sum + Long_Integer (R.Id);
   end Look;
end Shapes;
""", "variants.adb": """with Shapes; use Shapes;
procedure Variants is
   R1 : aliased Rec := (K => -5, Id => 1, A => 11);
   R2 : aliased Rec := (K => 2, Id => 2, A => 12);
   R3 : aliased Rec := (K => 3, Id => 3, B => 13);
   R4 : aliased Rec := (K => 8, Id => 4, B => -14);
   R5 : aliased Rec := (K => 50, Id => 5, C => 15);
begin
   Look (R1'Unchecked_Access); Look (R2'Unchecked_Access); Look (R3'Unchecked_Access);
   Look (R4'Unchecked_Access); Look (R5'Unchecked_Access);
end Variants;
"""}


@scenario
def variants_of_ada_are_told_by_lists_and_ranges(run):
    """DW_AT_discr_list, with numbers below 0."""
    require_root()
    require_program("gnatmake")
    for name, text in ADA.items():
        (run.dir / name).write_text(text)
    built = subprocess.run(["gnatmake", "-q", "-g", "-O1", "variants.adb"], cwd=run.dir, capture_output=True, text=True)
    check_equal(built.returncode, 0, built.stderr)
    program = run.dir / "variants"
    traced = run.trace(f"uprobe:{program}:look", "--print", "*r", "--depth", "3", command=[program])
    check_equal([event["args"] for event in traced.events],
                [[{"k": -5, "id": 1, "a": 11}], [{"k": 2, "id": 2, "a": 12}], [{"k": 3, "id": 3, "b": 13}], [{"k": 8, "id": 4, "b": -14}],
                 [{"k": 50, "id": 5, "c": 15}]], traced.stderr)
    asked = run.trace(f"uprobe:{program}:look", "--where", "r->a > 0", command=[program])
    check_equal(len(asked.events), 2, asked.stderr)


@scenario
def a_pointer_to_a_string_is_no_text_itself(run):
    require_root()
    source = run.dir / "pointer.cpp"
    source.write_text(CPP)
    program = run.build("pointer", [source], ["-g", "-std=c++20", "-O1"], "g++")
    probe = f"uprobe:{program}:path*"
    for words in (["--print", "str(s)"], ["--where", 'str(s) == "pointed at"'], ["--by", "str(s)"], ["--print", "str(arg1)"]):
        refused = run.trace(probe, *words, command=quiet(program))
        check_equal(refused.code, 2, f"{words}: {refused.stderr}")
        check("write str(*" in refused.stderr, refused.stderr)
    traced = run.trace(probe, "--print", "str(*s)", "--where", 'str(*s) == "pointed at"', command=quiet(program))
    check_equal([event["args"] for event in traced.events], [["pointed at"]], traced.stderr)


if __name__ == "__main__":
    main()
