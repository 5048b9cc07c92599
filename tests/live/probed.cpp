// SPDX-License-Identifier: BSD-2-Clause
#include "probed.hpp"

#include <bit>

namespace probed {

#if defined(__x86_64__)
#define WORD ".8byte"
#define POINTER "8"
#elif defined(__i386__)
#define WORD ".4byte"
#define POINTER "4"
#elif defined(__aarch64__)
#define WORD ".8byte"
#else
#error "the probes of this machine are to be written"
#endif

// The note of sys/sdt.h with argument text of our own, and no base: nothing here is prelinked.
#define SITE(name, args)                                \
  "990: nop\n"                                          \
  ".pushsection .note.stapsdt,\"\",@note\n"             \
  ".balign 4\n"                                         \
  ".4byte 992f-991f, 994f-993f, 3\n"                    \
  "991: .asciz \"stapsdt\"\n"                           \
  "992: .balign 4\n"                                    \
  "993: " WORD                                          \
  " 990b, 0, 0\n"                                       \
  ".asciz \"own\"\n.asciz \"" name "\"\n.asciz \"" args \
  "\"\n"                                                \
  "994: .balign 4\n"                                    \
  ".popsection\n"

struct Pair {
  int number;
  std::uint16_t word;
};

#if defined(__aarch64__)

#define IN(type, name, which, value) register type name asm(which) = value

void mixed(const void* pointer, int number, std::uint16_t word, std::int8_t byte) {
  volatile Pair pair{number, word};
  IN(const void*, x0, "x0", pointer);
  IN(volatile Pair*, x1, "x1", &pair);
  IN(int, w2, "w2", byte);
  asm volatile(SITE("mixed", "8@x0 -4@[x1] 2@[x1, 4] -4@-7 -1@w2 8@d0") : : "r"(x0), "r"(x1), "r"(w2) : "memory");
}

void typed(const char* pointer, int number, std::uint16_t word) {
  IN(const char*, x0, "x0", pointer);
  IN(int, w1, "w1", number);
  IN(int, w2, "w2", word);
  asm volatile(SITE("typed", "8@x0 -4@w1 2@w2") : : "r"(x0), "r"(w1), "r"(w2));
}

void partly(const char* pointer, std::uint16_t word) {
  IN(const char*, x0, "x0", pointer);
  IN(int, w2, "w2", word);
  asm volatile(SITE("partly", "8@x0 -4@s1 2@w2") : : "r"(x0), "r"(w2));
}

void memory(const std::uint64_t* number, const char* text) {
  IN(const std::uint64_t*, x0, "x0", number);
  IN(const char*, x1, "x1", text);
  asm volatile(SITE("memory", "8@[x0] 8@x1") : : "r"(x0), "r"(x1));
}

void floats(float narrow, double wide) {
  IN(std::uint32_t, w0, "w0", std::bit_cast<std::uint32_t>(narrow));
  IN(std::uint64_t, x1, "x1", std::bit_cast<std::uint64_t>(wide));
  asm volatile(SITE("floats", "4f@w0 8f@x1") : : "r"(w0), "r"(x1));
}

void twelve(const int* numbers) {
  IN(const int*, x0, "x0", numbers);
  asm volatile(SITE("twelve",
                    "-4@[x0, 0] -4@[x0, 4] -4@[x0, 8] -4@[x0, 12] -4@[x0, 16] -4@[x0, 20] -4@[x0, 24] -4@[x0, 28] "
                    "-4@[x0, 32] -4@[x0, 36] -4@[x0, 40] -4@[x0, 44]")
               :
               : "r"(x0)
               : "memory");
}

#else  // x86

#ifdef __i386__
#define R "e"
#else
#define R "r"
#endif
#define DI "%%" R "di"
#define SI "%%" R "si"

void mixed(const void* pointer, int number, std::uint16_t word, std::int8_t byte) {
  volatile Pair pair{number, word};
  asm volatile(SITE("mixed", POINTER "@" DI " -4@(" SI ") 2@4(" SI ") -4@$-7 -1@%%dl 8@%%xmm0")
               :
               : "D"(pointer), "S"(&pair), "d"(byte)
               : "memory");
}

void typed(const char* pointer, int number, std::uint16_t word) {
  asm volatile(SITE("typed", POINTER "@" DI " -4@%%esi 2@%%dx") : : "D"(pointer), "S"(number), "d"(word));
}

void partly(const char* pointer, std::uint16_t word) {
  asm volatile(SITE("partly", POINTER "@" DI " -4@%%xmm1 2@%%dx") : : "D"(pointer), "d"(word));
}

void memory(const std::uint64_t* number, const char* text) {
  asm volatile(SITE("memory", "8@(" DI ") " POINTER "@" SI) : : "D"(number), "S"(text));
}

void floats(float narrow, double wide) {
#ifdef __i386__  // no register holds a double
  asm volatile(SITE("floats", "4f@%%edi 8f@(%%esi)")
               :
               : "D"(std::bit_cast<std::uint32_t>(narrow)), "S"(&wide), "m"(wide));
#else
  asm volatile(SITE("floats", "4f@%%edi 8f@%%rsi")
               :
               : "D"(std::bit_cast<std::uint32_t>(narrow)), "S"(std::bit_cast<std::uint64_t>(wide)));
#endif
}

void twelve(const int* numbers) {
  asm volatile(SITE("twelve", "-4@0(" DI ") -4@4(" DI ") -4@8(" DI ") -4@12(" DI ") -4@16(" DI ") -4@20(" DI
                              ") -4@24(" DI ") -4@28(" DI ") -4@32(" DI ") -4@36(" DI ") -4@40(" DI ") -4@44(" DI ")")
               :
               : "D"(numbers)
               : "memory");
}

#endif

}  // namespace probed
