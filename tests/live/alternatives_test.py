#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What an object holds only at times: variants of Rust's enums, std::optional. Of each hit what is there is shown, and
nothing of what is not; questions about what is not there have no answer. The values are known beforehand."""

import json
import shutil
import subprocess

from puppet import HERE  # noqa: F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario
from said import quiet

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
    traced = run.trace(f"uprobe:{program}:enums::{function}", "--print", asked, "--depth", "6", *options, command=quiet(program))
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
                traced = run.trace(f"uprobe:{program}:{function}*", "--print", asked, "--depth", "4", command=quiet(program))
                traced.check_code(0)
                return [event["args"][0] for event in traced.events]

            check_equal(args("numbers", "o"), [{"value": 5}, {}], "numbers")
            check_equal(args("texts", "o"), [{"value": "a text that is longer than sixteen"}, {}], "texts")
            check_equal(args("points", "v"), [[{"value": {"x": 1, "y": 2}}, {}, {"value": {"x": 3, "y": 4}}]], "points")
            check_equal(args("path", "p"), ["/tmp/of/a/file"], "path")


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
