#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each header for BPF programs compiles alone, whatever was included before it, for each machine; those that user space
shares compile as C and C++; and where pt_regs.h says a register is, the kernel's own headers have it."""

import os
import pathlib
import re
import subprocess
import sysconfig
import unittest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "bpf" / "include"
HEADERS = sorted(path.relative_to(INCLUDE) for path in (INCLUDE / "usdt" / "bpf").rglob("*.h"))
SHARED = ["types.h", "processes.h", "spec.h", "cookie.h", "constants.h", "stock_constants.h", "event.h", "interpreter.h",
          "pt_regs.h"]
MACHINES = ["x86", "i386", "arm64", "riscv"]
CLANG = os.environ.get("CLANG", "clang")
KERNEL_HEADERS = ["-idirafter", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}"]
RISCV_HEADERS = pathlib.Path("/usr/riscv64-linux-gnu/include")


def said(*command, text=""):
    """What the compiler complains of; empty: nothing."""
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
    return done.stderr if done.returncode or done.stderr else ""


def bpf(machine, header):
    return said(CLANG, "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{machine}", "-O2", "-Wall", "-Werror", *KERNEL_HEADERS,
                "-I", INCLUDE, "-include", header, "-x", "c", "-fsyntax-only", "/dev/null")


class Headers(unittest.TestCase):
    def test_are_all_seen(self):
        self.assertIn(pathlib.Path("usdt/bpf/usdt.bpf.h"), HEADERS)
        self.assertIn(pathlib.Path("usdt/bpf/compat/bpf/usdt.bpf.h"), HEADERS)

    def test_compile_alone_for_each_machine(self):
        for machine in MACHINES:
            for header in HEADERS:
                with self.subTest(machine=machine, header=str(header)):
                    self.assertEqual(bpf(machine, header), "")

    def test_that_user_space_shares_compile_as_c_and_cxx(self):
        for compiler, language in ((os.environ.get("CC", "cc"), "c"), (os.environ.get("CXX", "c++"), "c++")):
            for name in SHARED:
                with self.subTest(language=language, header=name):
                    self.assertEqual(said(compiler, "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-include",
                                          f"usdt/bpf/{name}", "-x", language, "-fsyntax-only", "/dev/null"), "")

    def test_say_what_machine_is_wanted(self):
        self.assertIn("define __TARGET_ARCH_x86", bpf("sparc", "usdt/bpf/usdt.bpf.h"))


class Loops(unittest.TestCase):
    """Per-link programs have an argument's spec in their instructions where its number is a constant: a loop that is not
    unrolled looks it up at each hit."""

    PROGRAM = """
        #include <usdt/bpf/usdt.bpf.h>
        __u64 sum = 0;
        USDT_PROGRAM(add_up)
        {
        #pragma unroll
                for (__u32 i = 0; i < ARGUMENTS; i++) {
                        __u32 value;

                        if (!usdt_arg(ctx, i, &value))
                                sum += value;
                }
                return 0;
        }
        """

    def not_unrolled(self, arguments, *options):
        return said(CLANG, "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-O2", "-g", "-Rpass-missed=loop-unroll",
                    *KERNEL_HEADERS, "-I", INCLUDE, f"-DARGUMENTS={arguments}", *options, "-x", "c", "-c", "-o", "/dev/null",
                    "-", text=self.PROGRAM)

    def test_over_twelve_arguments_are_unrolled(self):
        self.assertEqual(self.not_unrolled(12), "")
        self.assertEqual(self.not_unrolled(12, "-DUSDT_SITES_ONLY"), "")
        self.assertIn("too large", self.not_unrolled(100), "the compiler says it")


class StockPrograms(unittest.TestCase):
    def test_read_what_an_update_of_a_map_answers_as_the_int_that_old_kernels_give(self):
        stock = INCLUDE.parent
        sources = [path for path in stock.rglob("*.[ch]") if INCLUDE not in path.parents]
        self.assertGreater(len(sources), 10)
        asked = [path.name for path in sources if re.search(r"(?<!int\))bpf_map_update_elem\(", path.read_text())]
        self.assertEqual(asked, [], "update_elem() of stock.h is for that")


