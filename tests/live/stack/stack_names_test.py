#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions that an address is not in are not named on stacks: code between functions, what signal handlers return to
where nothing describes it, code that took the place of other code. The programs are laid out by hand, so that it is known
where each address is."""

import itertools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402

# What is in front of code without a symbol: does the nearest symbol before it have that code?
CODE = """    push %rbp
    mov %rsp,%rbp
    call leaf@PLT
    pop %rbp
    ret
"""
GAPS = {
    "a_function_without_a_size_that_returned": ("before: ret\n .p2align 5\n{code}", None),
    "one_that_jumped_away": ("before: jmp elsewhere\n .p2align 4\n{code}", None),
    "one_with_a_branch_over_its_return": ("before: test %edi,%edi\n je 1f\n ret\n1:\n{code}", "before"),
    "one_with_a_loop_behind_which_it_ends": ("before: mov $2,%ecx\n1: dec %ecx\n jne 1b\n ret\n{code}", None),
    "one_that_goes_on": ("before: nop\n{code}", "before"),
    "one_with_a_size_behind_one_without":
        ("before: ret\n .p2align 4\n .globl sized\n .type sized,@function\nsized: ret\n .size sized,.-sized\n .p2align 4\n{code}", None),
    "one_whose_size_has_it": ("before: nop\n{code} .size before,.-before\n", "before"),
    "another_symbol_of_the_same_place_without_a_size":
        (".globl alias\n .type alias,@function\nalias:\nbefore: ret\n .size before,.-before\n .p2align 4\n{code}", None),
}
ASSEMBLY = """ .text
 .globl before
 .type before,@function
{text}
 .globl elsewhere
 .type elsewhere,@function
elsewhere: ret
 .size elsewhere,.-elsewhere
 .p2align 4
 .globl enter
 .type enter,@function
enter:
    push %rbp
    mov %rsp,%rbp
    call .Lanonymous
    pop %rbp
    ret
 .size enter,.-enter
 .section .note.GNU-stack,"",@progbits
"""
CALLER = """#include <sys/sdt.h>
__attribute__((noinline)) void leaf(int n) { DTRACE_PROBE1(gap, leaf, n); __asm__ volatile("" :: "r"(n)); }
void enter(int);
int main(void) { enter(7); return 0; }
"""


def stack_of(run, program, probe, *options):
    result = run.trace(f"usdt:{program}:{probe}", *options, command=[program])
    result.check_code(0)
    return result.events[-1]["ustack"]


@scenario
def code_between_functions_has_no_name(run):
    require_root()
    require_x86_64()
    (run.dir / "caller.c").write_text(CALLER)
    for (name, (text, wanted)), strip in itertools.product(GAPS.items(), (False, True)):
        source = run.dir / f"{name}.S"
        source.write_text(ASSEMBLY.format(text=text.format(code=".Lanonymous:\n" + CODE)))
        program = run.build(name, [run.dir / "caller.c", source], ["-O1", "-fno-omit-frame-pointer", "-rdynamic"])
        if strip:
            subprocess.run(["strip", program], check=True)  # what is left are the exported symbols
        for method in ("fp", "dwarf"):
            frame = stack_of(run, program, "gap:leaf", f"--ustack={method}")[1]
            check_equal(frame.get("function"), wanted, f"behind {name}, by {method}: {frame}")

@scenario
def a_frame_without_a_symbol_is_a_place_in_its_file(run):
    require_root()
    require_x86_64()
    (run.dir / "caller.c").write_text(CALLER)
    (run.dir / "gap.S").write_text(ASSEMBLY.format(text="before: ret\n .p2align 5\n.Lanonymous:\n" + CODE))
    program = run.build("gap", [run.dir / "caller.c", run.dir / "gap.S"], ["-O1", "-fno-omit-frame-pointer"])
    frame = stack_of(run, program, "gap:leaf", "--ustack=fp")[1]
    place = f"gap+{frame['file_offset']}"
    shown = subprocess.run([run.tool, f"usdt:{program}:gap:leaf", "--ustack=fp", "--", program], capture_output=True, text=True)
    check(re.search(rf"^    {re.escape(place)} <no symbol has this address> \(", shown.stdout, re.M), shown.stdout)
    folded = subprocess.run([run.tool, f"uprobe:{program}:leaf", "--folded", "--", program], capture_output=True, text=True)
    check(place + ";" in folded.stdout, folded.stdout)


SIGNALS = r"""#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <unistd.h>
/* As musl has it: no unwind information, and a symbol that strip takes away, behind one of another function. */
__asm__(".text\n .globl sized_nothing\n .type sized_nothing,@function\nsized_nothing: ret\n"
        " .p2align 4\n nop\n .local restore_rt\nrestore_rt: mov $15,%rax\n syscall\n");
