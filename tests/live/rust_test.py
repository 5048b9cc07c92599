#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Rust programs. values.rs says each value itself."""

import collections
import subprocess

import said
from puppet import HERE  # noqa: F401 (finds the harness)
from harness import check, check_equal, main, require_program, require_root, scenario


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


if __name__ == "__main__":
    main()
