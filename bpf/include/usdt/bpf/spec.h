/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The spec of a site: where its arguments are, encoded for BPF programs. One layout for BPF programs (clang -target
 * bpf), C and C++. User space writes specs at attach time, BPF programs only read them. Any change of layout or meaning
 * raises USDT_SPEC_VERSION, which the loader compares with that of the program. */
#ifndef USDT_BPF_SPEC_H
#define USDT_BPF_SPEC_H

#include "types.h"

#define USDT_SPEC_VERSION 12

/* The kind of an entry (struct usdt_arg_spec): says where an argument is, and so what the other fields mean. */
enum usdt_arg_kind {
	USDT_ARG_UNREADABLE = 0, /* nowhere a program can read it; the plan in user space keeps the reason */
	USDT_ARG_CONST = 1,	 /* the number `value`, already cut to `size` and extended by its sign */
	USDT_ARG_REG = 2,	 /* in pt_regs word `reg`, from bit `shift` on */
	USDT_ARG_MEM = 3,	 /* `size` bytes of memory at the address below */
	USDT_ARG_ADDR = 4,	 /* it is the address below, and nothing is loaded from there */
	USDT_ARG_STEP = 5,	 /* no argument but a step on the way to one; steps come behind all arguments */
	/* A flag of CONST, REG, MEM and ADDR: the entry is only the beginning of the way to the value, and steps lead
	 * on. `window` is then the number of the first of them, counted among the steps of the spec. */
	USDT_ARG_HAS_STEPS = 1 << 7,
};
#define USDT_ARG_KIND(kind) ((kind) & ~USDT_ARG_HAS_STEPS)

/* A step (USDT_ARG_STEP) takes the value so far for an address and adds a distance. Its fields:
 *     value   the distance in bytes, in two's complement; with ADDR32 the sum wraps at 2^32
 *     size    how many bytes are read at the sum, extended by their sign with SIGNED; 0: none, the sum is the result
 *     window  USDT_STEP_SWAPPED | N: of that the lowest N bytes alone count, turned around, before they are extended;
 *             N is 2, 4 or 8, and `size` or less
 *     shift   the result is shifted right by so many bits, and then
 *     index   so many of its lowest bits are kept, those of a bit-field; 0: all of them
 *     reg     how many more steps follow this one */
#define USDT_MAX_STEPS 16 /* the most steps of one value */
#define USDT_STEP_SWAPPED 0x80

/* The address of MEM and ADDR is, modulo 2^64 (2^32 with ADDR32):
 *     value + (IP ? instruction pointer : 0) + (reg) + (index << shift) + (THREAD ? thread pointer : 0) */
enum usdt_arg_flags {
	USDT_ARG_SIGNED = 1 << 0,
	USDT_ARG_FLOAT = 1 << 1,     /* the value is the bits of an IEEE 754 float or double */
	USDT_ARG_ADDR32 = 1 << 2,    /* the address wraps at 2^32 (i386, and addr32 on x86-64) */
	USDT_ARG_IP = 1 << 3,	     /* the address has the instruction pointer at the hit in it */
	USDT_ARG_INDEX_U32 = 1 << 4, /* of the index register the low 32 bits, extended by zeros */
	USDT_ARG_INDEX_S32 = 1 << 5, /* of the index register the low 32 bits, extended by their sign */
	USDT_ARG_PAIR = 1 << 6,	     /* REG: the upper 32 bits are in word `index` (i386) */
	USDT_ARG_THREAD = 1 << 6,    /* MEM, ADDR, which have no PAIR: the address is relative to the thread pointer */
	USDT_ARG_RESULT = 1 << 7,    /* the return value of a call, which is not there before its end */
};

#define USDT_REG_NONE 0xff

/* The context that a program is given at a hit: `reg` and `index` number its words or slots. A constant of each
 * program. */
enum usdt_source {
	USDT_SOURCE_USER = 0,	   /* uprobes: pt_regs of the process; memory is the process's */
	USDT_SOURCE_KERNEL = 1,	   /* kprobes: pt_regs at a kernel function; memory is the kernel's */
	USDT_SOURCE_SLOTS = 2,	   /* trampolines: slots of arguments, read by bpf_get_func_arg() (Linux 5.17) */
	USDT_SOURCE_OLD_SLOTS = 3, /* trampolines: slots read from the context, before Linux 5.17 */
	USDT_SOURCE_RAW = 4,	   /* raw tracepoints: the context is the slots */
};
/* Trampolines hand over at most 12 slots (MAX_BPF_FUNC_ARGS of the kernel's include/linux/bpf.h); in specs the return
 * value has the number after them. */
#define USDT_SLOTS 12
#define USDT_SLOT_RESULT 12

