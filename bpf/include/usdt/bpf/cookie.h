/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A whole spec in the 64 bits of an attach cookie, version 1: what user space packs (usdt/cookie.hpp) and programs
 * read. C for BPF, C and C++.
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
 * Forms are written highest bit first. A type is log2 of the size, and 4 if signed. Displacements and constants are
 * two's complement. R is 4 bits on x86 (the pt_regs word, and 15 for the stack pointer, word 19) and 5 on arm64 (the
 * word). Zero bits are no argument list: there is none without a count. */
#ifndef USDT_BPF_COOKIE_H
#define USDT_BPF_COOKIE_H

#include "spec.h"

#define USDT_PACKED_BITS 58 /* for the site number and the arguments */
#define USDT_PACKED_ARGS 7
#define USDT_PACKED_COUNT(cookie) ((__u32)((cookie) >> 59) & 7u)
#define USDT_PACKED_ADDR32(cookie) ((__u32)((cookie) >> USDT_PACKED_BITS) & 1u)
#define USDT_PACKED_SITE(cookie, site_bits) \
	((__u32)((cookie) >> (USDT_PACKED_BITS - (site_bits))) & ((1u << (site_bits)) - 1))

#define USDT_REG_BITS_X86 4
#define USDT_REG_BITS_ARM64 5

/* Forms by their lowest four bits, those that end in 1111 by the three above. */
enum usdt_packed_form {
	USDT_FORM_REG = 0x0,  /* 0, 2, 4 .. e */
	USDT_FORM_NEAR = 0x1, /* 1, 5, 9, d */
	USDT_FORM_MEM = 0x3,  /* 3, b */
	USDT_FORM_CONST = 0x7,
	USDT_FORM_UNREADABLE = 0x0f,
	USDT_FORM_WIDE_CONST = 0x1f,
	USDT_FORM_IP = 0x2f,
	USDT_FORM_HIGH_BYTE = 0x3f,
	USDT_FORM_INDEXED = 0x4f,
	USDT_FORM_FLOAT_MEM = 0x5f,
	USDT_FORM_FLOAT_REG = 0x6f,
};

#define USDT_INLINE static inline __attribute__((always_inline))

/* Bits of the argument that begins at bit 0 of `rest`; 0 for a form there is not. Without a branch, so that compilers
 * see that stepping to argument 2 is what was done for argument 1, and one step more. */
USDT_INLINE __u32 usdt_packed_width(__u64 rest, __u32 reg_bits)
{
	/* One byte a form, by bits 1..3: of those that end in 0, in 1 (1111 is none of them), and by bits 4..6 in 1111.
	 */
	const __u64 near = 15 + reg_bits, mem = 24 + reg_bits;
	const __u64 even = 0x0101010101010101ull * (4 + reg_bits);
	const __u64 odd = near | mem << 8 | near << 16 | 17ull << 24 | near << 32 | mem << 40 | near << 48;
	const __u64 longer = 11 | 42ull << 8 | 42ull << 16 | (10ull + reg_bits) << 24 | (24ull + 2 * reg_bits) << 32 |
			     (28ull + reg_bits) << 40 | (10ull + reg_bits) << 48;
	const __u64 is_odd = -(rest & 1), is_longer = -(((rest & 0xf) + 1) >> 4);
	const __u64 table = even ^ ((even ^ odd) & is_odd);

	return (__u32)(table >> ((rest << 2) & 0x38) | (longer >> ((rest >> 1) & 0x38) & is_longer)) & 0xff;
}

/* The lowest `bits` of `field`, extended by sign. */
USDT_INLINE __u64 usdt_packed_signed(__u64 field, __u32 bits)
{
	return (__u64)((__s64)(field << (64 - bits)) >> (64 - bits));
}

/* A register field as a word of pt_regs. x86: the stack pointer has no word below 16, word 15 (orig_ax) is no register.
 */
