/* SPDX-License-Identifier: BSD-2-Clause */
/* A site with twenty arguments, written by hand (sys/sdt.h stops at twelve): operands libbpf has a form for, one it got
 * with 1.7, and some nobody can read. Then prints the values it passed, `null` for those. x86-64, linked -no-pie. */
#include <stdio.h>

int counter = -77;
long numbers[24];

__attribute__((noipa)) static void pass(const long* m, long i, long a, long d) {
  __asm__ volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt, \"\", @note\n"
      ".balign 4\n"
      ".4byte 992f - 991f, 994f - 993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b, 0, 0\n"
      ".asciz \"twenty\"\n"
      ".asciz \"hit\"\n"
      ".asciz \"-4@$-9 8@%%rdx 1@%%ah -1@%%al -8@8(%%rdi) 8@%%xmm0 -8@(%%rdi,%%rsi,8) -4@counter(%%rip) 2@16(%%rdi) "
      "-8@numbers(,%%rsi,8) 16@%%rdi -2@%%si 4@$112 -4@$-113 8@%%rax -8@-8(%%rdi,%%rsi,8) 1@%%dl 4@24(%%rdi) 8@%%xmm1 "
      "-8@152(%%rdi)\"\n"
      "994: .balign 4\n"
      ".popsection"
      :
      : "D"(m), "S"(i), "a"(a), "d"(d)
      : "memory");
}

int main(void) {
  const long i = 2, a = 0x1280, d = -5;
  const long* m = numbers;

  for (int n = 0; n < 24; n++) numbers[n] = n % 2 ? -1000000007l * n : 1000000007l * n;
  pass(m, i, a, d);
  printf("[%d, %ld, %d, %d, %ld, null, %ld, %d, %u, %ld, null, %d, %u, %d, %ld, %ld, %u, %u, null, %ld]\n", -9, d,
         (unsigned char)(a >> 8), (signed char)a, m[1], m[i], counter, (unsigned short)m[2], numbers[i], (short)i, 112u,
         -113, a, m[i - 1], (unsigned char)d, (unsigned)m[3], m[19]);
  return 0;
}