/* The ends of a call that a program runs at; one of both ends is a session. A constant of each program. */
enum usdt_moment {
	USDT_AT_ENTRY = 1,
	USDT_AT_RETURN = 2,
};

/* The way in which a program comes to run at the return of a function of a file. A constant of each program. */
enum usdt_return_by {
	USDT_RETURN_BY_PROBE = 0,	  /* the probe's address in place of the return address: RET has run */
	USDT_RETURN_BY_RET = 1,		  /* a probe on the RET instruction, which has not run yet */
	USDT_RETURN_BY_GOROUTINE_RET = 2, /* on RET in Go: a call is known by goroutine and depth of its stack */
	USDT_RETURN_BY_ANY_RET =
	    3, /* also on those of functions that it jumps to: a call is known by its caller, too */
};

/* Which end of a span, from a hit at one place to a hit at another, the program is at. A constant of each program. */
enum usdt_span_side {
	USDT_NO_SPAN = 0,
	USDT_SPAN_BEGIN = 1,
	USDT_SPAN_END = 2,
};

/* One entry of a spec: an argument, or a step on the way to one. */
struct usdt_arg_spec {
	__u64 value;  /* the constant, or the displacement in two's complement */
	__u8 kind;    /* enum usdt_arg_kind */
	__u8 flags;   /* enum usdt_arg_flags */
	__u8 size;    /* of the value, 1 to 8 bytes */
	__u8 reg;     /* a pt_regs word, by its number in pt_regs.h, or a slot; or USDT_REG_NONE */
	__u8 index;   /* likewise */
	__u8 shift;   /* MEM, ADDR: log2 of the scale; REG: bits to shift right by (8 for %ah) */
	__u8 capture; /* enum usdt_capture: for the stock program. The texts of a site have the string slots of its
		       * record in the order of the arguments */
	__u8 window;  /* MEM: USDT_WINDOW(number, bytes from the window's start); 0: read alone */
};

/* The way in which the stock program copies the text that an argument points to. */
enum usdt_capture {
	USDT_CAPTURE_NONE = 0,
	USDT_CAPTURE_STRING = 1, /* copies it up to its NUL */
	USDT_CAPTURE_LIKELY = 2, /* does so if the number can be a pointer; if nothing can be read, it is no text */
	/* LENGTH + REACH + N: copies as many bytes as an argument says, which is N places behind this one, at most
	 * REACH either way. END + REACH + N: copies what is before the address that it is. */
	USDT_CAPTURE_LENGTH = 3,
	USDT_CAPTURE_END = 128,
};
#define USDT_CAPTURE_REACH 62
#define USDT_CAPTURE_BY(text, length) ((__u8)(USDT_CAPTURE_LENGTH + USDT_CAPTURE_REACH + (length) - (text)))
#define USDT_CAPTURE_UP_TO(text, end) ((__u8)(USDT_CAPTURE_END + USDT_CAPTURE_REACH + (end) - (text)))
/* The argument that is the length or the end of argument `text`, whose capture is USDT_CAPTURE_LENGTH or more. */
#define USDT_CAPTURE_ARG(text, capture)          \
	((text) + (capture)-USDT_CAPTURE_REACH - \
	 ((capture) >= USDT_CAPTURE_END ? USDT_CAPTURE_END : USDT_CAPTURE_LENGTH))

/* Memory operands that are close together on one base are fetched by one read, of a window of at most 64 bytes. A spec
 * has up to three windows. */
#define USDT_WINDOW_BYTES 64
#define USDT_WINDOWS 3
#define USDT_WINDOW(number, offset) ((__u8)((number) << 6 | (offset))) /* number: 1..3 */
#define USDT_WINDOW_NUMBER(window) ((window) >> 6)
#define USDT_WINDOW_OFFSET(window) ((window)&63)

/* A spec, one value of the map usdt_specs, where `args` has as many entries as the plan's longest spec. */
struct usdt_spec {
	__u64 user_cookie; /* the application's cookie, for usdt_cookie() */
	__u32 arg_cnt;
	__u8 window_size[1 + USDT_WINDOWS]; /* sizes of windows 1 to 3 in bytes; [0] is 0 */
#ifndef __cplusplus		     /* whose standard has no such members: there they are what is behind this struct */
	struct usdt_arg_spec args[]; /* arg_cnt arguments, and the steps behind them */
#endif
};

/* How a spec reaches the program at a hit. A constant of each program says which it is, and the verifier removes the
 * code for the others. */
