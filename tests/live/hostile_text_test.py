#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Traced programs that choose their names and texts to harm whoever looks: comm, probe, provider, file, string."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "programs"), str(HERE.parent / "tools")]

from harness import check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402
from strict_text import HOSTILE, harmful, json_lines  # noqa: E402
from tool import escaped  # noqa: E402

SOURCE = r"""
#include <sys/prctl.h>
static const char text[] = {%s, 0};
int main(void) {
  prctl(PR_SET_NAME, text);
  __asm__ volatile("990: nop\n"
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
    "993: .8byte 990b, _.stapsdt.base, 0\n.asciz \"%s\"\n.asciz \"%s\"\n.asciz \"8@%%0\"\n994: .balign 4\n.popsection\n"
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
    "_.stapsdt.base: .space 1\n.popsection\n" : : "r"(text));
  return 0;
}
"""


def build(run, number, name):
    directory = run.dir / str(number)
    directory.mkdir()
    path = bytes(directory) + b"/" + name.replace(b"/", b"")
    octal = escaped(name.decode(errors="surrogateescape")).replace("\\", "\\\\")
    source = SOURCE % (",".join(f"(char){byte}" for byte in name), "prov" + octal, "name" + octal)
    built = subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path], input=source.encode(), capture_output=True)
    check_equal(built.returncode, 0, f"gcc: {built.stderr.decode(errors='replace')}")
    return path


@scenario
def nothing_of_a_hostile_program_reaches_the_terminal(run):
    require_root()
    require_x86_64()
    for number, name in enumerate(HOSTILE):
        program = build(run, number, name)
        for output in ("text", "json"):
            for options in ([], ["--print", "str(arg0)"], ["--count"]):
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
