#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list --lint: each fault is found in a file made with it, and a file without faults has none."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.environ["USDT_LIST"]
INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "provider" / "include"
HEAD = """
.globl main
main: xorl %eax, %eax
ret
.pushsection .stapsdt.base,"aG","progbits",.stapsdt.base,comdat
.weak _.stapsdt.base
.hidden _.stapsdt.base
_.stapsdt.base: .space 1
.popsection
.section .note.GNU-stack,"","progbits"
.text
"""
NOP = "nop"
NOP5 = ".byte 0x0f,0x1f,0x44,0,0"


def site(label, provider, name, args="", semaphore="0", code=NOP):
    return f"{label}: {code}\n" * bool(code) + f"""
.pushsection .note.stapsdt,"","note"
.balign 4
.4byte 2f-1f, 4f-3f, 3
1: .asciz "stapsdt"
2: .balign 4
3: .8byte {label}, _.stapsdt.base, {semaphore}
.asciz "{provider}"
.asciz "{name}"
.asciz "{args}"
4: .balign 4
.popsection
"""


@unittest.skipUnless(os.uname().machine == "x86_64", "x86-64 assembly")
class Lint(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "program"

    def build(self, text, language="assembler", flags=()):
        subprocess.run(["gcc", f"-x{language}", "-", *flags, f"-I{INCLUDE}", "-o", self.path], input=text, text=True,
                       check=True)

    def lint(self, code):
        done = subprocess.run([TOOL, "--lint", "-f", "json", self.path], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertTrue(all(finding["type"] == "lint" and finding["v"] == 1 for finding in findings))
        return findings

    def rules(self, text, code=3):
        self.build(HEAD + text)
        return [(finding["rule"], finding["fault"]) for finding in self.lint(code)]

    def test_probes_of_our_header_have_no_faults(self):
        self.build("""#include <usdt/probe.h>
int main(int argc, char** argv) {
  USDT_PROBE(p, one, argc, argv); USDT_PROBE_LAZY(p, two, argc); USDT_PROBE_STUB(p, three, argv[0], 2.5); return 0;
}""", "c", ["-O2"])
        self.assertEqual(self.lint(0), [])
        text = subprocess.run([TOOL, "--lint", self.path], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"program: 3 sites, \d+ bytes of notes, 0 faults\n")

    def test_a_note_without_its_code(self):
        self.assertEqual(self.rules(site("0x2", "app", "gone", code="")), [("phantom", True)])

    @unittest.skipUnless(shutil.which("ld.lld") and pathlib.Path("/usr/include/x86_64-linux-gnu/sys/sdt.h").exists(),
                         "needs lld and sys/sdt.h")
    def test_what_lld_leaves_of_dead_code(self):
        self.build("#include <sys/sdt.h>\nvoid dead(void) { DTRACE_PROBE(app, gone); }\n"
                   "int main(void) { DTRACE_PROBE(app, here); return 0; }", "c",
                   ["-ffunction-sections", "-fuse-ld=lld", "-Wl,--gc-sections"])
        self.assertEqual([(finding["rule"], finding["probe"].rsplit(":", 1)[1]) for finding in self.lint(3)],
                         [("phantom", "gone")])

    def test_arguments_nobody_can_read(self):
        self.assertEqual(self.rules(site("x", "app", "wide", "16@%rax -4@%edi 8@nonsense(")), [("unreadable", True)] * 2)
        self.assertEqual(self.rules(site("x", "app", "many", " ".join(["4@%edi"] * 13)))[0], ("arguments", True))

    def test_a_nop5_and_an_argument_in_the_red_zone(self):
        self.assertEqual(self.rules(site("x", "app", "fast", "-8@-8(%rsp)", code=NOP5)),
                         [("nop5", True), ("red-zone", True)])
        self.assertEqual(self.rules(site("x", "app", "slow", "-8@-8(%rsp)"), 0), [])
        self.assertEqual(self.rules(site("x", "app", "stepped", code="leaq 8(%rax), %rcx")), [("no-nop", True)])

    def test_two_notes_of_one_place(self):
        self.assertEqual(self.rules(site("x", "app", "twice") + site("x", "app", "twice", code="")),
                         [("duplicate", True)])
        self.assertEqual(self.rules(site("x", "app", "one") + site("x", "app", "other", code="")), [("folded", True)])

    def test_semaphores(self):
        counter = '.pushsection .probes,"aw","progbits"\ncounter: .2byte 0\n.popsection\n'
        constant = '.pushsection .rodata\ncounter: .2byte 0\n.popsection\n'
        self.assertEqual(self.rules(counter + site("x", "app", "guarded", semaphore="counter"), 0), [])
        self.assertEqual(self.rules(constant + site("x", "app", "guarded", semaphore="counter")), [("semaphore", True)])
        self.assertEqual(self.rules(counter + site("x", "app", "guarded", semaphore="counter") +
                                    site("y", "app", "guarded")), [("semaphore", True)])

    def test_what_is_merely_worth_knowing(self):
        self.assertEqual(self.rules(site("x", "app", "varied", "4@%edi") + site("y", "app", "varied", "-4@%edi"), 0),
                         [("signatures", False)])
        self.assertEqual(self.rules(site("x", "postgres", "one") + site("y", "postgers", "two"), 0), [])
        self.assertEqual(self.rules(site("x", "postgres", "one") + site("y", "postgre", "two"), 0),
                         [("provider", False)])
        self.assertEqual(self.rules(site("x", "my_app", "one") + site("y", "MyApp", "two"), 0), [("provider", False)])

    def signs(self, args, *flags):
        """What is said of a probe with `args` in f(int a, unsigned b, short c), by the debug information of a compiler."""
        note = site("place", "app", "probe", args, code="").replace("%", "%%")
        base = HEAD[HEAD.index(".pushsection .stapsdt.base"):HEAD.index(".section .note.GNU")]
        text = f"""
int __attribute__((noinline)) f(int a, unsigned b, short c) {{
  __asm__ volatile(R"(place: nop
{note})" : : "r"(a), "r"(b), "r"(c));
  return a;
}}
int main(void) {{ return f(1, 2, 3); }}
__asm__(R"({base})");
"""
        self.build(text, "c", ["-std=gnu11", "-O2", *flags])
        return [(finding["rule"], finding["fault"], finding["text"]) for finding in self.lint(0)]

    def test_signs_are_those_of_the_source(self):
        self.assertEqual(self.signs("-4@%edi 4@%esi -2@%dx", "-g"), [])
        (unsigned, signed) = self.signs("4@%edi -4@%esi", "-g")
        self.assertEqual(unsigned[:2], ("sign", False))
        self.assertIn("arg0 (4@%edi) is unsigned, and the variable that is there, int a, is not", unsigned[2])
        self.assertIn("arg1 (-4@%esi) is signed, and the variable that is there, unsigned int b, is not", signed[2])
        self.assertEqual(self.signs("8@%rdi 1@%sil", "-g"), [], "other sizes are other values")
        self.assertEqual(self.signs("4@%edi -4@%esi"), [], "without debug information nothing is known")

    def test_it_is_about_probes_of_files(self):
        for words in (["--lint", "kfunc:vfs_read"], ["--lint", "--doctor"], ["--lint"]):
            done = subprocess.run([TOOL, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
