#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What <usdt/probe.h> makes of a program at compile time: its cost while untraced, and its refusals."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from builds import HERE, INCLUDE

COMPILERS = [compiler for compiler in ("gcc", "clang") if shutil.which(compiler)]
CXX = {"gcc": "g++", "clang": "clang++"}
TARGETS = {"x86_64": [], "i386": ["-m32", "-fno-pic"], "aarch64": ["--target=aarch64-linux-gnu", "-ffreestanding"]}


def compile_text(compiler, text, *flags, language="c"):
    argv = [compiler, f"-x{language}", "-std=gnu11"] if language == "c" else [CXX[compiler], "-xc++", "-std=c++20"]
    return subprocess.run([*argv, "-Wall", "-Wextra", *flags, f"-I{INCLUDE}", "-c", "-", "-o", "/dev/null"],
                          input="#include <usdt/probe.h>\n" + text, capture_output=True, text=True)


def instructions_executed(disassembly, function):
    """How many instructions run from the entry of a function to its return while no semaphore is up."""
    lines = re.findall(r"^ *([0-9a-f]+):[ \t]+(\S+)(?:[ \t]+([^\n]*))?", disassembly.split(f"<{function}>:\n")[1], re.M)
    at = {int(address, 16): number for number, (address, _, _) in reversed(list(enumerate(lines)))}
    count, number = 0, 0
    while count < 1000:
        _, mnemonic, operands = lines[number]
        count += 1
        if mnemonic.startswith("ret"):
            return count
        target = re.search(r"(?:0x)?([0-9a-f]+) <", operands or "")
        jumps = mnemonic in ("jmp", "b", "je", "cbz")  # jne and cbnz: to where a semaphore is up
        number = at[int(target[1], 16)] if jumps and target else number + 1
    raise AssertionError(f"{function} does not return:\n{disassembly}")


class Cost(unittest.TestCase):
    def counts(self, compiler, machine):
        argv = [compiler, "-std=gnu11", "-O2", "-fomit-frame-pointer", *TARGETS[machine], f"-I{INCLUDE}", f"-I{HERE}", "-c", str(HERE / "cost.c")]
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([*argv, "-o", f"{directory}/cost.o"], check=True, capture_output=True)
            objdump = "llvm-objdump-14" if machine == "aarch64" else "objdump"
            if not shutil.which(objdump):
                self.skipTest(f"no {objdump}")
            text = subprocess.run([objdump, "-d", "--no-show-raw-insn", f"{directory}/cost.o"], check=True,
                                  capture_output=True, text=True).stdout
        return {name: instructions_executed(text, name) for name in ("bare", "plain", "lazy", "stub", "expensive", "fired")}

    def test_a_probe_nobody_traces_is_one_nop_or_three_instructions(self):
        for compiler in COMPILERS:
            for machine in TARGETS:
                if machine == "aarch64" and compiler != "clang":
                    continue
                with self.subTest(compiler=compiler, machine=machine):
                    counts = self.counts(compiler, machine)
                    bare = counts["bare"]
                    print(f"  {compiler} {machine}: instructions executed {counts}")
                    if machine == "i386":  # there, arguments are put on the stack, and registers are few
                        continue
                    self.assertLessEqual(counts["plain"] - bare, 1)
                    for form in ("lazy", "stub", "expensive"):
                        self.assertLessEqual(counts[form] - bare, 3, form)
                    # One made at run time: its semaphore is loaded and tested, and to find it is up to two more.
                    self.assertLessEqual(counts["fired"] - bare, 3 if (compiler, machine) == ("gcc", "x86_64") else 4)