void restore(void) __asm__("restore_rt");
static volatile int done;
__attribute__((noinline)) void handler(int n) { DTRACE_PROBE1(gap, handler, n); done = n; }
__attribute__((noinline)) void interrupted(void) { while (!done) __asm__ volatile(""); }
__attribute__((noinline)) void outer(void) { interrupted(); __asm__ volatile(""); }
struct action { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; };
int main(void) {
  struct action action = {handler, SA_RESTART | 0x04000000, restore, 0};
  syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, 8);
  alarm(1);
  outer();
  return 0;
}
"""


@scenario
def what_a_handler_returns_to_is_no_function_that_was_called(run):
    require_root()
    require_x86_64()
    (run.dir / "signals.c").write_text(SIGNALS)
    program = run.build("signals", [run.dir / "signals.c"], ["-O1", "-fno-omit-frame-pointer", "-rdynamic"])
    subprocess.run(["strip", program], check=True)
    names = [frame.get("function") for frame in stack_of(run, program, "gap:handler", "--ustack=dwarf")]
    check_equal(names[:5], ["handler", "<signal handler called>", "interrupted", "outer", "main"], "by its registers")
    frames = stack_of(run, program, "gap:handler", "--ustack=fp")
    names = [frame.get("function") for frame in frames]
    check_equal(names[:2], ["handler", "<signal handler called>"], "by frame pointers")
    check("callers may be missing" in frames[2].get("error", ""), f"that one is missing is said: {frames}")


PERF_MAP = r"""#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>
__attribute__((noinline)) long leaf(long x) { DTRACE_PROBE1(gap, jit, x); __asm__ volatile("" : "+r"(x)); return x; }
static void emit(unsigned char *p) {
  unsigned char c[] = {0x55,0x48,0x89,0xe5,0x48,0xb8,0,0,0,0,0,0,0,0,0xff,0xd0,0x5d,0xc3};
  uintptr_t f = (uintptr_t)leaf;
  memcpy(c + 6, &f, 8);
  memcpy(p, c, sizeof c);
}
int main(void) {
  unsigned char *m = mmap(0, 1 << 16, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  char name[64];
  sprintf(name, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(name, "w");
  for (int i = 0; i < 300; i++) fprintf(f, "%lx 40 js:old_%d\n", (long)m + 64 * i, i);
  fprintf(f, "%lx %x js:large\n%lx 40 js:newest\n", (long)m, 64 * 300, (long)m + 64 * 5);
  fflush(f);
  for (int i = 0; i < 300; i += 5) emit(m + 64 * i);
  for (int i = 0; i < 300; i += 5) ((long (*)(long))(m + 64 * i))(i);
  usleep(500000);
  fclose(f);
  unlink(name);
  return 0;
}
"""


@scenario
def code_that_took_the_place_of_other_code_has_its_own_name(run):
    require_root()
    require_x86_64()
    (run.dir / "jit.c").write_text(PERF_MAP)
    program = run.build("jit", [run.dir / "jit.c"], ["-O1"])
    result = run.trace(f"usdt:{program}:gap:jit", "--ustack", command=[program])
    result.check_code(0)
    check_equal(len(result.events), 60, "hits")
    for event in result.events:
        wanted = "js:newest" if event["args"][0] == 5 else "js:large"
        check_equal(event["ustack"][1].get("function"), wanted, f"who called leaf({event['args'][0]})")
        if wanted == "js:large":
            check_equal(event["ustack"][1]["offset"], 64 * event["args"][0] + 16, "how far from the beginning")


if __name__ == "__main__":
    main()
