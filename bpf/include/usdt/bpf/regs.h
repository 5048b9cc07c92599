/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reading the registers of a hit. Define the kernel's machine before the include: __TARGET_ARCH_x86 (64-bit),
 * __TARGET_ARCH_i386, __TARGET_ARCH_arm64 or __TARGET_ARCH_riscv. */
#ifndef USDT_BPF_REGS_H
#define USDT_BPF_REGS_H

#include "hit.h"
#include "pt_regs.h"

#if defined(__TARGET_ARCH_x86)
#define USDT_TARGET(what) USDT_X86_##what
#elif defined(__TARGET_ARCH_i386)
#define USDT_TARGET(what) USDT_I386_##what
#elif defined(__TARGET_ARCH_arm64)
#define USDT_TARGET(what) USDT_ARM64_##what
#elif defined(__TARGET_ARCH_riscv)
#define USDT_TARGET(what) USDT_RISCV_##what
#else
#error "define __TARGET_ARCH_x86, __TARGET_ARCH_i386, __TARGET_ARCH_arm64 or __TARGET_ARCH_riscv"
#endif

/* One load at a constant offset. It is in assembler, since clang would merge the cases of a switch into one load at a
 * variable offset from the context, which the verifier refuses ("dereference of modified ctx ptr"). */
#define USDT_LOAD_REG(dst, regs, offset) \
	asm volatile("%0 = *(" USDT_TARGET(REG_LOAD) " *)(%1 + %2)" : "=r"(dst) : "r"(regs), "i"(offset))

/* The size of an address in the process whose registers these are: 4 or 8 bytes. */
static __always_inline __u32 usdt_address_size(void *regs)
{
	__u64 code;

	if (USDT_TARGET(CODE_OFFSET) < 0)
		return USDT_TARGET(ADDRESS_SIZE);
	USDT_LOAD_REG(code, regs, USDT_TARGET(CODE_OFFSET));
	return (code & 0xff) == USDT_TARGET(COMPAT_CODE) ? 4 : 8;
}

/* The register that is word `word` in specs; 0: there is no such one. */
static __always_inline __u64 usdt_reg(void *regs, __u8 word)
{
	__u64 value = 0;

	switch (word) {
#define USDT_CASE(number, offset)                   \
	case number:                                \
		USDT_LOAD_REG(value, regs, offset); \
		break;
		USDT_TARGET(PT_REGS)(USDT_CASE)
#undef USDT_CASE
	}
	return value;
}

/* The instruction pointer. */
static __always_inline __u64 usdt_ip(void *regs)
{
	__u64 ip;

	USDT_LOAD_REG(ip, regs, USDT_TARGET(IP_OFFSET));
	return ip;
}

#endif /* USDT_BPF_REGS_H */