REFUSED_C = {
    "struct s { int x; } v; void f(void) { USDT_PROBE(p, n, v); }": "cannot be one of a USDT probe",
    "union u { int x; } v; void f(void) { USDT_PROBE(p, n, 1, v); }": "argument 2 cannot be one of a USDT probe",
    "void f(__int128 v) { USDT_PROBE(p, n, v); }": "cannot be one of a USDT probe",
    "void f(long double v) { USDT_PROBE_LAZY(p, n, v); }": "cannot be one of a USDT probe",
    "void f(_Complex double v) { USDT_PROBE_STUB(p, n, v); }": "cannot be one of a USDT probe",
    "void f(int v) { USDT_PROBE(p, n, v, v, v, v, v, v, v, v, v, v, v, v, v); }": "at most 12 arguments",
}
REFUSED_CXX = {
    "struct S { int x; }; void f(S v) { USDT_PROBE(p, n, v); }": "cannot be an argument of a USDT probe",
    "#include <memory>\nvoid f(std::unique_ptr<int> v) { USDT_PROBE(p, n, v); }": "cannot be an argument of a USDT probe",
    "#include <atomic>\nstd::atomic<int> v; void f() { USDT_PROBE_STUB(p, n, v); }": "cannot be an argument",
    "void f(__int128 v) { USDT_PROBE(p, n, v); }": "cannot be an argument of a USDT probe",
    "enum E : __int128 { a }; void f(E v) { USDT_PROBE(p, n, v); }": "cannot be an argument of a USDT probe",
    "struct S; void f(int S::* v) { USDT_PROBE(p, n, v); }": "cannot be an argument of a USDT probe",
    "#include <string>\nvoid f(std::string v) { USDT_PROBE(p, n, v, v, v, v, v, v, 1); }": "at most 12 arguments",
    "void f(int v) { USDT_PROBE(p, n, v, v, v, v, v, v, v, v, v, v, v, v, v); }": "at most 12 arguments",
}


class Refusals(unittest.TestCase):
    def check(self, programs, language):
        for compiler in COMPILERS:
            for text, reason in programs.items():
                with self.subTest(compiler=compiler, text=text):
                    done = compile_text(compiler, text, language=language)
                    self.assertNotEqual(done.returncode, 0)
                    errors = [line for line in done.stderr.splitlines() if "error:" in line]
                    self.assertTrue(any(reason in line for line in errors), done.stderr)

    def test_c_says_what_cannot_be_passed(self):
        self.check(REFUSED_C, "c")

    def test_cxx_says_what_cannot_be_passed(self):
        self.check(REFUSED_CXX, "c++")

    def test_odd_text_of_arguments_does_not_disturb(self):
        text = r'''
        int f(int a, int b) {
          USDT_PROBE(p, one, a % b, "%d {x|y} \\ \" %%", (a, b), a ? b : a, '"');
          USDT_PROBE_STUB(p, two, a % b, "%d {x|y} \\ \" %%", '\\', '\n');
          return USDT_PROBE_ENABLED(p, two);
        }'''
        for compiler in COMPILERS:
            for language in ("c", "c++"):
                done = compile_text(compiler, text, "-Wno-unused-value", language=language)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_programs_that_make_errors_of_every_warning_have_none(self):
        text = r'''
        enum e { first = -1 };
        static int f(int a, const char* b, short c, enum e d) {
          USDT_PROBE(p, one, a, b, c, d, 1.5, f); USDT_PROBE_LAZY(p, two, a, "b"); USDT_PROBE_STUB(p, three, a, (char)a);
          return USDT_PROBE_ENABLED(p, two);
        }
        int main(void) { return f(1, "b", 2, first); }
'''
        strict = ("-Werror", "-Wpedantic", "-Wconversion", "-Wshadow")
        for compiler in COMPILERS:
            for language, standard in (("c", "-std=c11"), ("c", "-std=c17"), ("c++", "-std=c++20")):
                with self.subTest(compiler=compiler, standard=standard):
                    done = compile_text(compiler, text, standard, *strict, language=language)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_probe_made_at_run_time_takes_what_the_others_take(self):
        head = "#include <usdt/provider.h>\nstruct s { int x; }; extern usdtp_probe* p;\n"
        many = "void f(int v) { USDT_PROBE_FIRE(p, v, v, v, v, v, v, v, v, v, v, v, v, v); }"
        self.check({head + "void f(struct s v) { USDT_PROBE_FIRE(p, 1, v); }": "argument 2 cannot be one of a USDT probe",
                    head + "void f(__int128 v) { USDT_PROBE_FIRE(p, v); }": "cannot be one of a USDT probe",
                    head + many: "at most 12 arguments"}, "c")
        self.check({head + "void f(s v) { USDT_PROBE_FIRE(p, v); }": "cannot be an argument of a USDT probe",
                    "#include <string>\n" + head + "void f(std::string v) { USDT_PROBE_FIRE(p, v, v, v, v, v, v, 1); }":
                    "at most 12 arguments",
                    head + many: "at most 12 arguments"}, "c++")


