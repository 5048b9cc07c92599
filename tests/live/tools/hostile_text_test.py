#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Traced programs that choose their names and texts to harm whoever looks: comm, probe, provider, file, string."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from hostile import build  # noqa: E402
from harness import check, check_equal, main, require_root, require_x86_64, scenario, with_long  # noqa: E402
from strict_text import HOSTILE, harmful, json_lines  # noqa: E402

@scenario
def nothing_of_a_hostile_program_reaches_the_terminal(run):
    require_root()
    require_x86_64()
    shown = [[], ["--print", "str(arg0)"], ["--count"]]
    for number, name in enumerate(HOSTILE):
        program = build(run, number, name)
        for output in ("text", "json"):
            for options in with_long(shown, [shown[number % 3]]):  # in turn: each name once in each output
                done = subprocess.run([str(run.tool), b"prov*:name*", "-f", output, *options, "--", program], capture_output=True,
                                      timeout=60)
                what = (name, output, options, done.stdout, done.stderr)
                check_equal(harmful(done.stdout), [], f"standard output of {what}")
                check_equal(harmful(done.stderr), [], f"standard error of {what}")
                check_equal(done.returncode, 0, f"exit code of {what}")
                if output == "json":
                    records = json_lines(done.stdout)
                    check_equal(records[-1]["hits"], 1, f"hits of {what}")
                    check(options == ["--count"] or records[0]["args"], f"no event: {what}")
                elif options != ["--count"]:
                    check_equal(done.stdout.count(b"\n"), 1, f"lines of {what}")


if __name__ == "__main__":
    main()
