// SPDX-License-Identifier: BSD-2-Clause
#include "probed.hpp"

#include <bit>

namespace probed {

// The note of sys/sdt.h with argument text of our own, and no base: nothing here is prelinked.
#define SITE(name, args)                                \
  "990: nop\n"                                          \
  ".pushsection .note.stapsdt,\"\",@note\n"             \
  ".balign 4\n"                                         \
  ".4byte 992f-991f, 994f-993f, 3\n"                    \
  "991: .asciz \"stapsdt\"\n"                           \
  "992: .balign 4\n"                                    \
  "993: .8byte 990b, 0, 0\n"                            \
  ".asciz \"own\"\n.asciz \"" name "\"\n.asciz \"" args \
  "\"\n"                                                \
  "994: .balign 4\n"                                    \
  ".popsection\n"

struct Pair {
  int number;
  std::uint16_t word;
};

void mixed(const void* pointer, int number, std::uint16_t word, std::int8_t byte) {
  volatile Pair pair{number, word};
  asm volatile(SITE("mixed", "8@%%rdi -4@(%%rsi) 2@4(%%rsi) -4@$-7 -1@%%dl 8@%%xmm0")
               :
               : "D"(pointer), "S"(&pair), "d"(byte)
               : "memory");
}

void typed(const char* pointer, int number, std::uint16_t word) {
  asm volatile(SITE("typed", "8@%%rdi -4@%%esi 2@%%dx") : : "D"(pointer), "S"(number), "d"(word));
}

void partly(const char* pointer, std::uint16_t word) {
  asm volatile(SITE("partly", "8@%%rdi -4@%%xmm1 2@%%dx") : : "D"(pointer), "d"(word));
}

void memory(const std::uint64_t* number, const char* text) {
  asm volatile(SITE("memory", "8@(%%rdi) 8@%%rsi") : : "D"(number), "S"(text));
}

void floats(float narrow, double wide) {
  asm volatile(SITE("floats", "4f@%%edi 8f@%%rsi")
               :
               : "D"(std::bit_cast<std::uint32_t>(narrow)), "S"(std::bit_cast<std::uint64_t>(wide)));
}

}  // namespace probed
