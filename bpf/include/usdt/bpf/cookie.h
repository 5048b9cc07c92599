/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A whole spec packed into the 64 bits of an attach cookie, format 1: user space packs it (usdt/cookie.hpp), programs
 * unpack it. For BPF programs, C and C++.
 *
 *     bits 62..63  USDT_CARRIER_COOKIE; another packing will take another tag
 *     bits 59..61  number of arguments
 *     bit  58      USDT_ARG_ADDR32 on every memory argument (i386)
 *     the next `site_bits` bits below: site number; how many is a constant of the program (usdt_site_bits)
 *     from bit 0:  the arguments one after the other, each led by its form
 *
 *     form      what                         fields after the form, lowest bits first
 *     0         register                     type 3, reg R
 *     01        memory near its base         type 3, reg R, displacement 10
 *     011       memory                       type 3, reg R, displacement 18
 *     0111      constant                     type 3, value 10
 *     0001111   unreadable                   size 4
 *     0011111   constant                     type 3, value 32
 *     0101111   memory at a distance from    type 3, displacement 32
 *               the instruction pointer
 *     0111111   bits 8..15 of a register     type 3, reg R
 *     1001111   memory, indexed              type 3, reg R, displacement 12, index R, shift 2
 *     1011111   float in memory              type 3, reg R, displacement 18
 *     1101111   float in a register          type 3, reg R
 *
 * Forms are written with their highest bit first. Numbers say how many bits a field has. A type is log2 of the size in
 * bytes, plus 4 if the value is signed. Displacements and constants are in two's complement. R is 4 bits on x86 (the
 * number of the pt_regs word; 15 stands for the stack pointer, word 19) and 5 bits elsewhere (the number of the word).
 * A cookie of 0 is no spec: its count says that there are no arguments. */
#ifndef USDT_BPF_COOKIE_H
#define USDT_BPF_COOKIE_H

#include "spec.h"
#if !defined(__cplusplus) && !defined(__VMLINUX_H__)
#include <stdbool.h>
#endif

#define USDT_PACKED_BITS 58 /* for the site number and the arguments */
#define USDT_PACKED_ARGS 7
#define USDT_PACKED_COUNT(cookie) ((__u32)((cookie) >> 59) & 7u)
#define USDT_PACKED_ADDR32(cookie) ((__u32)((cookie) >> USDT_PACKED_BITS) & 1u)
#define USDT_PACKED_SITE(cookie, site_bits) \
	((__u32)((cookie) >> (USDT_PACKED_BITS - (site_bits))) & ((1u << (site_bits)) - 1))

#define USDT_REG_BITS_X86 4
#define USDT_REG_BITS_ARM64 5
#define USDT_REG_BITS_RISCV 5

/* The forms by number, and by their bits. */
enum usdt_packed_form {
	USDT_FORM_REG = 0x0,	     /* 0: lowest four bits 0, 2, 4 .. e */
	USDT_FORM_NEAR = 0x1,	     /* 1: 1, 5, 9, d */
	USDT_FORM_MEM = 0x3,	     /* 2: 3, b */
	USDT_FORM_CONST = 0x7,	     /* 3 */
	USDT_FORM_UNREADABLE = 0x0f, /* 4 .. 10: lowest seven bits */
	USDT_FORM_WIDE_CONST = 0x1f,
	USDT_FORM_IP = 0x2f,
	USDT_FORM_HIGH_BYTE = 0x3f,
	USDT_FORM_INDEXED = 0x4f,
	USDT_FORM_FLOAT_MEM = 0x5f,
	USDT_FORM_FLOAT_REG = 0x6f,
};

#define USDT_INLINE static inline __attribute__((always_inline))

/* How many bits the argument has that begins at bit 0 of `rest`; 0: there is no such form. Without a branch, so that
 * compilers see that the way to argument 2 is the way to argument 1 and one step more. */
USDT_INLINE __u32 usdt_packed_width(__u64 rest, __u32 reg_bits)
{
	/* Tables of widths, one byte for each form: `even` and `odd` are of the forms that end in 0 and in 1, by bits 1
	 * to 3; `longer` is of those that end in 1111, by bits 4 to 6. */
	const __u64 near = 15 + reg_bits, mem = 24 + reg_bits;
	const __u64 even = 0x0101010101010101ull * (4 + reg_bits);
	const __u64 odd = near | mem << 8 | near << 16 | 17ull << 24 | near << 32 | mem << 40 | near << 48;
	const __u64 longer = 11 | 42ull << 8 | 42ull << 16 | (10ull + reg_bits) << 24 | (24ull + 2 * reg_bits) << 32 |
			     (28ull + reg_bits) << 40 | (10ull + reg_bits) << 48;
	const __u64 is_odd = -(rest & 1), is_longer = -(((rest & 0xf) + 1) >> 4);
	const __u64 table = even ^ ((even ^ odd) & is_odd);

	return (__u32)(table >> ((rest << 2) & 0x38) | (longer >> ((rest >> 1) & 0x38) & is_longer)) & 0xff;
}