USDT_INLINE __u8 usdt_packed_reg(__u64 field, __u32 reg_bits)
{
	const __u32 reg = (__u32)field & ((1u << reg_bits) - 1);

	return (__u8)(reg_bits == USDT_REG_BITS_X86 ? reg + ((reg == 15) << 2) : reg);
}

/* The argument that begins at bit 0 of `rest`, as the table would hold it. */
USDT_INLINE struct usdt_arg_spec usdt_unpack_arg(__u64 rest, __u32 reg_bits, __u32 addr32)
{
	struct usdt_arg_spec arg;
	__u32 form = 0, type, size;
	__u64 fields;

	/* How many bits lead to the type: 1, 2, 3, 4 or 7. */
	if (!(rest & 1)) {
		fields = rest >> 1;
	} else if ((rest & 3) == 1) {
		form = USDT_FORM_NEAR;
		fields = rest >> 2;
	} else if ((rest & 7) == 3) {
		form = USDT_FORM_MEM;
		fields = rest >> 3;
	} else if ((rest & 15) == 7) {
		form = USDT_FORM_CONST;
		fields = rest >> 4;
	} else {
		form = rest & 0x7f;
		fields = rest >> 7;
	}
	type = fields & 7;
	size = 1u << (type & 3);
	fields >>= 3;

	arg.value = 0;
	arg.kind = USDT_ARG_MEM;
	arg.flags = (__u8)((type & 4 ? USDT_ARG_SIGNED : 0) | (addr32 ? USDT_ARG_ADDR32 : 0));
	arg.size = (__u8)size;
	arg.reg = usdt_packed_reg(fields, reg_bits);
	arg.index = USDT_REG_NONE;
	arg.shift = 0;
	arg.capture = 0;
	arg.window = 0;
	switch (form) {
	case USDT_FORM_HIGH_BYTE:
		arg.shift = 8;
		/* fallthrough */
	case USDT_FORM_REG:
		arg.kind = USDT_ARG_REG;
		arg.flags = type & 4 ? USDT_ARG_SIGNED : 0;
		break;
	case USDT_FORM_FLOAT_REG:
		arg.kind = USDT_ARG_REG;
		arg.flags = USDT_ARG_FLOAT;
		break;
	case USDT_FORM_NEAR:
		arg.value = usdt_packed_signed(fields >> reg_bits, 10);
		break;
	case USDT_FORM_FLOAT_MEM:
		arg.flags = (__u8)(USDT_ARG_FLOAT | (addr32 ? USDT_ARG_ADDR32 : 0));
		/* fallthrough */
	case USDT_FORM_MEM:
		arg.value = usdt_packed_signed(fields >> reg_bits, 18);
		break;
	case USDT_FORM_INDEXED:
		arg.value = usdt_packed_signed(fields >> reg_bits, 12);
		fields >>= reg_bits + 12;
		arg.index = usdt_packed_reg(fields, reg_bits);
		arg.shift = (__u8)((fields >> reg_bits) & 3);
		break;
	case USDT_FORM_IP:
		arg.value = usdt_packed_signed(fields, 32);
		arg.flags = (__u8)(arg.flags | USDT_ARG_IP);
		arg.reg = USDT_REG_NONE;
		break;
	case USDT_FORM_CONST:
	case USDT_FORM_WIDE_CONST:
		arg.kind = USDT_ARG_CONST;
		arg.flags = type & 4 ? USDT_ARG_SIGNED : 0;
		arg.reg = USDT_REG_NONE;
		arg.value = usdt_packed_signed(fields, form == USDT_FORM_CONST ? 10 : 32);
		if (!(type & 4))
			arg.value = arg.value << (64 - 8 * size) >> (64 - 8 * size);
		break;
	default: /* unreadable, which has a size instead of a type */
		arg.kind = USDT_ARG_UNREADABLE;
		arg.flags = 0;
		arg.reg = USDT_REG_NONE;
		arg.size = form == USDT_FORM_UNREADABLE ? (__u8)((rest >> 7) & 15) : 0;
		break;
	}
	return arg;
}

#endif /* USDT_BPF_COOKIE_H */