class Stubs(unittest.TestCase):
    """The code of probes made at run time, for every machine; that it is run and read right is tested live."""

    # The C library's headers of this machine do: none of their types is in the code of a stub.
    HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]
    INSTRUCTIONS = {"x86_64": ["endbr64", "nop", "nopw", "retq"], "i386": ["endbr32", "nop", "retl"],
                    "aarch64": ["hint", "nop", "ret"]}

    def test_are_a_nop_that_is_returned_from(self):
        if not shutil.which("clang") or not shutil.which("llvm-objdump-14"):
            self.skipTest("no clang or llvm-objdump-14")
        for machine, expected in self.INSTRUCTIONS.items():
            with self.subTest(machine=machine), tempfile.NamedTemporaryFile(suffix=".o") as out:
                flags = [flag for flag in TARGETS[machine] if flag != "-ffreestanding"]
                subprocess.run(["clang", "-std=gnu11", "-w", "-O2", "-D_GNU_SOURCE", *flags, *self.HEADERS, f"-I{INCLUDE}", "-c",
                                str(INCLUDE.parent / "src" / "image.c"), "-o", out.name], check=True)
                text = subprocess.run(["llvm-objdump-14", "-D", "-j", ".rodata.usdtp_stub", "--no-show-raw-insn", out.name],
                                      check=True, capture_output=True, text=True).stdout
                self.assertEqual(re.findall(r"^ *[0-9a-f]+:[ \t]+(\w+)", text, re.M), expected, text)
                self.assertIn("<usdtp_stub_site>:\n" + " " * 7 + "4:", text, "the site is the first nop")


class Memory(unittest.TestCase):
    PROGRAM = """#include <usdt/probe.h>
char text[8];
void f(void) { text[0] = 65; FORM(p, n, (const char*)text); text[0] = 66; }
"""

    def test_that_arguments_point_at_is_stored_before_the_site(self):
        for compiler in COMPILERS:
            for form in ("USDT_PROBE", "USDT_PROBE_LAZY", "USDT_PROBE_STUB"):
                with self.subTest(compiler=compiler, form=form):
                    made = subprocess.run([compiler, "-xc", "-std=gnu11", "-O2", f"-I{INCLUDE}", "-S", "-", "-o", "-"], check=True,
                                          input=self.PROGRAM.replace("FORM", form), capture_output=True, text=True).stdout
                    self.assertRegex(made, r"movb\s+\$65, text", f"{form}: the first store is gone")


class Disabled(unittest.TestCase):
    def test_nothing_is_left_and_nothing_is_unused(self):
        text = '''
        #include <usdt/provider.h>
        extern usdtp_probe* made;
        int work(int);
        int f(int unused, int used) {
          USDT_PROBE(p, one, unused, work(used)); USDT_PROBE_LAZY(p, two, work(1)); USDT_PROBE_STUB(p, three, work(2));
          USDT_PROBE(p, none); USDT_PROBE_FIRE(made, unused, work(3)); USDT_PROBE_FIRE(made);
          return USDT_PROBE_ENABLED(p, two);
        }'''
        for compiler in COMPILERS:
            for language in ("c", "c++"):
                with self.subTest(compiler=compiler, language=language), tempfile.NamedTemporaryFile(suffix=".o") as out:
                    argv = [compiler, "-std=gnu11"] if language == "c" else [CXX[compiler], "-std=c++20"]
                    done = subprocess.run([*argv, f"-x{language}", "-O0", "-Wall", "-Wextra", "-DUSDT_PROBE_DISABLE", f"-I{INCLUDE}", "-c", "-", "-o", out.name],
                                          input="#include <usdt/probe.h>\n" + text, capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    dump = subprocess.run(["readelf", "-SsW", out.name], capture_output=True, text=True, check=True).stdout
                    self.assertNotIn("stapsdt", dump)
                    self.assertNotIn("work", dump)
                    self.assertNotIn("usdt", dump)


if __name__ == "__main__":
    if not COMPILERS:
        sys.exit(77)
    unittest.main(verbosity=1)
