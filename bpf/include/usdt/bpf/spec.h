/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The encoded argument spec: one layout for BPF programs (clang -target bpf), C and C++.
 * User space writes it at attach time, BPF programs only read it. Any change of layout or meaning
 * raises USDT_SPEC_VERSION, which the loader compares with the program's. */
#ifndef USDT_BPF_SPEC_H
#define USDT_BPF_SPEC_H

#include "types.h"

#define USDT_SPEC_VERSION 9

/* What an argument is. */
enum usdt_arg_kind {
	USDT_ARG_UNREADABLE = 0, /* user space knows why: the plan keeps the reason */
	USDT_ARG_CONST = 1,	 /* `value`, already cut to size and extended by sign */
	USDT_ARG_REG = 2,	 /* bits `shift`.. of pt_regs word `reg` */
	USDT_ARG_MEM = 3,	 /* `size` bytes of user memory at the address below */
	USDT_ARG_ADDR = 4,	 /* the address itself, nothing is loaded */
	USDT_ARG_STEP = 5,	 /* no argument, but a step on the way to one: behind the arguments of its spec */
	/* Beside CONST to ADDR: this is only where the way to the value begins. `window` is the number of the first of
	 * its steps, among those of the spec. */
	USDT_ARG_HAS_STEPS = 1 << 7,
};
#define USDT_ARG_KIND(kind) ((kind) & ~USDT_ARG_HAS_STEPS)

/* A step (USDT_ARG_STEP) goes from the value so far, an address, to what lies `value` bytes behind it. Of an entry's
 * fields it has
 *     value   the distance, in two's complement; ADDR32: the sum wraps at 2^32
 *     size    bytes read there, of which SIGNED ones are extended by their sign; 0: nothing is read, the sum it is
 *     shift   bits of that to drop, then
 *     index   bits to keep, of a bit-field; 0: all
 *     reg     steps that follow */
#define USDT_MAX_STEPS 16 /* of one value */

/* Address of MEM and ADDR, modulo 2^64 (2^32 with ADDR32):
 *     value + (IP ? instruction pointer : 0) + (reg) + (index << shift) + (THREAD ? thread pointer : 0) */
enum usdt_arg_flags {
	USDT_ARG_SIGNED = 1 << 0,
	USDT_ARG_FLOAT = 1 << 1,     /* bits of an IEEE 754 float or double */
	USDT_ARG_ADDR32 = 1 << 2,    /* the address wraps at 2^32 (i386, addr32) */
	USDT_ARG_IP = 1 << 3,	     /* add regs' instruction pointer at the hit */
	USDT_ARG_INDEX_U32 = 1 << 4, /* index is the low 32 bits, zero-extended */
	USDT_ARG_INDEX_S32 = 1 << 5, /* index is the low 32 bits, sign-extended */
	USDT_ARG_PAIR = 1 << 6,	     /* REG: the upper 32 bits are in word `index` (i386) */
	USDT_ARG_THREAD = 1 << 6,    /* MEM, ADDR: add the base of the thread's segment. PAIR's bit, which is REG's */
	USDT_ARG_RESULT = 1 << 7,    /* the return value of a call: not there before its end */
};

#define USDT_REG_NONE 0xff

/* What a program is given at a hit, and what `reg` and `index` number. A constant of each program says which. */
enum usdt_source {
	USDT_SOURCE_USER = 0,	   /* uprobes: pt_regs of the process; memory is the process's */
	USDT_SOURCE_KERNEL = 1,	   /* kprobes: pt_regs at a kernel function; memory is the kernel's */
	USDT_SOURCE_SLOTS = 2,	   /* trampolines: argument slots, by bpf_get_func_arg() (5.17) */
	USDT_SOURCE_OLD_SLOTS = 3, /* the same where the kernel has no such helper */
	USDT_SOURCE_RAW = 4,	   /* raw tracepoints: argument slots, the context itself */
};
/* Trampolines hand over at most 12 slots (MAX_BPF_FUNC_ARGS); the one of the return value comes after them here. */
#define USDT_SLOTS 12
#define USDT_SLOT_RESULT 12

/* Which ends of a call a program runs at; both: a session. A constant of each program. */
enum usdt_moment {
	USDT_AT_ENTRY = 1,
	USDT_AT_RETURN = 2,
};