/* The number in the lowest `bits` (1 to 64) of `field`, extended by its sign. */
USDT_INLINE __u64 usdt_packed_signed(__u64 field, __u32 bits)
{
	return (__u64)((__s64)(field << (-bits & 63)) >> (-bits & 63));
}

/* The pt_regs word that a register field means. On x86 the field 15 means the stack pointer, word 19: word 15 is
 * orig_ax, which is no register. */
USDT_INLINE __u8 usdt_packed_reg(__u64 field, __u32 reg_bits)
{
	const __u32 reg = (__u32)field & ((1u << reg_bits) - 1);

	return (__u8)(reg_bits == USDT_REG_BITS_X86 ? reg + ((reg + 1) >> 4 << 2) : reg);
}

/* Entry `at` of a table of 16 numbers below 16, whose first one is in the lowest bits. */
USDT_INLINE __u32 usdt_nibble(__u64 table, __u32 at)
{
	return (__u32)(table >> (4 * at & 63)) & 15;
}

/* The argument that begins at bit 0 of `rest`, as a spec in memory would have it. The differences of the forms are
 * looked up in constants and computed: a branch for each form would be a path of its own to the verifier, at each
 * argument. */
USDT_INLINE struct usdt_arg_spec usdt_unpack_arg(__u64 rest, __u32 reg_bits, __u32 addr32)
{
	/* Tables by the number of the form, 0 to 10; 11: there is no such form. */
	const __u64 forms = 0x4010201030102010ull; /* the number, by the lowest four bits */
	const __u64 leads = 0x777777774321ull;	   /* bits before the type */
	const __u64 kinds = 0x023323101332ull;	   /* enum usdt_arg_kind */
	const __u64 with_reg = 0x011110000111ull;
	const __u64 numbers = 0x003204401310ull; /* which of these widths the number has */
	const __u64 widths = 0x20120c0a00ull;
	const __u64 own_flags = 0x022008000000ull, signs = 0x000111101111ull;
	const __u32 low = rest & 15, longer = -((low + 1) >> 4);
	const __u32 form = usdt_nibble(forms, low) + ((__u32)(rest >> 4) & 7 & longer);
	const __u64 fields = rest >> usdt_nibble(leads, form);
	const __u32 type = fields & 7, is_signed = type >> 2 & usdt_nibble(signs, form);
	const __u32 is_mem = usdt_nibble(0x1101000110ull, form), is_const = usdt_nibble(0x101000ull, form);
	const __u32 unreadable = usdt_nibble(0x100000010000ull, form), high_byte = usdt_nibble(0x10000000ull, form);
	const __u32 has_reg = usdt_nibble(with_reg, form), indexed = usdt_nibble(0x100000000ull, form);
	const __u32 which = usdt_nibble(numbers, form), width = (__u32)(widths >> (8 * which)) & 0xff;
	const __u64 number = fields >> 3 >> (reg_bits * has_reg);
	const __u32 size = (1u << (type & 3)) * (1 - unreadable) + ((__u32)fields & 15) * unreadable;
	const __u32 cut = (64 - 8 * size) * (is_const & (is_signed ^ 1));
	struct usdt_arg_spec arg;

	arg.value = usdt_packed_signed(number, width) & -(__u64)((which + 7) >> 3) & ~0ull >> (cut & 63);
	arg.kind = (__u8)usdt_nibble(kinds, form);
	arg.flags =
	    (__u8)(usdt_nibble(own_flags, form) | is_signed * USDT_ARG_SIGNED | (is_mem & addr32) * USDT_ARG_ADDR32);
	arg.size = (__u8)size;
	arg.reg = (__u8)(usdt_packed_reg(fields >> 3, reg_bits) | -(1 - has_reg));
	arg.index = (__u8)(usdt_packed_reg(number >> 12, reg_bits) | -(1 - indexed));
	arg.shift = (__u8)(8 * high_byte + ((number >> (12 + reg_bits)) & 3) * indexed);
	arg.capture = 0;
	arg.window = 0;
	return arg;
}

#endif /* USDT_BPF_COOKIE_H */
