#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Rust programs. values.rs says each value itself."""

import collections
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import said  # noqa: E402
from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import attach_at_once, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

attach_at_once()


def build(run, level):
    require_root()
    require_program("rustc")
    program = run.dir / f"values-{level}"
    argv = ["rustc", "-g", "-A", "warnings", "-C", f"opt-level={level}", "-o", program, HERE / "values.rs"]
    built = subprocess.run(argv, capture_output=True, text=True)
    check_equal(built.returncode, 0, built.stderr)
    return program


@scenario
def values_are_those_that_the_program_says(run):
    table = {}
    for level in ("0", "1", "3"):
        program = build(run, level)
        unreadable = collections.Counter()
        for name in said.said_by(said.output_of(program)):
            function = f"values::{name.removesuffix('_ret')}"
            prefix = "uretprobe" if name.endswith("_ret") else "uprobe"
            said.compare(run, program, prefix, function, name, unreadable)
        check(level == "0" or not any("request->" in reason for reason in unreadable),
              f"what a reference leads to, opt-level={level}: {unreadable}")
        table[level] = unreadable
    print("values that could not be read, all others were right:")
    for level, unreadable in table.items():
        print(f"  opt-level={level}: {sum(unreadable.values())}", *sorted(unreadable), sep="\n    ")


@scenario
def texts_are_asked_about_by_their_length(run):
    program = build(run, "1")
    for i in range(3):  # there is no NUL behind them
        result = run.trace(f"uprobe:{program}:values::members", "--where", f'request->path == "/a/path/{i}"', "--print",
                           "request->path", command=said.quiet(program))
        result.check_code(0)
        check_equal([event["args"] for event in result.events], [[f"/a/path/{i}"]], "calls with this text")


UNOPTIMISED = """
use std::hint::black_box;
pub struct P { a: u8, b: u32 }
#[inline(never)] fn ints(a: i8, b: u16, c: i32, d: u64, e: bool, f: char) -> i32 { black_box((a, b, c, d, e, f)); c + 1 }
#[inline(never)] fn texts(s: &str, v: &[u32]) -> usize { black_box((s, v)); s.len() + v.len() }
#[inline(never)] fn structs(p: P, q: &P) -> u32 { black_box((&p, q)); p.b }
#[inline(never)] fn options(o: Option<u32>, n: Option<&u64>) -> bool { black_box((o, n)); o.is_some() }
#[inline(never)] fn many(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 { black_box((a, b, c, d, e, f, g, h)); h }
#[inline(never)] fn wide(x: u128, n: i32) -> i32 { black_box((x, n)); n }
impl P { #[inline(never)] fn own(self, k: i64) -> i64 { black_box((&self, k)); k * 2 } }
fn main() {
    for i in 0..3i32 {
        ints(-1 - i as i8, 1000 + i as u16, -100000 * i, 1 << 40, i == 1, 'e');
        texts("hello", &[1, 2, 3]);
        structs(P { a: i as u8, b: 70000 + i as u32 }, &P { a: 9, b: 8 });
        options(if i == 1 { None } else { Some(i as u32) }, None);
        many(1, 2, 3, 4, 5, 6, 7, 8 + i as u64);
        wide((1u128 << 100) + i as u128, i);
        P { a: 5, b: 6 }.own(-3 - i as i64);
    }
}
"""


@scenario
def parameters_of_unoptimised_code_are_where_its_first_instructions_store_them_from(run):
    require_root()
    require_program("rustc")
    source = run.dir / "unoptimised.rs"
    source.write_text(UNOPTIMISED)
    program = run.dir / "unoptimised"
    built = subprocess.run(["rustc", "-g", "-C", "opt-level=0", str(source), "-o", str(program)], capture_output=True, text=True)
    check_equal(built.returncode, 0, built.stderr)
    some = lambda i: {"None": {}} if i == 1 else {"Some": {"__0": i}}  # noqa: E731
    wanted = {
        "ints": lambda i: ([-1 - i, 1000 + i, -100000 * i, 1 << 40, int(i == 1), ord("e")], -100000 * i + 1),
        "texts": lambda i: (["hello", [1, 2, 3]], 8),
        "structs": lambda i: ([{"a": i, "b": 70000 + i}, None], 70000 + i),
        "options": lambda i: ([some(i), {"None": {}}], int(i != 1)),
        "many": lambda i: ([1, 2, 3, 4, 5, 6, 7, 8 + i], 8 + i),
        "wide": lambda i: ([str((1 << 100) + i), i], i),
        "P::own": lambda i: ([{"a": 5, "b": 6}, -3 - i], -6 - 2 * i),
    }
    traced = run.trace([f"ucall:{program}:unoptimised::{name}" for name in wanted], "--depth", "4", command=[program])
    traced.check_code(0)
    read, errors = 0, []
    for name, value in wanted.items():
        events = [event for event in traced.events if event["probe"].endswith(f":unoptimised::{name}")]
        check_equal(len(events), 3, name)
        for i, event in enumerate(events):
            arguments, result = value(i)
            for shown, right in zip([*event["args"], event["return"]], [*arguments, result], strict=True):
                if right is None:
                    continue
                if isinstance(shown, dict) and "error" in shown:
                    errors.append(f"{name}: {shown['error']}")
                    continue
                check_equal(shown, right, f"{name} {i}")
                read += 1
    print(f"{read} values right, {len(errors)} errors", *sorted(set(errors)), sep="\n    ")
    check(read > 55, f"only {read} values could be read")


if __name__ == "__main__":
    main()
