#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sites the kernel takes no probe on: it finds out when a process maps the file, and then tells nobody.

What we attach and what we leave out must be what the kernel does. The judge is the memory of a process that was started
when all was attached: each site has a breakpoint there, or it has none. Where the kernel refuses more than we do, objdump
must not know the bytes as an instruction: then none of a running program can be there."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401  (finds the shared harness)
from harness import Skip, check, check_equal, main, require_m32, require_program, require_root, require_x86_64, scenario  # noqa: E402

SLOT = 32
# sys/sdt.h is an architecture's header on Debian although it is the same for all; found last, it serves -m32 too.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]
# What objdump 2.40 prints for prefixes these opcodes do not have (Intel SDM volume 2, opcode maps).
NO_INSTRUCTIONS = {"vzeroupper", "vzeroall", "vrsqrt14ps", "vrsqrt14pd", "vdbpsadbw", "vpshldw", "vpshrdw"}
# Of AVX10.2 and AMX, which binutils 2.44 knows, and no kernel and no processor so far that programs are made for.
TOO_NEW = re.compile(r"v(minmax|u?comx|cvt2ps2phx|dpphps|(fpclass|getmant|reduce|rndscale)bf16)|vmovd %xmm0,(%xmm|\()|\{evex\} vmpsadbw|t(conjt|transpos)")


def encodings():
    """The bytes at each site: every opcode of every map, with every prefix that matters."""
    every = range(256)
    prefixes = ["66", "67", "f2", "f3", "64", "65", "40", "41", "48", "4f", "2e", "3e", "26", "36", "f0", "6667", "f366"]
    rest = "11" * 10
    for modrm in ("00", "c0", "c8", "d0", "d8", "e8", "f8", "05"):
        yield from (f"{opcode:02x}{modrm}{rest}" for opcode in every)
        yield from (f"0f{opcode:02x}{modrm}{rest}" for opcode in every)
    for prefix in prefixes:
        yield from (f"{prefix}{opcode:02x}c0{rest}" for opcode in every)
        yield from (f"{prefix}0f{opcode:02x}c0{rest}" for opcode in every)
    for table in ("38", "3a"):
        yield from (f"{prefix}0f{table}{opcode:02x}c0{rest}" for prefix in ("", "66", "f2", "f3") for opcode in every)
    for modrm in ("00", "c0"):
        for pp in range(4):
            yield from (f"c5{0xf8 | pp:02x}{opcode:02x}{modrm}{rest}" for opcode in every)
            yield from (f"c5{0xfc | pp:02x}{opcode:02x}{modrm}{rest}" for opcode in every)
            for word in (0x78, 0xf8):
                yield from (f"c4{0xe0 | table:02x}{word | pp:02x}{opcode:02x}{modrm}{rest}" for table in (1, 2, 3)
                            for opcode in every)
                yield from (f"62{0xf0 | table:02x}{word | 4 | pp:02x}08{opcode:02x}{modrm}{rest}"
                            for table in (1, 2, 3) for opcode in every)
    yield from (f"8f{0xe0 | table:02x}78{opcode:02x}c0{rest}" for table in (8, 9, 10) for opcode in every)


def program_with(run, instructions, flags):
    """A program with a site on each of `instructions`, which no path reaches. It writes what it has in their place."""
    word_size = 4 if "-m32" in flags else 8
    lines = [".text", ".globl slots, slots_end", ".p2align 5", "slots:"]
    for code in instructions:
        code_bytes = ",".join("0x" + code[at:at + 2] for at in range(0, len(code), 2))
        lines.append(f"0:.byte {code_bytes}\n.p2align 5,0x90\n.pushsection .note.stapsdt,\"\",@note\n.balign 4\n"
                     f".4byte 8,{3 * word_size + 7},3\n.asciz \"stapsdt\"\n.{word_size}byte 0b,0,0\n"
                     ".asciz \"odd\"\n.asciz \"s\"\n.asciz \"\"\n.balign 4\n.popsection")
    lines += ["slots_end: nop", '.section .note.GNU-stack,"",@progbits', ""]
    (run.dir / "sites.s").write_text("\n".join(lines))
    (run.dir / "main.c").write_text("""
#include <stdio.h>
extern const volatile unsigned char slots[], slots_end[];
int main(int argc, char** argv) {
  FILE* out = fopen(argv[argc - 1], "w");
  for (const volatile unsigned char* at = slots; at < slots_end; at += 32) fputc(*at, out);
  return fclose(out);
}
""")
    return run.build("sites", [run.dir / "main.c", run.dir / "sites.s"], ["-O1", "-no-pie", *flags])


