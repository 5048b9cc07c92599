/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What BPF programs know of each machine's registers. The user-space side of the same facts is arch/; a test holds both
 * equal (tests/arch/bpf_tables_test.cpp), and a new machine has a block here. Macros only, for BPF programs, C and C++.
 *
 *     PT_REGS(X)      X(word, offset) for each general register and the instruction pointer: its number in specs, and
 *                     the byte offset in the kernel's struct pt_regs
 *     REG_LOAD        type of the load of one
 *     REG_BITS        width of a register in packed cookies
 *     IP_OFFSET       of the instruction pointer
 *     FRAME_OFFSET    of what tells the calls of a thread apart at their entries and returns
 *     STACK_WORD      the stack pointer
 *     GOROUTINE_WORD  the register that has the goroutine in Go programs (abi-internal.md of its compiler)
 *     CALLER_OFFSET   where that is a register: of the return address at a function's first instruction
 *     RETURN_POPS     by how much that is larger at the return; of 32-bit processes usdt_address_size() knows
 *     CODE_OFFSET     of the register that tells 32-bit processes apart, which have COMPAT_CODE in its lowest byte
 *     KPROBE_IP       kprobes leave the instruction pointer so many bytes behind the address
 *     KERNEL_HALF     the lowest address of the kernel
 *     THREAD_SEGMENT  the register whose base is the thread pointer, which usdt_thread_base() finds; "": there is none
 */
#ifndef USDT_BPF_PT_REGS_H
#define USDT_BPF_PT_REGS_H

#include "cookie.h"

/* clang-format off */

/* x86-64: arch/x86/include/uapi/asm/ptrace.h. FRAME: the stack pointer, on which the return address was. */
#define USDT_X86_PT_REGS(X)                                                                                     \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72) X(10, 80)       \
	X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(16, 128) X(19, 152)
#define USDT_X86_REG_LOAD "u64"
#define USDT_X86_REG_BITS USDT_REG_BITS_X86
#define USDT_X86_IP_OFFSET 128
#define USDT_X86_FRAME_OFFSET 152
#define USDT_X86_STACK_WORD 19
#define USDT_X86_GOROUTINE_WORD 1
#define USDT_X86_RETURN_POPS 8
#define USDT_X86_CODE_OFFSET 136 /* cs */
#define USDT_X86_COMPAT_CODE 0x23 /* __USER32_CS of arch/x86/include/asm/segment.h; Xen has more above */
#define USDT_X86_KPROBE_IP 1 /* the byte of an int3 */
#define USDT_X86_KERNEL_HALF (1ull << 63)
#define USDT_X86_THREAD_SEGMENT "fs"

/* A 32-bit x86 kernel: the same header. Specs number its registers as those of the 64-bit kernel. */
#define USDT_I386_PT_REGS(X)                                                                                    \
	X(4, 20) X(5, 0) X(10, 24) X(11, 4) X(12, 8) X(13, 12) X(14, 16) X(16, 48) X(19, 60)
#define USDT_I386_REG_LOAD "u32"
#define USDT_I386_REG_BITS USDT_REG_BITS_X86
#define USDT_I386_IP_OFFSET 48
#define USDT_I386_FRAME_OFFSET 60
#define USDT_I386_STACK_WORD 19
#define USDT_I386_GOROUTINE_WORD 255 /* none */
#define USDT_I386_RETURN_POPS 4
#define USDT_I386_KPROBE_IP 1
#define USDT_I386_KERNEL_HALF 0xc0000000u /* PAGE_OFFSET with VMSPLIT_3G */
#define USDT_I386_THREAD_SEGMENT "gs"

/* arm64: struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h. FRAME: x29, the caller's, since what kprobe_multi
 * says of the stack pointer at a return is anything (return_to_handler in arch/arm64/kernel/entry-ftrace.S, since 6.14,
 * saves x0 to x7 and x29 alone). */
#define USDT_ARM64_PT_REGS(X)                                                                                   \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72) X(10, 80)       \
	X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(15, 120) X(16, 128) X(17, 136) X(18, 144) X(19, 152)        \
	X(20, 160) X(21, 168) X(22, 176) X(23, 184) X(24, 192) X(25, 200) X(26, 208) X(27, 216) X(28, 224)      \
	X(29, 232) X(30, 240) X(31, 248) X(32, 256)
#define USDT_ARM64_REG_LOAD "u64"
#define USDT_ARM64_REG_BITS USDT_REG_BITS_ARM64
#define USDT_ARM64_IP_OFFSET 256
#define USDT_ARM64_FRAME_OFFSET 232
#define USDT_ARM64_CALLER_OFFSET 240
#define USDT_ARM64_STACK_WORD 31
#define USDT_ARM64_GOROUTINE_WORD 28
#define USDT_ARM64_RETURN_POPS 0
#define USDT_ARM64_KPROBE_IP 0
#define USDT_ARM64_KERNEL_HALF (1ull << 63)
#define USDT_ARM64_THREAD_SEGMENT ""

/* clang-format on */

#endif /* USDT_BPF_PT_REGS_H */
