# SPDX-License-Identifier: BSD-2-Clause
"""Programs that choose their names and texts to harm whoever looks: comm, probe, provider, file, string."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check_equal  # noqa: E402
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
