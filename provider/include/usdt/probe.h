/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) for C11 and C++20 programs, in one file without dependencies, for x86-64, i386 and arm64; tried
 * with gcc 12 and clang 14, GNU ld 2.40 and lld 14.
 *
 *   USDT_PROBE(provider, name, arguments...)        A site in place: one nop. Its arguments are evaluated always.
 *   USDT_PROBE_LAZY(provider, name, arguments...)   A site behind a semaphore: while nobody traces the probe, nothing
 *                                                   is evaluated, for three instructions.
 *   USDT_PROBE_STUB(provider, name, arguments...)   As LAZY, and the site is in a function of its own, one for all
 *                                                   places of a probe with equal types. The fastest to trace.
 *   USDT_PROBE_ENABLED(provider, name)              1 while somebody traces a LAZY or STUB probe of that name, else 0.
 *   USDT_PROBE_DECLARE(provider, name, "...");      At file scope: names, meanings and units of the arguments, as in
 *                                                   "sql:string, rows, took:duration[us]" (docs/provider-note.md).
 *
 * Provider and name are identifiers; `__` in them is a mere convention. There are 0 to 12 arguments:
 *   integers, characters, bool, enums   with their own size and sign (an enum's are those of its underlying type)
 *   float, double                       their bits, as an unsigned number
 *   pointers, arrays, functions         the address
 *   C++: whatever has data() and size() two arguments, the address and the number of bytes: std::string, string_view,
 *                                       span, vector, array
 * Anything else is refused where it is compiled, with the reason.
 *
 * Every site is described by a `.note.stapsdt` note, version 3, which GDB, SystemTap, perf, bcc, bpftrace and libbpf
 * read, and by a note of our own, which no program loads: types of the arguments, their text in the source, file and
 * line (docs/provider-note.md).
 *
 * Define before the include, for all of a program or for one file:
 *   USDT_PROBE_DISABLE          compiles every probe out: nothing is evaluated, nothing is emitted
 *   USDT_PROBE_NO_DESCRIPTION   leaves out the note of our own
 *   USDT_PROBE_NO_LINK_ORDER    for `ld -r` of GNU ld over objects with and without these notes: it cannot join
 *                               sections that are tied to their code (SHF_LINK_ORDER) with others. Without the tie a
 *                               linker that removes the code of a site may keep its note.
 * Not for -masm=intel, which changes the text of operands.
 */
#ifndef USDT_PROBE_H
#define USDT_PROBE_H

#pragma GCC system_header /* statement expressions, and macros called without variable arguments */

#define USDTP_STR_(x) #x
#define USDTP_STR(x) USDTP_STR_(x)
#define USDTP_CAT_(a, b) a##b
#define USDTP_CAT(a, b) USDTP_CAT_(a, b)

/* How many arguments there are: 0 to 12, or MANY for more. */
#define USDTP_COUNT(...)                                                                                             \
  USDTP_COUNT_(0 __VA_OPT__(, ) __VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
               12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define USDTP_COUNT_(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, \
                     _21, _22, _23, _24, count, ...)                                                                \
  count

#ifdef USDT_PROBE_DISABLE

/* The arguments are still compiled, so that mistakes in them are found, but never evaluated. */
#define USDT_PROBE(provider, name, ...) USDTP_NOTHING(__VA_ARGS__)
#define USDT_PROBE_LAZY(provider, name, ...) USDTP_NOTHING(__VA_ARGS__)
#define USDT_PROBE_STUB(provider, name, ...) USDTP_NOTHING(__VA_ARGS__)
#define USDT_PROBE_ENABLED(provider, name) 0
#ifdef __cplusplus
#define USDT_PROBE_DECLARE(provider, name, description) static_assert(true, "")
#else
#define USDT_PROBE_DECLARE(provider, name, description) _Static_assert(1, "")
#endif
#define USDTP_NOTHING(...)                                             \
  do {                                                                 \
    if (0) {                                                           \
      USDTP_CAT(USDTP_NOTHING_, USDTP_COUNT(__VA_ARGS__))(__VA_ARGS__) \
    }                                                                  \
  } while (0)
#define USDTP_NOTHING_MANY(...)
#define USDTP_NOTHING_0()
#define USDTP_NOTHING_1(a) (void)(a);
#define USDTP_NOTHING_2(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_1(__VA_ARGS__)
#define USDTP_NOTHING_3(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_2(__VA_ARGS__)
#define USDTP_NOTHING_4(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_3(__VA_ARGS__)
#define USDTP_NOTHING_5(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_4(__VA_ARGS__)
#define USDTP_NOTHING_6(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_5(__VA_ARGS__)
#define USDTP_NOTHING_7(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_6(__VA_ARGS__)
#define USDTP_NOTHING_8(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_7(__VA_ARGS__)
#define USDTP_NOTHING_9(a, ...) \
  (void)(a);                    \
  USDTP_NOTHING_8(__VA_ARGS__)
#define USDTP_NOTHING_10(a, ...) \
  (void)(a);                     \
  USDTP_NOTHING_9(__VA_ARGS__)
#define USDTP_NOTHING_11(a, ...) \
  (void)(a);                     \
  USDTP_NOTHING_10(__VA_ARGS__)
#define USDTP_NOTHING_12(a, ...) \
  (void)(a);                     \
  USDTP_NOTHING_11(__VA_ARGS__)

#else /* !USDT_PROBE_DISABLE */

#if !defined __ELF__
#error "<usdt/probe.h> is for ELF files; USDT_PROBE_DISABLE compiles the probes out"
#endif

/* ---- The machine ------------------------------------------------------------------------------------------------ */

/*
 * USDTP_CONSTRAINT, USDTP_HOLD: how an argument reaches a site in place. Never as memory named by a symbol
 * (`-4@counter(%rip)`), which tracers cannot find: in a register or as a constant. i386 has too few registers for that,
 * and none for 8 bytes: there it is a variable on the stack, which `volatile` keeps from becoming a constant in memory.
 * Registers are named in full, as they are on arm64 anyway: GDB does not know `%r12b`, and the size stands before them.
 *
 * USDTP_STUB_NOPS: the body of a stub. The note names the first nop, which every kernel takes. Linux 7.2 turns the
 * 10-byte nop behind it into a call. There is no 5-byte nop, of which Linux 6.18 makes a call: children that a traced
 * process forks inherit the call and not the code that it leads to, and die of it.
 */
#if defined __x86_64__ && defined __LP64__
#define USDTP_ADDRESS ".8byte"
#define USDTP_CONSTRAINT "nr"
#define USDTP_HOLD
#define USDTP_WHOLE "q"
#define USDTP_RELOC_NONE "R_X86_64_NONE"
#define USDTP_STUB_ENTRY "endbr64\n"
#define USDTP_STUB_NOPS "nop\n.byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\nret\n"
#define USDTP_ADDRESS_OF_STUB(symbol) "leaq " symbol "(%%rip), %[stub]\n"
#define USDTP_ENABLED_VARIABLES int usdtp_enabled;
#define USDTP_ENABLED_OUTPUTS(variable) "=@ccne"(variable)
#define USDTP_READ_SEMAPHORE(symbol) "cmpw $0, " symbol "(%%rip)\n"
#define USDTP_AT_1 "%%rdi"
#define USDTP_AT_2 "%%rsi"
#define USDTP_AT_3 "%%rdx"
#define USDTP_AT_4 "%%rcx"
#define USDTP_AT_5 "%%r8"
#define USDTP_AT_6 "%%r9"
#define USDTP_AT_7 "8(%%rsp)"
#define USDTP_AT_8 "16(%%rsp)"
#define USDTP_AT_9 "24(%%rsp)"
#define USDTP_AT_10 "32(%%rsp)"
#define USDTP_AT_11 "40(%%rsp)"
#define USDTP_AT_12 "48(%%rsp)"
#elif defined __i386__
#define USDTP_ADDRESS ".4byte"
#define USDTP_CONSTRAINT "m"
#define USDTP_HOLD volatile
#define USDTP_WHOLE ""
#define USDTP_RELOC_NONE "R_386_NONE"
#define USDTP_STUB_ENTRY "endbr32\n"
#define USDTP_STUB_NOPS "nop\nret\n"
/* Relative to the code, as position-independent code has to be. */
#define USDTP_ADDRESS_OF_STUB(symbol) "call 9905f\n9905: popl %[stub]\naddl $" symbol "-9905b, %[stub]\n"
#ifdef __PIC__
#define USDTP_ENABLED_VARIABLES \
  int usdtp_enabled;            \
  void* usdtp_here;
#define USDTP_ENABLED_OUTPUTS(variable) "=@ccne"(variable), [here] "=&r"(usdtp_here)
#define USDTP_READ_SEMAPHORE(symbol) "call 9906f\n9906: popl %[here]\ncmpw $0, " symbol "-9906b(%[here])\n"
#else
#define USDTP_ENABLED_VARIABLES int usdtp_enabled;
#define USDTP_ENABLED_OUTPUTS(variable) "=@ccne"(variable)
#define USDTP_READ_SEMAPHORE(symbol) "cmpw $0, " symbol "\n"
#endif
#define USDTP_AT_1 "4(%%esp)"
#define USDTP_AT_2 "12(%%esp)"
#define USDTP_AT_3 "20(%%esp)"
#define USDTP_AT_4 "28(%%esp)"
#define USDTP_AT_5 "36(%%esp)"
#define USDTP_AT_6 "44(%%esp)"
#define USDTP_AT_7 "52(%%esp)"
#define USDTP_AT_8 "60(%%esp)"
#define USDTP_AT_9 "68(%%esp)"
#define USDTP_AT_10 "76(%%esp)"
#define USDTP_AT_11 "84(%%esp)"
#define USDTP_AT_12 "92(%%esp)"
#elif defined __aarch64__ && defined __LP64__ && !defined __AARCH64EB__
#define USDTP_ADDRESS ".8byte"
#define USDTP_CONSTRAINT "nr"
#define USDTP_HOLD
#define USDTP_WHOLE ""
#define USDTP_RELOC_NONE "R_AARCH64_NONE"
#define USDTP_STUB_ENTRY "hint #34\n" /* bti c */
#define USDTP_STUB_NOPS "nop\nret\n"
#define USDTP_ADDRESS_OF_STUB(symbol) "adrp %[stub], " symbol "\nadd %[stub], %[stub], :lo12:" symbol "\n"
#define USDTP_ENABLED_VARIABLES unsigned long usdtp_enabled;
#define USDTP_ENABLED_OUTPUTS(variable) [enabled] "=r"(variable)
#define USDTP_READ_SEMAPHORE(symbol) "adrp %[enabled], " symbol "\nldrh %w[enabled], [%[enabled], :lo12:" symbol "]\n"
#define USDTP_AT_1 "x0"
#define USDTP_AT_2 "x1"
#define USDTP_AT_3 "x2"
#define USDTP_AT_4 "x3"
#define USDTP_AT_5 "x4"
#define USDTP_AT_6 "x5"
#define USDTP_AT_7 "x6"
#define USDTP_AT_8 "x7"
#define USDTP_AT_9 "[sp]"
#define USDTP_AT_10 "[sp, 8]"
#define USDTP_AT_11 "[sp, 16]"
#define USDTP_AT_12 "[sp, 24]"
#else
#error "<usdt/probe.h> knows x86-64, i386 and arm64; USDT_PROBE_DISABLE compiles the probes out"
#endif

/* ---- The notes --------------------------------------------------------------------------------------------------- */

/* `inline` makes it count as one instruction: by its lines an inliner would take a site for a large piece of code. */
#define USDTP_ASM __asm__ __volatile__ __inline__

/*
 * A section of notes that lives and dies with the code of its site: "?" puts it into the code's COMDAT group, "o" and
 * the label tie it to the code's section, so that no linker keeps the one without the other.
 */
#ifdef USDT_PROBE_NO_LINK_ORDER
#define USDTP_SECTION(section, label) ".pushsection " section ",\"?\",\"note\"\n"
#else
#define USDTP_SECTION(section, label) ".pushsection " section ",\"?o\",\"note\"," label "\n"
#endif

/* clang-format off */
/* A reader compares this section's address with the note's word to see how far a prelinked file was moved. */
#define USDTP_BASE                                                        \
  ".ifndef _.stapsdt.base\n"                                              \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n"                                                \
  ".hidden _.stapsdt.base\n"                                              \
  "_.stapsdt.base: .space 1\n"                                            \
  ".size _.stapsdt.base, 1\n"                                             \
  ".popsection\n"                                                         \
  ".endif\n"

/*
 * A counter of tracers, which the kernel keeps; one in each program and library. Counters start on a page of the file
 * of their own: lld lets the end of the read-only data (RELRO) and the beginning of .data share one. That page is then
 * mapped twice, both writable while the program starts, and the kernel would count in the wrong copy.
 */
#define USDTP_SEMAPHORE(symbol)                                                              \
  ".ifndef usdt.probe.semaphores\n"                                                          \
  ".pushsection .probes,\"awG\",\"progbits\",usdt.probe.semaphores,comdat\n"                 \
  ".weak usdt.probe.semaphores\n"                                                            \
  ".hidden usdt.probe.semaphores\n"                                                          \
  ".balign 4096\n"                                                                           \
  "usdt.probe.semaphores: .space 2\n"                                                        \
  ".popsection\n"                                                                            \
  ".endif\n"                                                                                 \
  ".ifndef " symbol "\n"                                                                     \
  ".pushsection .probes,\"awG\",\"progbits\"," symbol ",comdat\n"                            \
  ".weak " symbol "\n"                                                                       \
  ".hidden " symbol "\n"                                                                     \
  ".balign 2\n"                                                                              \
  ".type " symbol ", %%object\n"                                                             \
  ".size " symbol ", 2\n"                                                                     \
  symbol ": .reloc ., " USDTP_RELOC_NONE ", usdt.probe.semaphores\n"                          \
  ".space 2\n"                                                                               \
  ".popsection\n"                                                                            \
  ".endif\n"

/*
 * Linkers that fold identical functions (--icf) must not take sites of two probes for one. Bytes cannot tell them
 * apart; a relocation that changes nothing does.
 */
#define USDTP_IDENTITY(provider, name)         \
  ".weak usdt.probe." provider "." name "\n"   \
  ".hidden usdt.probe." provider "." name "\n" \
  ".reloc ., " USDTP_RELOC_NONE ", usdt.probe." provider "." name "\n"

/* Version 3 of the note that sys/sdt.h of SystemTap introduced. */
#define USDTP_STAPSDT(provider, name, semaphore, label, arguments)     \
  USDTP_SECTION(".note.stapsdt", label)                                \
  ".balign 4\n"                                                        \
  ".4byte 9902f-9901f, 9904f-9903f, 3\n"                               \
  "9901: .asciz \"stapsdt\"\n"                                         \
  "9902: .balign 4\n"                                                  \
  "9903: " USDTP_ADDRESS " " label ", _.stapsdt.base, " semaphore "\n" \
  ".asciz \"" provider "\"\n"                                          \
  ".asciz \"" name "\"\n"                                              \
  ".asciz \"" arguments "\"\n"                                         \
  "9904: .balign 4\n"                                                  \
  ".popsection\n"

#define USDTP_LABEL ".Lusdt_probe_%="

/*
 * The note of our own. Its strings may have any character, and those of an asm with operands may not ('%', braces): a
 * macro of the assembler, defined by an asm without operands just before, carries them.
 */
#ifdef USDT_PROBE_NO_DESCRIPTION
#define USDTP_TEXT(probe)
#define USDTP_DESCRIPTION(label)
#define USDT_PROBE_DECLARE(provider, name, description) USDTP_STATIC_ASSERT(1, "")
#else
#define USDTP_TEXT(probe)                             \
  USDTP_ASM(                                          \
      ".ifndef .Lusdt_probe_text\n"                   \
      ".set .Lusdt_probe_text, 0\n"                   \
      ".endif\n"                                      \
      ".if .Lusdt_probe_text\n"                       \
      ".purgem usdt_probe_text\n"                     \
      ".endif\n"                                      \
      ".macro usdt_probe_text\n"                      \
      ".asciz " USDTP_STR(__FILE__) "\n"              \
      ".asciz " USDTP_TEXT_OF probe "\n"              \
      ".endm\n"                                       \
      ".set .Lusdt_probe_text, 1\n");
#define USDTP_DESCRIPTION(label)                      \
  USDTP_SECTION(".note.usdt", label)                  \
  ".balign 4\n"                                       \
  ".4byte 9912f-9911f, 9914f-9913f, 1\n"              \
  "9911: .asciz \"usdt\"\n"                           \
  "9912: .balign 4\n"                                 \
  "9913: " USDTP_ADDRESS " " label "\n"               \
  ".4byte " USDTP_STR(__LINE__) ", %c[codes0], %c[codes1], %c[codes2]\n" \
  "usdt_probe_text\n"                                 \
  "9914: .balign 4\n"                                 \
  ".popsection\n"
#define USDT_PROBE_DECLARE(provider, name, description) \
  __asm__(".pushsection .note.usdt.probes,\"\",\"note\"\n" \
          ".balign 4\n"                                \
          ".4byte 9912f-9911f, 9914f-9913f, 2\n"       \
          "9911: .asciz \"usdt\"\n"                    \
          "9912: .balign 4\n"                          \
          "9913: .asciz \"" #provider "\"\n"           \
          ".asciz \"" #name "\"\n"                     \
          ".asciz " USDTP_STR(description) "\n"        \
          "9914: .balign 4\n"                          \
          ".popsection\n")
#endif
/* clang-format on */

/* ---- What an argument is ---------------------------------------------------------------------------------------- */

/* The type of an argument as its note has it (docs/provider-note.md); with USDTP_ENUM added, an enum of that type. */
enum usdtp_type {
  USDTP_BOOL = 1,
  USDTP_CHAR,
  USDTP_SIGNED_CHAR,
  USDTP_UNSIGNED_CHAR,
  USDTP_SHORT,
  USDTP_UNSIGNED_SHORT,
  USDTP_INT,
  USDTP_UNSIGNED_INT,
  USDTP_LONG,
  USDTP_UNSIGNED_LONG,
  USDTP_LONG_LONG,
  USDTP_UNSIGNED_LONG_LONG,
  USDTP_FLOAT,
  USDTP_DOUBLE,
  USDTP_CHAR8,
  USDTP_CHAR16,
  USDTP_CHAR32,
  USDTP_WCHAR,
  USDTP_POINTER,
  USDTP_CONST_POINTER,
  USDTP_STRING,       /* char *: characters up to a NUL */
  USDTP_CONST_STRING, /* const char * */
  USDTP_TEXT,         /* address of as many characters as the next argument says */
  USDTP_BYTES,        /* address of as many other bytes as the next argument says */
  USDTP_LENGTH,       /* how many bytes there are at the address that the argument before is */
  USDTP_ENUM = 64
};

#ifdef __cplusplus
#define USDTP_STATIC_ASSERT static_assert
typedef unsigned long long usdtp_slot;

namespace usdtp {

typedef __SIZE_TYPE__ size;

template <int kCode, bool kSigned>
struct Number {
  static constexpr int code = kCode;
  static constexpr bool is_signed = kSigned;
};

/* The code and the sign of a type. A type that is not listed has code 0, and cannot be passed. */
template <class T>
struct Type : Number<0, false> {};
template <class T>
struct Type<const T> : Type<T> {};
template <class T>
struct Type<volatile T> : Type<T> {};
template <class T>
struct Type<const volatile T> : Type<T> {};
template <>
struct Type<bool> : Number<USDTP_BOOL, false> {};
template <>
struct Type<char> : Number<USDTP_CHAR, (static_cast<char>(-1) < 0)> {};
template <>
struct Type<signed char> : Number<USDTP_SIGNED_CHAR, true> {};
template <>
struct Type<unsigned char> : Number<USDTP_UNSIGNED_CHAR, false> {};
template <>
struct Type<short> : Number<USDTP_SHORT, true> {};
template <>
struct Type<unsigned short> : Number<USDTP_UNSIGNED_SHORT, false> {};
template <>
struct Type<int> : Number<USDTP_INT, true> {};
template <>
struct Type<unsigned int> : Number<USDTP_UNSIGNED_INT, false> {};
template <>
struct Type<long> : Number<USDTP_LONG, true> {};
template <>
struct Type<unsigned long> : Number<USDTP_UNSIGNED_LONG, false> {};
template <>
struct Type<long long> : Number<USDTP_LONG_LONG, true> {};
template <>
struct Type<unsigned long long> : Number<USDTP_UNSIGNED_LONG_LONG, false> {};
template <>
struct Type<float> : Number<USDTP_FLOAT, false> {};
template <>
struct Type<double> : Number<USDTP_DOUBLE, false> {};
#ifdef __cpp_char8_t
template <>
struct Type<char8_t> : Number<USDTP_CHAR8, false> {};
#endif
template <>
struct Type<char16_t> : Number<USDTP_CHAR16, false> {};
template <>
struct Type<char32_t> : Number<USDTP_CHAR32, false> {};
template <>
struct Type<wchar_t> : Number<USDTP_WCHAR, (static_cast<wchar_t>(-1) < 0)> {};
template <>
struct Type<decltype(nullptr)> : Number<USDTP_POINTER, false> {};
template <class T>
struct Type<T*> : Number<USDTP_POINTER, false> {};
template <class T>
struct Type<const T*> : Number<USDTP_CONST_POINTER, false> {};
template <>
struct Type<char*> : Number<USDTP_STRING, false> {};
template <>
struct Type<const char*> : Number<USDTP_CONST_STRING, false> {};

template <class T, bool kEnum = __is_enum(T)>
struct Scalar : Type<T> {};
template <class T>
struct Scalar<T, true> {
  using Underlying = Type<__underlying_type(T)>;
  static constexpr int code = Underlying::code | USDTP_ENUM;
  static constexpr bool is_signed = Underlying::is_signed;
};

template <size kSize>
struct Bits;
template <>
struct Bits<1> {
  using type = unsigned char;
};
template <>
struct Bits<2> {
  using type = unsigned short;
};
template <>
struct Bits<4> {
  using type = unsigned int;
};
template <>
struct Bits<8> {
  using type = unsigned long long;
};

/* One operand of a site: the bits of its value, the code of its type, and its size, negative if it is signed. */
template <class T, int kCode, bool kSigned>
struct Operand {
  typename Bits<sizeof(T)>::type bits;
  static constexpr int code = kCode;
  static constexpr int size = kSigned ? -static_cast<int>(sizeof(T)) : static_cast<int>(sizeof(T));
};

template <int kCode, bool kSigned, class T>
[[gnu::always_inline]] inline Operand<T, kCode, kSigned> operand(const T& value) {
  Operand<T, kCode, kSigned> made{};
  __builtin_memcpy(&made.bits, &value, sizeof value);
  return made;
}

/* All operands of a site, as a list: the first one and the others. */
struct None {
  static constexpr int count = 0;
};
template <class First, class Others>
struct Some {
  First first;
  Others others;
  static constexpr int count = 1 + Others::count;
};

template <class P>
inline constexpr int count_of = 0;
template <class P>
inline constexpr int count_of<const P> = P::count;

/* Operand `i` of a list, counted from 1. Behind the last one there is a zero, for branches that are compiled and never
 * taken. */
template <int i, class P>
struct Nth {
  using Type = Operand<int, 0, true>;
  [[gnu::always_inline]] static unsigned of(const P&) { return 0; }
};
template <int i, class First, class Others>
requires(i > 1) struct Nth<i, Some<First, Others> > {
  using Type = typename Nth<i - 1, Others>::Type;
  [[gnu::always_inline]] static auto of(const Some<First, Others>& all) { return Nth<i - 1, Others>::of(all.others); }
};
template <class First, class Others>
struct Nth<1, Some<First, Others> > {
  using Type = First;
  [[gnu::always_inline]] static auto of(const Some<First, Others>& all) { return all.first.bits; }
};
template <int i, class P>
inline constexpr int size_of = 0;
template <int i, class P>
inline constexpr int size_of<i, const P> = Nth<i, P>::Type::size;
template <int i, class P>
inline constexpr int code_of = 0;
template <int i, class P>
inline constexpr int code_of<i, const P> = Nth<i, P>::Type::code;
template <int word, class P>
inline constexpr int codes_of = code_of<word * 4 + 1, P> | code_of<word * 4 + 2, P> << 8 |
                                code_of<word * 4 + 3, P> << 16 | code_of<word * 4 + 4, P> << 24;
template <int i, class P>
[[gnu::always_inline]] inline auto word_of(const P& all) {
  return Nth<i, P>::of(all);
}

template <class T>
struct Element {
  static constexpr bool known = false;
};
template <class T>
struct Element<T*> {
  static constexpr bool known = true;
  static constexpr size bytes = sizeof(T);
  static constexpr int code = USDTP_BYTES;
};
template <class T>
struct Element<const T*> : Element<T*> {};
template <class T>
struct Element<volatile T*> : Element<T*> {};
template <>
struct Element<void*> {
  static constexpr bool known = false;
};
template <>
struct Element<char*> {
  static constexpr bool known = true;
  static constexpr size bytes = 1;
  static constexpr int code = USDTP_TEXT;
};
#ifdef __cpp_char8_t
template <>
struct Element<char8_t*> : Element<char*> {};
#endif

template <class T>
concept View = Element<decltype(static_cast<const T*>(nullptr)->data())>::known && requires(const T& view) {
  static_cast<size>(view.size());
};

[[gnu::always_inline]] inline None pack() { return {}; }
template <class T, class... Others>
[[gnu::always_inline]] inline auto pack(const T& value, const Others&... others);

template <class T, class... Others>
[[gnu::always_inline]] inline auto pack_value(T value, const Others&... others) {
  using Of = Scalar<T>;
  return Some<Operand<T, Of::code, Of::is_signed>, decltype(pack(others...))>{operand<Of::code, Of::is_signed>(value),
                                                                              pack(others...)};
}

template <class T, class... Others>
[[gnu::always_inline]] inline auto pack_view(const T& view, const Others&... others) {
  using Pointer = decltype(view.data());
  const Pointer data = view.data();
  const size bytes = static_cast<size>(view.size()) * Element<Pointer>::bytes;
  using Length = Some<Operand<size, USDTP_LENGTH, false>, decltype(pack(others...))>;
  return Some<Operand<Pointer, Element<Pointer>::code, false>, Length>{
      operand<Element<Pointer>::code, false>(data), Length{operand<USDTP_LENGTH, false>(bytes), pack(others...)}};
}

/* The type that a value is passed as: an array, which comes as a reference to const, becomes a pointer. */
template <class T>
struct Decayed {
  using type = T;
};
template <class T, size n>
struct Decayed<T[n]> {
  using type = const T*;
};
template <class T>
struct Decayed<T[]> {
  using type = const T*;
};
template <class R, class... A>
struct Decayed<R(A...)> {
  using type = R (*)(A...);
};

template <class T>
struct Unqualified {
  using type = T;
};
template <class T>
struct Unqualified<volatile T> {
  using type = T;
};

template <class T>
using Passed = typename Unqualified<typename Decayed<T>::type>::type;
template <class T>
inline constexpr bool can_be_passed = (Scalar<T>::code & ~USDTP_ENUM) != 0;

template <class T, class... Others>
[[gnu::always_inline]] inline auto pack(const T& value, const Others&... others) {
  if constexpr (View<T>) {
    return pack_view(value, others...);
  } else if constexpr (can_be_passed<Passed<T> >) {
    return pack_value<Passed<T> >(value, others...);
  } else {
    static_assert(can_be_passed<Passed<T> >,
                  "this cannot be an argument of a USDT probe: pass an integer, a bool, an enum, a float or double, a "
                  "pointer, or what has data() and size(); of a struct or class its members, or its address");
    return pack(others...);
  }
}

}  // namespace usdtp

#define USDTP_TAKE(i, x) const auto& usdtp_a##i = (x);
#define USDTP_SLOT(i) USDTP_HOLD auto usdtp_w##i = ::usdtp::word_of<i>(usdtp_p);
#define USDTP_SIZE(i) (::usdtp::size_of<i, decltype(usdtp_p)>)
#define USDTP_CODES(n, word) (::usdtp::codes_of<word, decltype(usdtp_p)>)

#define USDTP_BRANCH(n, emit, probe)                         \
  if constexpr (::usdtp::count_of<decltype(usdtp_p)> == n) { \
    USDTP_SLOTS_##n emit(n, probe)                           \
  }
#define USDTP_RUN(n, emit, probe, arguments)                                                                 \
  do {                                                                                                       \
    USDTP_CAT(USDTP_TAKE_, n) arguments const auto usdtp_p = ::usdtp::pack(USDTP_CAT(USDTP_TAKEN_, n));      \
    static_assert(::usdtp::count_of<decltype(usdtp_p)> <= 12,                                                \
                  "a USDT probe takes at most 12 arguments, and what has data() and size() is two of them"); \
    USDTP_CAT(USDTP_BRANCHES_, n)(emit, probe)                                                               \
  } while (0)

#else /* C */

#define USDTP_STATIC_ASSERT _Static_assert
__extension__ typedef unsigned long long usdtp_slot;

#define USDTP_CODE(i) \
  _Generic(usdtp_a##i, _Bool: USDTP_BOOL, char: USDTP_CHAR, signed char: USDTP_SIGNED_CHAR,                          \
           unsigned char: USDTP_UNSIGNED_CHAR, short: USDTP_SHORT, unsigned short: USDTP_UNSIGNED_SHORT,             \
           int: USDTP_INT, unsigned int: USDTP_UNSIGNED_INT, long: USDTP_LONG, unsigned long: USDTP_UNSIGNED_LONG,   \
           long long: USDTP_LONG_LONG, unsigned long long: USDTP_UNSIGNED_LONG_LONG, float: USDTP_FLOAT,             \
           double: USDTP_DOUBLE, char*: USDTP_STRING, const char*: USDTP_CONST_STRING, void*: USDTP_POINTER,         \
           const void*: USDTP_CONST_POINTER, default: USDTP_IS_POINTER(usdtp_a##i) ? USDTP_POINTER : 0)
#define USDTP_IS_POINTER(x) (__builtin_classify_type(x) == 5)
#define USDTP_IS_SIGNED(x) \
  _Generic(x, char : (char)-1 < 0, signed char : 1, short : 1, int : 1, long : 1, long long : 1, default : 0)
#define USDTP_SIZE(i) (USDTP_IS_SIGNED(usdtp_a##i) ? -(int)sizeof usdtp_a##i : (int)sizeof usdtp_a##i)
#define USDTP_CODES(n, word) USDTP_CODES_##n(word)

/* The unsigned integer type that has the size of `x`. */
#define USDTP_BITS(x)                                                                       \
  __typeof__(__builtin_choose_expr(sizeof(x) == 1, (unsigned char)0,                        \
                                   __builtin_choose_expr(sizeof(x) == 2, (unsigned short)0, \
                                                         __builtin_choose_expr(sizeof(x) == 4, 0U, (usdtp_slot)0))))
#define USDTP_TAKE(i, x)                                                                                            \
  __extension__ __auto_type usdtp_a##i = (x);                                                                       \
  _Static_assert(USDTP_CODE(i) != 0, "argument " #i " cannot be one of a USDT probe: pass an integer, a bool, an "  \
                                     "enum, a float or double, or a pointer; of a struct or union its members, or " \
                                     "its address");
#define USDTP_SLOT(i)                                            \
  USDTP_BITS(usdtp_a##i) usdtp_b##i = 0;                         \
  __builtin_memcpy(&usdtp_b##i, &usdtp_a##i, sizeof usdtp_b##i); \
  USDTP_HOLD USDTP_BITS(usdtp_a##i) usdtp_w##i = usdtp_b##i;
#define USDTP_RUN(n, emit, probe, arguments)                                      \
  do {                                                                            \
    USDTP_CAT(USDTP_TAKE_, n) arguments USDTP_CAT(USDTP_SLOTS_, n) emit(n, probe) \
  } while (0)

#endif

/* ---- One row for each argument or number of arguments ------------------------------------------------------------ */
/* clang-format off */

/* Binds each argument to a variable, so that temporaries live as long as the site needs them. */
#define USDTP_TAKE_0()
#define USDTP_TAKE_1(x1) USDTP_TAKE(1, x1)
#define USDTP_TAKE_2(x1, x2) USDTP_TAKE_1(x1) USDTP_TAKE(2, x2)
#define USDTP_TAKE_3(x1, x2, x3) USDTP_TAKE_2(x1, x2) USDTP_TAKE(3, x3)
#define USDTP_TAKE_4(x1, x2, x3, x4) USDTP_TAKE_3(x1, x2, x3) USDTP_TAKE(4, x4)
#define USDTP_TAKE_5(x1, x2, x3, x4, x5) USDTP_TAKE_4(x1, x2, x3, x4) USDTP_TAKE(5, x5)
#define USDTP_TAKE_6(x1, x2, x3, x4, x5, x6) USDTP_TAKE_5(x1, x2, x3, x4, x5) USDTP_TAKE(6, x6)
#define USDTP_TAKE_7(x1, x2, x3, x4, x5, x6, x7) USDTP_TAKE_6(x1, x2, x3, x4, x5, x6) USDTP_TAKE(7, x7)
#define USDTP_TAKE_8(x1, x2, x3, x4, x5, x6, x7, x8) USDTP_TAKE_7(x1, x2, x3, x4, x5, x6, x7) USDTP_TAKE(8, x8)
#define USDTP_TAKE_9(x1, x2, x3, x4, x5, x6, x7, x8, x9) USDTP_TAKE_8(x1, x2, x3, x4, x5, x6, x7, x8) USDTP_TAKE(9, x9)
#define USDTP_TAKE_10(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10) \
  USDTP_TAKE_9(x1, x2, x3, x4, x5, x6, x7, x8, x9) USDTP_TAKE(10, x10)
#define USDTP_TAKE_11(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11) \
  USDTP_TAKE_10(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10) USDTP_TAKE(11, x11)
#define USDTP_TAKE_12(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12) \
  USDTP_TAKE_11(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11) USDTP_TAKE(12, x12)
#define USDTP_TAKE_MANY(...) USDTP_STATIC_ASSERT(0, "a USDT probe takes at most 12 arguments");

#define USDTP_SLOTS_0
#define USDTP_SLOTS_1 USDTP_SLOT(1)
#define USDTP_SLOTS_2 USDTP_SLOTS_1 USDTP_SLOT(2)
#define USDTP_SLOTS_3 USDTP_SLOTS_2 USDTP_SLOT(3)
#define USDTP_SLOTS_4 USDTP_SLOTS_3 USDTP_SLOT(4)
#define USDTP_SLOTS_5 USDTP_SLOTS_4 USDTP_SLOT(5)
#define USDTP_SLOTS_6 USDTP_SLOTS_5 USDTP_SLOT(6)
#define USDTP_SLOTS_7 USDTP_SLOTS_6 USDTP_SLOT(7)
#define USDTP_SLOTS_8 USDTP_SLOTS_7 USDTP_SLOT(8)
#define USDTP_SLOTS_9 USDTP_SLOTS_8 USDTP_SLOT(9)
#define USDTP_SLOTS_10 USDTP_SLOTS_9 USDTP_SLOT(10)
#define USDTP_SLOTS_11 USDTP_SLOTS_10 USDTP_SLOT(11)
#define USDTP_SLOTS_12 USDTP_SLOTS_11 USDTP_SLOT(12)
#define USDTP_SLOTS_MANY

/* The text of the arguments in a note: sizes with their sign, and where the values are. */
#define USDTP_ARG(i) "%c[size" #i "]@%" USDTP_WHOLE "[value" #i "]"
#define USDTP_ARGS_0 ""
#define USDTP_ARGS_1 USDTP_ARG(1)
#define USDTP_ARGS_2 USDTP_ARGS_1 " " USDTP_ARG(2)
#define USDTP_ARGS_3 USDTP_ARGS_2 " " USDTP_ARG(3)
#define USDTP_ARGS_4 USDTP_ARGS_3 " " USDTP_ARG(4)
#define USDTP_ARGS_5 USDTP_ARGS_4 " " USDTP_ARG(5)
#define USDTP_ARGS_6 USDTP_ARGS_5 " " USDTP_ARG(6)
#define USDTP_ARGS_7 USDTP_ARGS_6 " " USDTP_ARG(7)
#define USDTP_ARGS_8 USDTP_ARGS_7 " " USDTP_ARG(8)
#define USDTP_ARGS_9 USDTP_ARGS_8 " " USDTP_ARG(9)
#define USDTP_ARGS_10 USDTP_ARGS_9 " " USDTP_ARG(10)
#define USDTP_ARGS_11 USDTP_ARGS_10 " " USDTP_ARG(11)
#define USDTP_ARGS_12 USDTP_ARGS_11 " " USDTP_ARG(12)
#define USDTP_ARGS_MANY ""

#define USDTP_STUB_ARG(i) "%c[size" #i "]@" USDTP_AT_##i
#define USDTP_STUB_ARGS_0 ""
#define USDTP_STUB_ARGS_1 USDTP_STUB_ARG(1)
#define USDTP_STUB_ARGS_2 USDTP_STUB_ARGS_1 " " USDTP_STUB_ARG(2)
#define USDTP_STUB_ARGS_3 USDTP_STUB_ARGS_2 " " USDTP_STUB_ARG(3)
#define USDTP_STUB_ARGS_4 USDTP_STUB_ARGS_3 " " USDTP_STUB_ARG(4)
#define USDTP_STUB_ARGS_5 USDTP_STUB_ARGS_4 " " USDTP_STUB_ARG(5)
#define USDTP_STUB_ARGS_6 USDTP_STUB_ARGS_5 " " USDTP_STUB_ARG(6)
#define USDTP_STUB_ARGS_7 USDTP_STUB_ARGS_6 " " USDTP_STUB_ARG(7)
#define USDTP_STUB_ARGS_8 USDTP_STUB_ARGS_7 " " USDTP_STUB_ARG(8)
#define USDTP_STUB_ARGS_9 USDTP_STUB_ARGS_8 " " USDTP_STUB_ARG(9)
#define USDTP_STUB_ARGS_10 USDTP_STUB_ARGS_9 " " USDTP_STUB_ARG(10)
#define USDTP_STUB_ARGS_11 USDTP_STUB_ARGS_10 " " USDTP_STUB_ARG(11)
#define USDTP_STUB_ARGS_12 USDTP_STUB_ARGS_11 " " USDTP_STUB_ARG(12)
#define USDTP_STUB_ARGS_MANY ""

/* The operands of an asm: at most 27 of the 30 that gcc allows. */
#define USDTP_SIZE_OPERAND(i) , [size##i] "n"(USDTP_SIZE(i))
#define USDTP_SIZES_0
#define USDTP_SIZES_1 USDTP_SIZES_0 USDTP_SIZE_OPERAND(1)
#define USDTP_SIZES_2 USDTP_SIZES_1 USDTP_SIZE_OPERAND(2)
#define USDTP_SIZES_3 USDTP_SIZES_2 USDTP_SIZE_OPERAND(3)
#define USDTP_SIZES_4 USDTP_SIZES_3 USDTP_SIZE_OPERAND(4)
#define USDTP_SIZES_5 USDTP_SIZES_4 USDTP_SIZE_OPERAND(5)
#define USDTP_SIZES_6 USDTP_SIZES_5 USDTP_SIZE_OPERAND(6)
#define USDTP_SIZES_7 USDTP_SIZES_6 USDTP_SIZE_OPERAND(7)
#define USDTP_SIZES_8 USDTP_SIZES_7 USDTP_SIZE_OPERAND(8)
#define USDTP_SIZES_9 USDTP_SIZES_8 USDTP_SIZE_OPERAND(9)
#define USDTP_SIZES_10 USDTP_SIZES_9 USDTP_SIZE_OPERAND(10)
#define USDTP_SIZES_11 USDTP_SIZES_10 USDTP_SIZE_OPERAND(11)
#define USDTP_SIZES_12 USDTP_SIZES_11 USDTP_SIZE_OPERAND(12)
#define USDTP_SIZES_MANY

#define USDTP_VALUE_OPERAND(i) , [value##i] USDTP_CONSTRAINT(usdtp_w##i)
#define USDTP_VALUES_0
#define USDTP_VALUES_1 USDTP_VALUES_0 USDTP_VALUE_OPERAND(1)
#define USDTP_VALUES_2 USDTP_VALUES_1 USDTP_VALUE_OPERAND(2)
#define USDTP_VALUES_3 USDTP_VALUES_2 USDTP_VALUE_OPERAND(3)
#define USDTP_VALUES_4 USDTP_VALUES_3 USDTP_VALUE_OPERAND(4)
#define USDTP_VALUES_5 USDTP_VALUES_4 USDTP_VALUE_OPERAND(5)
#define USDTP_VALUES_6 USDTP_VALUES_5 USDTP_VALUE_OPERAND(6)
#define USDTP_VALUES_7 USDTP_VALUES_6 USDTP_VALUE_OPERAND(7)
#define USDTP_VALUES_8 USDTP_VALUES_7 USDTP_VALUE_OPERAND(8)
#define USDTP_VALUES_9 USDTP_VALUES_8 USDTP_VALUE_OPERAND(9)
#define USDTP_VALUES_10 USDTP_VALUES_9 USDTP_VALUE_OPERAND(10)
#define USDTP_VALUES_11 USDTP_VALUES_10 USDTP_VALUE_OPERAND(11)
#define USDTP_VALUES_12 USDTP_VALUES_11 USDTP_VALUE_OPERAND(12)
#define USDTP_VALUES_MANY

/* A call of a stub: eight bytes for each argument on every machine. */
#define USDTP_CALL(n, stub) ((void (*)(USDTP_SLOT_TYPES_##n))(stub))(USDTP_SLOT_VALUES_##n)
#define USDTP_SLOT_TYPES_0 void
#define USDTP_SLOT_TYPES_1 usdtp_slot
#define USDTP_SLOT_TYPES_2 USDTP_SLOT_TYPES_1, usdtp_slot
#define USDTP_SLOT_TYPES_3 USDTP_SLOT_TYPES_2, usdtp_slot
#define USDTP_SLOT_TYPES_4 USDTP_SLOT_TYPES_3, usdtp_slot
#define USDTP_SLOT_TYPES_5 USDTP_SLOT_TYPES_4, usdtp_slot
#define USDTP_SLOT_TYPES_6 USDTP_SLOT_TYPES_5, usdtp_slot
#define USDTP_SLOT_TYPES_7 USDTP_SLOT_TYPES_6, usdtp_slot
#define USDTP_SLOT_TYPES_8 USDTP_SLOT_TYPES_7, usdtp_slot
#define USDTP_SLOT_TYPES_9 USDTP_SLOT_TYPES_8, usdtp_slot
#define USDTP_SLOT_TYPES_10 USDTP_SLOT_TYPES_9, usdtp_slot
#define USDTP_SLOT_TYPES_11 USDTP_SLOT_TYPES_10, usdtp_slot
#define USDTP_SLOT_TYPES_12 USDTP_SLOT_TYPES_11, usdtp_slot
#define USDTP_SLOT_TYPES_MANY void
#define USDTP_SLOT_VALUES_0
#define USDTP_SLOT_VALUES_1 usdtp_w1
#define USDTP_SLOT_VALUES_2 USDTP_SLOT_VALUES_1, usdtp_w2
#define USDTP_SLOT_VALUES_3 USDTP_SLOT_VALUES_2, usdtp_w3
#define USDTP_SLOT_VALUES_4 USDTP_SLOT_VALUES_3, usdtp_w4
#define USDTP_SLOT_VALUES_5 USDTP_SLOT_VALUES_4, usdtp_w5
#define USDTP_SLOT_VALUES_6 USDTP_SLOT_VALUES_5, usdtp_w6
#define USDTP_SLOT_VALUES_7 USDTP_SLOT_VALUES_6, usdtp_w7
#define USDTP_SLOT_VALUES_8 USDTP_SLOT_VALUES_7, usdtp_w8
#define USDTP_SLOT_VALUES_9 USDTP_SLOT_VALUES_8, usdtp_w9
#define USDTP_SLOT_VALUES_10 USDTP_SLOT_VALUES_9, usdtp_w10
#define USDTP_SLOT_VALUES_11 USDTP_SLOT_VALUES_10, usdtp_w11
#define USDTP_SLOT_VALUES_12 USDTP_SLOT_VALUES_11, usdtp_w12
#define USDTP_SLOT_VALUES_MANY

#ifdef __cplusplus
/* An argument may be two: as many branches as there can be operands of so many arguments, one of them compiled. */
#define USDTP_BRANCHES_0(emit, probe) USDTP_BRANCH(0, emit, probe)
#define USDTP_BRANCHES_1(emit, probe) USDTP_BRANCH(1, emit, probe) else USDTP_BRANCH(2, emit, probe)
#define USDTP_BRANCHES_2(emit, probe) \
  USDTP_BRANCH(2, emit, probe) else USDTP_BRANCH(3, emit, probe) else USDTP_BRANCH(4, emit, probe)
#define USDTP_BRANCHES_3(emit, probe) \
  USDTP_BRANCH(3, emit, probe) else USDTP_BRANCH(4, emit, probe) else USDTP_BRANCH(5, emit, probe) else \
  USDTP_BRANCH(6, emit, probe)
#define USDTP_BRANCHES_4(emit, probe) \
  USDTP_BRANCH(4, emit, probe) else USDTP_BRANCH(5, emit, probe) else USDTP_BRANCH(6, emit, probe) else \
  USDTP_BRANCH(7, emit, probe) else USDTP_BRANCH(8, emit, probe)
#define USDTP_BRANCHES_5(emit, probe) \
  USDTP_BRANCH(5, emit, probe) else USDTP_BRANCH(6, emit, probe) else USDTP_BRANCH(7, emit, probe) else \
  USDTP_BRANCH(8, emit, probe) else USDTP_BRANCH(9, emit, probe) else USDTP_BRANCH(10, emit, probe)
#define USDTP_BRANCHES_6(emit, probe) \
  USDTP_BRANCH(6, emit, probe) else USDTP_BRANCH(7, emit, probe) else USDTP_BRANCH(8, emit, probe) else \
  USDTP_BRANCH(9, emit, probe) else USDTP_BRANCH(10, emit, probe) else USDTP_BRANCH(11, emit, probe) else \
  USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_7(emit, probe) \
  USDTP_BRANCH(7, emit, probe) else USDTP_BRANCH(8, emit, probe) else USDTP_BRANCH(9, emit, probe) else \
  USDTP_BRANCH(10, emit, probe) else USDTP_BRANCH(11, emit, probe) else USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_8(emit, probe) \
  USDTP_BRANCH(8, emit, probe) else USDTP_BRANCH(9, emit, probe) else USDTP_BRANCH(10, emit, probe) else \
  USDTP_BRANCH(11, emit, probe) else USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_9(emit, probe) \
  USDTP_BRANCH(9, emit, probe) else USDTP_BRANCH(10, emit, probe) else USDTP_BRANCH(11, emit, probe) else \
  USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_10(emit, probe) \
  USDTP_BRANCH(10, emit, probe) else USDTP_BRANCH(11, emit, probe) else USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_11(emit, probe) USDTP_BRANCH(11, emit, probe) else USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_12(emit, probe) USDTP_BRANCH(12, emit, probe)
#define USDTP_BRANCHES_MANY(emit, probe)
#define USDTP_TAKEN_0
#define USDTP_TAKEN_1 usdtp_a1
#define USDTP_TAKEN_2 USDTP_TAKEN_1, usdtp_a2
#define USDTP_TAKEN_3 USDTP_TAKEN_2, usdtp_a3
#define USDTP_TAKEN_4 USDTP_TAKEN_3, usdtp_a4
#define USDTP_TAKEN_5 USDTP_TAKEN_4, usdtp_a5
#define USDTP_TAKEN_6 USDTP_TAKEN_5, usdtp_a6
#define USDTP_TAKEN_7 USDTP_TAKEN_6, usdtp_a7
#define USDTP_TAKEN_8 USDTP_TAKEN_7, usdtp_a8
#define USDTP_TAKEN_9 USDTP_TAKEN_8, usdtp_a9
#define USDTP_TAKEN_10 USDTP_TAKEN_9, usdtp_a10
#define USDTP_TAKEN_11 USDTP_TAKEN_10, usdtp_a11
#define USDTP_TAKEN_12 USDTP_TAKEN_11, usdtp_a12
#define USDTP_TAKEN_MANY
#else
/* The types of the arguments, four to a word. */
#define USDTP_CODE_IN(i, word) ((word) == ((i)-1) / 4 ? USDTP_CODE(i) << ((i)-1) % 4 * 8 : 0)
#define USDTP_CODES_0(word) 0
#define USDTP_CODES_1(word) USDTP_CODES_0(word) | USDTP_CODE_IN(1, word)
#define USDTP_CODES_2(word) USDTP_CODES_1(word) | USDTP_CODE_IN(2, word)
#define USDTP_CODES_3(word) USDTP_CODES_2(word) | USDTP_CODE_IN(3, word)
#define USDTP_CODES_4(word) USDTP_CODES_3(word) | USDTP_CODE_IN(4, word)
#define USDTP_CODES_5(word) USDTP_CODES_4(word) | USDTP_CODE_IN(5, word)
#define USDTP_CODES_6(word) USDTP_CODES_5(word) | USDTP_CODE_IN(6, word)
#define USDTP_CODES_7(word) USDTP_CODES_6(word) | USDTP_CODE_IN(7, word)
#define USDTP_CODES_8(word) USDTP_CODES_7(word) | USDTP_CODE_IN(8, word)
#define USDTP_CODES_9(word) USDTP_CODES_8(word) | USDTP_CODE_IN(9, word)
#define USDTP_CODES_10(word) USDTP_CODES_9(word) | USDTP_CODE_IN(10, word)
#define USDTP_CODES_11(word) USDTP_CODES_10(word) | USDTP_CODE_IN(11, word)
#define USDTP_CODES_12(word) USDTP_CODES_11(word) | USDTP_CODE_IN(12, word)
#define USDTP_CODES_MANY(word) 0
#endif
/* clang-format on */

/* ---- The sites -------------------------------------------------------------------------------------------------- */

/* `probe` is (provider, name, semaphore symbol, text of the arguments), all of them string literals. */
#define USDTP_PROVIDER(provider, name, semaphore, text) provider
#define USDTP_NAME(provider, name, semaphore, text) name
#define USDTP_SEMAPHORE_OF(provider, name, semaphore, text) semaphore
#define USDTP_TEXT_OF(provider, name, semaphore, text) text

#define USDTP_CODE_OPERANDS(n) \
  [codes0] "n"(USDTP_CODES(n, 0)), [codes1] "n"(USDTP_CODES(n, 1)), [codes2] "n"(USDTP_CODES(n, 2))

/* clang-format off */
#define USDTP_SITE(n, probe, semaphore, define_semaphore)                                           \
  USDTP_TEXT(probe)                                                                                 \
  USDTP_ASM(USDTP_LABEL ":\n"                                                                       \
            USDTP_IDENTITY(USDTP_PROVIDER probe, USDTP_NAME probe)                                  \
            "nop\n"                                                                                 \
            USDTP_STAPSDT(USDTP_PROVIDER probe, USDTP_NAME probe, semaphore, USDTP_LABEL, USDTP_ARGS_##n) \
            USDTP_DESCRIPTION(USDTP_LABEL)                                                          \
            USDTP_BASE define_semaphore                                                             \
            : : USDTP_CODE_OPERANDS(n) USDTP_SIZES_##n USDTP_VALUES_##n                             \
            : "memory"); /* who traces the site reads what the arguments point at: it must be stored by then */
#define USDTP_EMIT_PLAIN(n, probe) USDTP_SITE(n, probe, "0", )
#define USDTP_EMIT_LAZY(n, probe) \
  USDTP_SITE(n, probe, USDTP_SEMAPHORE_OF probe, USDTP_SEMAPHORE(USDTP_SEMAPHORE_OF probe))

/* The name of a stub has the types of the arguments in it: places of a probe with equal types share a stub. */
#define USDTP_STUB_NAME(probe) \
  "usdt.probe." USDTP_PROVIDER probe "." USDTP_NAME probe ".%c[codes0].%c[codes1].%c[codes2]"
/* Without the name behind the code all stubs would be equal bytes, and linkers would fold them into one (--icf). */
#define USDTP_STUB(n, probe, symbol)                                                                \
  ".ifndef " symbol "\n"                                                                            \
  ".pushsection .text.usdt_probe,\"axG\",\"progbits\"," symbol ",comdat\n"                          \
  ".balign 32\n"                                                                                    \
  ".weak " symbol "\n"                                                                              \
  ".hidden " symbol "\n"                                                                            \
  ".type " symbol ", %%function\n"                                                                  \
  symbol ":\n"                                                                                      \
  USDTP_STUB_ENTRY                                                                                  \
  USDTP_LABEL ": " USDTP_STUB_NOPS                                                                  \
  ".asciz \"" symbol "\"\n"                                                                         \
  ".size " symbol ", .-" symbol "\n"                                                                \
  USDTP_STAPSDT(USDTP_PROVIDER probe, USDTP_NAME probe, USDTP_SEMAPHORE_OF probe, USDTP_LABEL, USDTP_STUB_ARGS_##n) \
  USDTP_DESCRIPTION(USDTP_LABEL)                                                                    \
  ".popsection\n"                                                                                   \
  ".endif\n"                                                                                        \
  USDTP_BASE                                                                                        \
  USDTP_SEMAPHORE(USDTP_SEMAPHORE_OF probe)
#define USDTP_EMIT_STUB(n, probe)                                                                   \
  void* usdtp_stub;                                                                                 \
  USDTP_TEXT(probe)                                                                                 \
  USDTP_ASM(USDTP_ADDRESS_OF_STUB(USDTP_STUB_NAME(probe))                                           \
            USDTP_STUB(n, probe, USDTP_STUB_NAME(probe))                                            \
            : [stub] "=&r"(usdtp_stub)                                                              \
            : USDTP_CODE_OPERANDS(n) USDTP_SIZES_##n                                                \
            : "cc");                                                                                \
  USDTP_CALL(n, usdtp_stub);
/* clang-format on */

/*
 * The semaphore is read in assembler, by its symbol, not declared as a variable of that name: within a template g++ 12
 * loses such a name, and link-time optimisation takes it for a variable that nobody defines.
 */
#define USDTP_ENABLED(symbol)                                                                                        \
  __extension__({                                                                                                    \
    USDTP_ENABLED_VARIABLES                                                                                          \
    USDTP_ASM(USDTP_READ_SEMAPHORE(symbol) USDTP_SEMAPHORE(symbol) : USDTP_ENABLED_OUTPUTS(usdtp_enabled) : : "cc"); \
    (int)__builtin_expect(usdtp_enabled != 0, 0);                                                                    \
  })

/* ---- What programs use ------------------------------------------------------------------------------------------ */

#define USDTP_RUN_N(n, emit, probe, arguments) USDTP_RUN(n, emit, probe, arguments)

#define USDT_PROBE_ENABLED(provider, name) USDTP_ENABLED(#provider "_" #name "_semaphore")

#define USDT_PROBE(provider, name, ...)                                                                     \
  USDTP_RUN_N(USDTP_COUNT(__VA_ARGS__), USDTP_EMIT_PLAIN, (#provider, #name, "0", USDTP_STR(#__VA_ARGS__)), \
              (__VA_ARGS__))

#define USDT_PROBE_LAZY(provider, name, ...)                                                                     \
  do {                                                                                                           \
    if (USDTP_ENABLED(#provider "_" #name "_semaphore"))                                                         \
      USDTP_RUN_N(USDTP_COUNT(__VA_ARGS__), USDTP_EMIT_LAZY,                                                     \
                  (#provider, #name, #provider "_" #name "_semaphore", USDTP_STR(#__VA_ARGS__)), (__VA_ARGS__)); \
  } while (0)

#define USDT_PROBE_STUB(provider, name, ...)                                                                     \
  do {                                                                                                           \
    if (USDTP_ENABLED(#provider "_" #name "_semaphore"))                                                         \
      USDTP_RUN_N(USDTP_COUNT(__VA_ARGS__), USDTP_EMIT_STUB,                                                     \
                  (#provider, #name, #provider "_" #name "_semaphore", USDTP_STR(#__VA_ARGS__)), (__VA_ARGS__)); \
  } while (0)

#endif /* USDT_PROBE_DISABLE */
#endif /* USDT_PROBE_H */