# Members of the kernel's struct by the number a spec has for them; the headers in question are the C library's copy.
X86 = {0: "r15", 1: "r14", 2: "r13", 3: "r12", 4: "rbp", 5: "rbx", 6: "r11", 7: "r10", 8: "r9", 9: "r8", 10: "rax", 11: "rcx",
       12: "rdx", 13: "rsi", 14: "rdi", 16: "rip", 19: "rsp"}
I386 = {4: "ebp", 5: "ebx", 10: "eax", 11: "ecx", 12: "edx", 13: "esi", 14: "edi", 16: "eip", 19: "esp"}
RISCV = dict(enumerate(["pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *[f"a{n}" for n in range(8)],
                        *[f"s{n}" for n in range(2, 12)], "t3", "t4", "t5", "t6"]))
ARM64 = {**{n: f"regs[{n}]" for n in range(31)}, 31: "sp", 32: "pc"}


class PtRegs(unittest.TestCase):
    def check(self, prefix, target, struct, members, headers=KERNEL_HEADERS):
        """Each member is where the table has it, and the table has no other."""
        table = re.search(rf"#define {prefix}_PT_REGS\(X\)(.*?)\n#define", (INCLUDE / "usdt/bpf/pt_regs.h").read_text(),
                          re.DOTALL).group(1)
        rows = {int(word): int(offset) for word, offset in re.findall(r"X\((\d+), (\d+)\)", table)}
        self.assertEqual(rows.keys(), members.keys())
        lines = [f"_Static_assert(__builtin_offsetof(struct {struct}, {members[word]}) == {offset}, \"{members[word]}\");"
                 for word, offset in rows.items()]
        lines += [f"_Static_assert({prefix}_IP_OFFSET == __builtin_offsetof(struct {struct}, {members[max(ip)]}), \"\");"
                  for ip in [[word for word, name in members.items() if name in ("rip", "eip", "pc")]]]
        text = "\n".join(["#include <asm/ptrace.h>", "#include <usdt/bpf/pt_regs.h>", *lines, ""])
        arguments = [CLANG, "-target", target, "-fsyntax-only", "-x", "c", "-I", INCLUDE, *headers, "-"]
        self.assertEqual(said(*arguments, text=text), "")
        broken = text.replace(f"== {rows[min(rows)]},", f"== {rows[min(rows)] + 1},", 1)
        self.assertIn("static", said(*arguments, text=broken), "the compiler judges")

    @unittest.skipUnless("x86_64" in KERNEL_HEADERS[1], "the headers of this machine's kernel are of another one")
    def test_of_x86_64_are_the_kernels(self):
        self.check("USDT_X86", "x86_64-linux-gnu", "pt_regs", X86)

    @unittest.skipUnless("x86_64" in KERNEL_HEADERS[1] or "i386" in KERNEL_HEADERS[1], "not an x86 machine")
    def test_of_a_32_bit_kernel_are_the_kernels(self):
        self.check("USDT_I386", "i386-linux-gnu", "pt_regs", I386)

    @unittest.skipUnless("aarch64" in KERNEL_HEADERS[1], "the headers of this machine's kernel are of another one")
    def test_of_arm64_are_the_kernels(self):
        self.check("USDT_ARM64", "aarch64-linux-gnu", "user_pt_regs", ARM64)

    @unittest.skipUnless(RISCV_HEADERS.exists(), "no kernel headers of riscv64 (linux-libc-dev-riscv64-cross)")
    def test_of_riscv64_are_the_kernels(self):
        self.check("USDT_RISCV", "riscv64-linux-gnu", "user_regs_struct", RISCV, ["-isystem", RISCV_HEADERS])


if __name__ == "__main__":
    unittest.main()