/* How a program at the return of a function of a file comes to run. A constant of each program. */
enum usdt_return_by {
	USDT_RETURN_BY_PROBE = 0,	  /* the return address is replaced: the function has returned */
	USDT_RETURN_BY_RET = 1,		  /* a probe on its RET instruction, which has not run yet */
	USDT_RETURN_BY_GOROUTINE_RET = 2, /* the same of Go: calls are told apart by goroutine and depth of its stack */
};

/* Of spans, from a hit at one place to one at another: where the program sits. A constant of each program. */
enum usdt_span_side {
	USDT_NO_SPAN = 0,
	USDT_SPAN_BEGIN = 1,
	USDT_SPAN_END = 2,
};

struct usdt_arg_spec {
	__u64 value;  /* constant, or displacement in two's complement */
	__u8 kind;    /* enum usdt_arg_kind */
	__u8 flags;   /* enum usdt_arg_flags */
	__u8 size;    /* bytes: 1 to 8 */
	__u8 reg;     /* pt_regs word (8 bytes each) or USDT_REG_NONE */
	__u8 index;   /* pt_regs word or USDT_REG_NONE */
	__u8 shift;   /* MEM, ADDR: log2 of the scale; REG: bits to shift right (8 for %ah) */
	__u8 capture; /* stock program: enum usdt_capture; captured texts have the record's string slots in order */
	__u8 window;  /* MEM: USDT_WINDOW(number, bytes from its start), 0: read alone */
};

/* What the stock program does with the text an argument points to. */
enum usdt_capture {
	USDT_CAPTURE_NONE = 0,
	USDT_CAPTURE_STRING = 1, /* up to its NUL */
	USDT_CAPTURE_LIKELY = 2, /* the same, where it may be a pointer; what cannot be read is no text */
	USDT_CAPTURE_LENGTH = 3, /* and so on: as many bytes as the argument of this number, less 3, says */
};
#define USDT_CAPTURE_BY(arg) ((__u8)(USDT_CAPTURE_LENGTH + (arg)))
#define USDT_LENGTH_ARGS (255 - USDT_CAPTURE_LENGTH + 1) /* arguments that can be lengths: the first so many */

/* Neighbouring memory operands on one base are one read: a window of at most 64 bytes. A spec has up to three. */
#define USDT_WINDOW_BYTES 64
#define USDT_WINDOWS 3
#define USDT_WINDOW(number, offset) ((__u8)((number) << 6 | (offset))) /* number: 1..3 */
#define USDT_WINDOW_NUMBER(window) ((window) >> 6)
#define USDT_WINDOW_OFFSET(window) ((window)&63)

/* One entry of the spec table; `args` has as many entries as the plan's longest spec, with its steps. */
struct usdt_spec {
	__u64 user_cookie; /* the application's own, for usdt_cookie() */
	__u32 arg_cnt;
	__u8 window_size[1 + USDT_WINDOWS]; /* bytes of windows 1..3; [0] is 0 */
	struct usdt_arg_spec args[];	    /* arg_cnt of them, then steps */
};

/* How a spec reaches the program. A constant of each program says which it is, and the verifier removes the others. */
enum usdt_carrier {
	USDT_CARRIER_TABLE = 0,	  /* cookie: bits 0..31 index of the spec table, bits 32..61 site number */
	USDT_CARRIER_COOKIE = 1,  /* cookie: the whole spec, see cookie.h */
	USDT_CARRIER_LINK = 2,	  /* in the program's own instructions; the cookie is as for the table */
	USDT_CARRIER_IP_HASH = 3, /* beside TABLE: a kernel without attach cookies, they are looked up by address */
	USDT_CARRIER_FIXED = 4,	  /* beside TABLE: the same, and the program sits on one site: in its instructions */
};
#define USDT_CARRIER_BIT(carrier) (1u << (carrier))

/* Cookies of the table. */
#define USDT_COOKIE_CARRIER(cookie) ((__u32)((__u64)(cookie) >> 62))
#define USDT_COOKIE_SITE(cookie) ((__u32)((__u64)(cookie) >> 32) & 0x3fffffffu)
#define USDT_COOKIE_SPEC(cookie) ((__u32)(cookie))
#define USDT_TABLE_COOKIE(site, spec) (((__u64)(site) << 32) | (__u32)(spec))
#define USDT_MAX_SITES (1u << 30)
/* A spec's arg_cnt and an argument's number fit a byte; arguments beyond are unreadable. */
#define USDT_MAX_ARGS 255
/* Entries of a spec, arguments and steps, at most (both are numbered by a byte); and how many of its first arguments
 * can have placeholders, and values of each site's own, where the spec is a program's constant. */
