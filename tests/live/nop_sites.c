/* SPDX-License-Identifier: BSD-2-Clause */
/* x86-64 functions that keep 16 locals in the red zone, the 128 bytes below the stack pointer a leaf function may use
 * without reserving them, across a probe site of each nop form. `nop_sites FORM ROUNDS [CHILDREN]` calls one of them
 * and prints in how many calls a local had changed; then it forks children, each of which calls it once more, and
 * prints how many of them a signal ended. The third local and the last (at -24 and -128) are arguments of the probe, as
 * clang likes to pass them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOTE(name)                                                                                                \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n" \
  "992: .balign 4\n993: .8byte 990b, _.stapsdt.base, 0\n.asciz \"nops\"\n.asciz \"" name                          \
  "\"\n"                                                                                                          \
  ".asciz \"8@%rdi 8@-24(%rsp) -8@-128(%rsp)\"\n994: .balign 4\n.popsection\n"

/* uint64_t NAME(uint64_t seed): the number of the 16 locals that no longer are seed + n at the end. */
/* clang-format off */
#define RED_ZONE_FUNCTION(name, site)                                                                       \
  __asm__(".text\n.globl " name "\n.type " name ",@function\n" name ":\n"                                   \
          ".set n, 0\n.rept 16\n lea n(%rdi), %rax\n mov %rax, -8-8*n(%rsp)\n .set n, n+1\n.endr\n"         \
          "990: " site "\n" NOTE(name) "xor %eax, %eax\n"                                                   \
          ".set n, 0\n.rept 16\n lea n(%rdi), %rcx\n xor %edx, %edx\n cmp %rcx, -8-8*n(%rsp)\n setne %dl\n" \
          " add %rdx, %rax\n .set n, n+1\n.endr\n ret\n.size " name ", .-" name "\n")
/* clang-format on */

__asm__(
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n"
    ".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection");

#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#define WIDE_NOP5 ".byte 0x66, 0x0f, 0x1f, 0x40, 0x00"
#define NOP10 ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00"
RED_ZONE_FUNCTION("plain", "nop");
RED_ZONE_FUNCTION("nop5", NOP5);
RED_ZONE_FUNCTION("wide_nop5", WIDE_NOP5);
RED_ZONE_FUNCTION("nop_nop5", "nop\n" NOP5);
RED_ZONE_FUNCTION("nop_nop10", "nop\n" NOP10);
RED_ZONE_FUNCTION("nop10", NOP10);
/* The same, but for what is below the stack pointer, which stands clear of the locals. */
RED_ZONE_FUNCTION("guarded_nop5", "lea -128(%rsp), %rsp\n990: " NOP5 "\nlea 128(%rsp), %rsp");

uint64_t plain(uint64_t seed);
uint64_t nop5(uint64_t seed);
uint64_t wide_nop5(uint64_t seed);
uint64_t nop_nop5(uint64_t seed);
uint64_t nop_nop10(uint64_t seed);
uint64_t nop10(uint64_t seed);
uint64_t guarded_nop5(uint64_t seed);

static const struct {
  const char* name;
  uint64_t (*function)(uint64_t seed);
} forms[] = {{"plain", plain},         {"nop5", nop5},   {"wide_nop5", wide_nop5},      {"nop_nop5", nop_nop5},
             {"nop_nop10", nop_nop10}, {"nop10", nop10}, {"guarded_nop5", guarded_nop5}};

static int dies_in_a_child(uint64_t (*function)(uint64_t seed)) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(function(1) != 0);
  return waitpid(child, &status, 0) != child || WIFSIGNALED(status);
}

int main(int argc, char** argv) {
  const uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  const int children = argc > 3 ? atoi(argv[3]) : 0;
  uint64_t corrupted = 0;
  int died = 0;

  for (size_t i = 0; argc > 1 && i < sizeof(forms) / sizeof(forms[0]); i++) {
    if (strcmp(argv[1], forms[i].name) != 0) continue;
    for (uint64_t round = 0; round < rounds; round++) corrupted += forms[i].function(round * 0x123456789) != 0;
    for (int child = 0; child < children; child++) died += dies_in_a_child(forms[i].function);
  }
  printf("%llu\n", (unsigned long long)corrupted);
  printf("%d\n", died);
  return 0;
}