def listed(run, program):
    """The sites in the order of their addresses: (cost, reason)."""
    done = subprocess.run([run.tool.parent / "usdt-list", "--format", "json", program], capture_output=True, text=True,
                          check=True)
    sites = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda site: int(site["pc"], 16))
    return [(site["site"]["cost"], site["site"].get("cost_reason", "")) for site in sites]


def instructions_of(codes, run, machine):
    """What objdump calls each of `codes`; those it does not know are "(bad)"."""
    (run.dir / "codes").write_bytes(b"".join(bytes.fromhex(code).ljust(SLOT, b"\x90") for code in codes))
    text = subprocess.run(["objdump", "-D", "-b", "binary", "-m", machine, run.dir / "codes"], capture_output=True,
                          text=True, check=True).stdout
    found = re.findall(r"(?m)^\s*([0-9a-f]+):\t[0-9a-f ]+\t(.*)$", text)
    at = {int(address, 16): words.split() for address, words in found}
    return [at.get(SLOT * number, ["(bad)"]) for number in range(len(codes))]


def check_all(run, flags, machine):
    require_root()
    require_x86_64()
    require_program("objdump")
    codes = list(encodings())
    program = program_with(run, codes, flags)
    verdicts = listed(run, program)
    check_equal(len(verdicts), len(codes), "sites listed")
    memory = run.dir / "memory"
    traced = run.trace(f"usdt:{program}:odd:s", "--count", command=[program, memory], timeout=110)
    traced.check_code(0)
    seen = memory.read_bytes()
    check_equal(len(seen), len(codes), "sites in the program's memory")
    check_equal(len(traced.summary["skipped"]), sum(cost == "refused" for cost, _ in verdicts), "sites left out")

    ours_only, kernels_only = [], []
    for code, (cost, reason), byte in zip(codes, verdicts, seen):
        if code.startswith("cc") or "red zone" in reason or "would run it as" in reason or "stepped, " in reason:
            continue  # a breakpoint of its own; left out for another reason, of which the last two are what the next scenarios are about
        if (cost == "refused") == (byte == 0xcc):
            (ours_only if cost == "refused" else kernels_only).append(code)
    check(sum(byte == 0xcc for byte in seen) > 5000, "hardly any breakpoint in the program's memory")
    check_equal(ours_only[:20], [], f"{len(ours_only)} refused by us, taken by the kernel")
    wrong = [f"{code}: {' '.join(words)}" for code, words in zip(kernels_only, instructions_of(kernels_only, run, machine))
             if "bad" not in " ".join(words) and words[0] not in NO_INSTRUCTIONS and not TOO_NEW.match(" ".join(words))]
    check_equal(wrong[:20], [], f"{len(wrong)} instructions refused by the kernel, attached by us")


@scenario
def every_instruction_of_64_bit_code_the_kernel_refuses_is_refused_with_the_reason(run):
    check_all(run, [], "i386:x86-64")


@scenario
def every_instruction_of_32_bit_code_the_kernel_refuses_is_refused_with_the_reason(run):
    require_m32()
    check_all(run, M32, "i386")