#define USDT_LINK_ENTRIES 512
#define USDT_LINK_ARGS 32

/* Placeholders in the instructions of a program, which the loader of a per-link one patches with what the spec of
 * argument `n` (below USDT_LINK_ARGS) says. Each is an immediate, PLACEHOLDER + n:
 *
 *     r = KIND                                               enum usdt_patched_kind; as it is: OTHER
 *     r = *(u64 *)(ctx + ..); r <<= CUT; r >>= CUT           PATCHED_REG: the register's offset, and the shifts that
 * cut it to its size, the second one extending a signed one r = *(u64 *)(ctx + ..); r += DISPLACEMENT PATCHED_MEM: its
 * address r = WINDOW; r = SIZE; r <<= TRIM; r >>= TRIM           PATCHED_MEM: `window` and `size` of its spec; the
 * shifts as above r = SLOT; r <<= TRIM; r >>= TRIM                       a program that is given slots: which one; 255:
 * none
 *
 * Programs of other carriers never get there. */
enum usdt_patch_arg {
	USDT_PATCH_ARG_KIND = 0x7d5d0100,
	USDT_PATCH_ARG_CUT = 0x7d5d0200,
	USDT_PATCH_ARG_DISPLACEMENT = 0x7d5d0300,
	USDT_PATCH_ARG_WINDOW = 0x7d5d0400,
	USDT_PATCH_ARG_SIZE = 0x7d5d0500,
	USDT_PATCH_ARG_TRIM = 0x7d5d0600,
	USDT_PATCH_ARG_SLOT = 0x7d5d0700,
};
enum usdt_patched_kind {
	USDT_PATCHED_OTHER =
	    0, /* found and read as with every carrier: the spec is the program's link_spec (constants.h) */
	USDT_PATCHED_REG = 1,  /* a whole register, or its lowest bytes */
	USDT_PATCHED_MEM = 2,  /* memory at a register and a displacement of 32 bits */
	USDT_PATCHED_SLOT = 3, /* a slot, of programs that are given those (enum usdt_source) */
};
/* Placeholders of what the loader knows of the kernel or of one site:
 *
 *     call IS_RETURN, call SESSION_COOKIE                    kfuncs, by their numbers in the kernel's BTF
 *     r = COOKIE ll                                          USDT_CARRIER_FIXED: the cookie
 *     r0 = *(u64 *)(r10 - N); r0 = *(u64 *)(r10 - M); call FILTER
 *                                                            the instructions of a question (filter.h) at r10 - N, with
 *                                                            a row at r10 - M
 *     the same and call PAIR                                 those of what pairs the ends of spans, as a row's keys */
enum usdt_patch {
	USDT_PATCH_IS_RETURN = 0x7d5e0001,
	USDT_PATCH_SESSION_COOKIE = 0x7d5e0002,
	USDT_PATCH_COOKIE = 0x7d5e0003,
	USDT_PATCH_FILTER = 0x7d5e0004,
	USDT_PATCH_PAIR = 0x7d5e0005,
};

/* Arguments that one question reads, at most, and the words its instructions have to work in (filter.h). */
#define USDT_FILTER_VALUES 6
#define USDT_FILTER_SCRATCH 8
/* Words of the keys of a table's row, at most. */
#define USDT_ROW_WORDS 8

/* Addresses without attach cookies. Code is mapped by pages, so the low 12 bits of a site's address are the same in
 * every process; sites that share them are given to different programs, which makes the group number part of the key.
 */
#define USDT_IP_KEY(group, ip) ((__u32)(group) << 12 | ((__u32)(ip)&0xfffu))

#ifdef __cplusplus
#define USDT_STATIC_ASSERT(what) static_assert(what, #what)
#else
#define USDT_STATIC_ASSERT(what) _Static_assert(what, #what)
#endif
USDT_STATIC_ASSERT(sizeof(struct usdt_arg_spec) == 16);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_arg_spec, kind) == 8);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_arg_spec, reg) == 11);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_arg_spec, capture) == 14);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_spec, window_size) == 12);
USDT_STATIC_ASSERT(sizeof(struct usdt_spec) == 16);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_spec, args) == 16);

#endif /* USDT_BPF_SPEC_H */