enum usdt_carrier {
	USDT_CARRIER_TABLE = 0,	  /* the attach cookie has the index of the spec in usdt_specs, and the site number */
	USDT_CARRIER_COOKIE = 1,  /* the attach cookie is the whole spec (cookie.h) */
	USDT_CARRIER_LINK = 2,	  /* the spec is in the program's own instructions; the cookie is as for TABLE */
	USDT_CARRIER_IP_HASH = 3, /* with TABLE: the kernel has no attach cookies, they are found by address */
	USDT_CARRIER_FIXED = 4,	  /* with TABLE: likewise, and the program's one cookie is in its instructions */
};
#define USDT_CARRIER_BIT(carrier) (1u << (carrier))

/* A cookie of the table: the index of the spec in bits 0 to 31, the site number in bits 32 to 61, the carrier above. */
#define USDT_COOKIE_CARRIER(cookie) ((__u32)((__u64)(cookie) >> 62))
#define USDT_COOKIE_SITE(cookie) ((__u32)((__u64)(cookie) >> 32) & 0x3fffffffu)
#define USDT_COOKIE_SPEC(cookie) ((__u32)(cookie))
#define USDT_TABLE_COOKIE(site, spec) (((__u64)(site) << 32) | (__u32)(spec))
#define USDT_MAX_SITES (1u << 30)
/* The number of an argument fits a byte; arguments beyond are unreadable. */
#define USDT_MAX_ARGS 255
/* A spec has at most so many entries, arguments and steps (either kind is numbered by a byte). */
#define USDT_LINK_ENTRIES 512
/* Per-link programs: so many of the first arguments can have placeholders, and values that differ between sites. */
#define USDT_LINK_ARGS 32

/* clang-format off */
/* Placeholders in the instructions of a program, one set for each argument `n` below USDT_LINK_ARGS. The loader of a
 * per-link program writes there what the spec of the argument says. Each is an immediate operand, PLACEHOLDER + n:
 *
 *     r = KIND                                      enum usdt_patched_kind; a placeholder that was left: OTHER
 *     r = *(u64 *)(ctx + 0); r <<= CUT; r >>= CUT   PATCHED_REG: the 0 becomes the offset of the register, and the
 *                                                   shifts cut it to its size; of a signed one the second shift is s>>=
 *     r = *(u64 *)(ctx + 0); r += DISPLACEMENT      PATCHED_MEM: offset of the base register, and displacement
 *     r = WINDOW; r = SIZE                          PATCHED_MEM: `window` and `size` of its spec
 *     r = SLOT                                      PATCHED_SLOT: the number of the slot; 255: there is none
 *     r <<= TRIM; r >>= TRIM                        PATCHED_MEM, PATCHED_SLOT: what CUT is to a register
 *
 * Programs of other carriers never run these instructions. */
/* clang-format on */
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
	/* Not in the instructions: read as with every carrier, from the program's link_spec (constants.h). */
	USDT_PATCHED_OTHER = 0,
	USDT_PATCHED_REG = 1,  /* a whole register, or its lowest bytes */
	USDT_PATCHED_MEM = 2,  /* memory at a register and a displacement of 32 bits */
	USDT_PATCHED_SLOT = 3, /* a slot, in programs that are given those (enum usdt_source) */
};
/* clang-format off */
/* Placeholders for what the loader knows of the kernel or of a site:
 *
 *     call IS_RETURN, call SESSION_COOKIE   the kfuncs bpf_session_is_return() and bpf_session_cookie(): the numbers
 *                                           that they have in the kernel's BTF
 *     r = COOKIE ll                         USDT_CARRIER_FIXED: the cookie
 *     r0 = *(u64 *)(r10 - N)
 *     r0 = *(u64 *)(r10 - M)
 *     call FILTER                           becomes the instructions that answer the question (filter.h) at r10 - N,
 *                                           with a row at r10 - M
 *     these loads with call PAIR            becomes those that compute what pairs the ends of spans, as a row's keys */
/* clang-format on */
enum usdt_patch {
	USDT_PATCH_IS_RETURN = 0x7d5e0001,
	USDT_PATCH_SESSION_COOKIE = 0x7d5e0002,
	USDT_PATCH_COOKIE = 0x7d5e0003,
	USDT_PATCH_FILTER = 0x7d5e0004,
	USDT_PATCH_PAIR = 0x7d5e0005,
};

/* A question reads at most so many arguments, and its instructions have so many words of 8 bytes to work in
 * (filter.h). */
#define USDT_FILTER_VALUES 6
#define USDT_FILTER_SCRATCH 8
/* The keys of a table's row have at most so many words of 8 bytes. */
#define USDT_ROW_WORDS 8

/* The key of usdt_ips, where the kernel has no attach cookies. Code is mapped by pages, so that every process has equal
 * low 12 bits in a site's address. Sites that share these bits are given to different programs: `group` is the number
 * of the program. */
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
#ifndef __cplusplus
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_spec, args) == 16);
#endif

#endif /* USDT_BPF_SPEC_H */