@scenario
def what_the_kernel_would_run_as_another_instruction_is_left_alone(run):
    require_root()
    require_x86_64()
    if "avx" not in open("/proc/cpuinfo").read().split():
        raise Skip("no AVX")
    # 7f is jg for the kernel, and vmovdqa for the processor; eb is jmp and vpor.
    source = run.dir / "vectors.c"
    source.write_text(r"""
#include <stdio.h>
long stored[2] __attribute__((aligned(16)));
__attribute__((naked)) void store(long*) { __asm__("vmovdqa %xmm0,(%rdi); ret"); }
__attribute__((naked)) void either(void) { __asm__("vpor %xmm1,%xmm0,%xmm0; ret"); }
int main(void) {
  for (long i = 1; i <= 5; i++) {
    __asm__ volatile("vmovq %0,%%xmm0; vmovq %1,%%xmm1; call either; mov %2,%%rdi; call store"
                     : : "r"(i), "r"(i << 8), "r"(stored) : "rdi", "xmm0", "xmm1", "memory");
    printf("%ld\n", stored[0]);
  }
}
""".replace("store(long*)", "store(void)"))
    program = run.build("vectors", [source], ["-O1", "-no-pie", "-mno-red-zone"])
    expected = "".join(f"{i | i << 8}\n" for i in range(1, 6))
    for function in ("store", "either"):
        result = run.trace([f"uprobe:{program}:{function}", f"uprobe:{program}:main"], command=[program])
        result.check_code(0)
        check(result.stdout.startswith(expected) or expected in result.stdout, f"{function}: {result.describe()}")
        check("would run it as a jump" in result.stderr, result.stderr)


@scenario
def what_does_something_else_when_it_is_stepped_is_left_alone(run):
    """pushf stores the flag by which it is stepped; a child that a system call makes has no copy of the instruction."""
    require_root()
    require_x86_64()
    source = run.dir / "stepped.c"
    source.write_text(r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__asm__(".text; .type flags,@function; flags: pushf; pop %rax; ret; .size flags,.-flags");
__asm__(".type call,@function; call: syscall; ret; .size call,.-call");
__asm__(".type landed,@function; landed: endbr64; syscall; ret; .size landed,.-landed");
static long raw(long number, void (*f)(void)) {
  long result;
  __asm__ volatile("call *%2" : "=a"(result) : "0"(number), "r"(f) : "rcx", "r11", "memory");
  return result;
}
extern void flags(void), call(void), landed(void);
int main(void) {
  for (int i = 0; i < 3; i++) {
    const long child = raw(57, call);  // fork
    if (child == 0) _exit(raw(110, landed) == getppid() ? 4 : 5);  // getppid
    int status = 0;
    waitpid(child, &status, 0);
    printf("%lx %d\n", raw(0, flags) & 0x100, WEXITSTATUS(status));
  }
}
""")
    program = run.build("stepped", [source], ["-O1"])
    names = [f"{prefix}:{program}:{name}" for prefix in ("uprobe", "ucall") for name in ("flags", "call", "landed", "main")]
    log = run.dir / "said"
    result = run.trace(names, command=["sh", "-c", f"exec {program} > {log}"])
    result.check_code(0)
    check_equal(log.read_text(), "0 4\n" * 3, f"what it computes\n{result.stderr}")
    check("trap flag" in result.stderr and "a system call would return" in result.stderr, result.stderr)
    hits = {name: len(events) for name, events in result.by_name().items()}
    check_equal(hits, {"landed": 6, "main": 2}, "hits: what has endbr64 is traced there")


@scenario
def a_site_in_a_writable_segment_is_refused_since_the_kernel_puts_no_breakpoint_there(run):
    require_root()
    require_x86_64()
    source = run.dir / "writable.c"
    source.write_text("""
#include <sys/sdt.h>
void _start(void) {
  DTRACE_PROBE(writable, hit);
  __asm__ volatile("syscall" : : "a"(231), "D"(0));
}
""")
    flags = ["-O1", "-nostdlib", "-static"]
    plain = run.build("plain", [source], flags)
    run.trace(f"usdt:{plain}:writable:hit", command=[plain]).check_accounted(1, lost=0)
    writable = run.build("writable", [source], [*flags, "-Wl,--omagic"])
    result = run.trace(f"usdt:{writable}:writable:hit", command=[writable])
    check(result.code not in (0, 2), f"exit code\n{result.describe()}")
    check("writable" in result.stderr.replace(str(writable), "") and "segment" in result.stderr, result.stderr)


if __name__ == "__main__":
    main()
