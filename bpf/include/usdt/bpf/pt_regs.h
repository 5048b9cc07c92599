/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The registers of each machine, for BPF programs. User space has these facts in arch/, and a test holds both equal
 * (tests/arch/bpf_tables_test.cpp). A new machine has a block of its own here. Only macros, for BPF programs, C and
 * C++. Offsets are in bytes in the kernel's struct pt_regs; a word is a register's number in specs.
 *
 *     PT_REGS(X)      X(word, offset) for each general register and for the instruction pointer
 *     REG_LOAD        type of the load of a register
 *     REG_BITS        width of a register in packed cookies
 *     IP_OFFSET       the instruction pointer
 *     FRAME_OFFSET    a register of the kernel that is different in all calls that a thread is in: usdt_frame()
 *     RETURN_POPS     by how much that one, or a process's stack pointer, is larger at the return of a call than at its
 *                     entry; of a 32-bit process usdt_address_size() knows it
 *     STACK_WORD      the stack pointer
 *     KEPT_WORDS      registers that a function leaves as it found them
 *     GOROUTINE_WORD  the register that has the goroutine in Go programs (abi-internal.md of Go's compiler); 255: none
 *     CALLER_OFFSET   the register that has the return address at a function's first instruction; -1: the stack has it
 *     ADDRESS_SIZE    bytes of an address in the kernel
 *     CODE_OFFSET     the register that tells 32-bit processes from others: its lowest byte is then COMPAT_CODE; -1:
 *                     all that are traced have addresses like the kernel's
 *     TABLES_UNWIND   whether the kernel finds callers by tables, even of functions that have no frame yet
 *     KPROBE_IP       at a kprobe the instruction pointer is so many bytes behind the probe's address
 *     KERNEL_HALF     the lowest address of the kernel
 *     THREAD_SEGMENT  the segment whose base is the thread pointer (usdt_thread_base()); "": there is none
 *     THREAD_CHECKED  whether the word that a thread pointer points to is the pointer itself
 *     THREAD_LATE     whether the kernel has the pointer of a program's first thread late
 */
#ifndef USDT_BPF_PT_REGS_H
#define USDT_BPF_PT_REGS_H

#include "cookie.h"

/* clang-format off */

/* x86-64: arch/x86/include/uapi/asm/ptrace.h. FRAME is the stack pointer, where the return address is at the entry. */
#define USDT_X86_PT_REGS(X)                                                                                     \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72) X(10, 80)       \
	X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(16, 128) X(19, 152)
#define USDT_X86_REG_LOAD "u64"
#define USDT_X86_REG_BITS USDT_REG_BITS_X86
#define USDT_X86_IP_OFFSET 128
#define USDT_X86_FRAME_OFFSET 152
#define USDT_X86_CALLER_OFFSET -1
#define USDT_X86_ADDRESS_SIZE 8
#define USDT_X86_STACK_WORD 19
#define USDT_X86_KEPT_WORDS 0, 1, 2, 3, 4, 5 /* r15 to r12, rbp, rbx: System V ABI, AMD64, figure 3.4 */
#define USDT_X86_GOROUTINE_WORD 1
#define USDT_X86_RETURN_POPS 8
#define USDT_X86_CODE_OFFSET 136 /* cs */
#define USDT_X86_COMPAT_CODE 0x23 /* __USER32_CS of arch/x86/include/asm/segment.h; Xen has more above */
#define USDT_X86_TABLES_UNWIND 1
#define USDT_X86_KPROBE_IP 1 /* the byte of an int3 */
#define USDT_X86_KERNEL_HALF (1ull << 63)
#define USDT_X86_THREAD_SEGMENT "fs"
#define USDT_X86_THREAD_CHECKED 1
#define USDT_X86_THREAD_LATE 0

/* A 32-bit x86 kernel: that header, too. Specs number its registers as those of the 64-bit kernel. */
#define USDT_I386_PT_REGS(X)                                                                                    \
	X(4, 20) X(5, 0) X(10, 24) X(11, 4) X(12, 8) X(13, 12) X(14, 16) X(16, 48) X(19, 60)
#define USDT_I386_REG_LOAD "u32"
#define USDT_I386_REG_BITS USDT_REG_BITS_X86
#define USDT_I386_IP_OFFSET 48
#define USDT_I386_FRAME_OFFSET 60
#define USDT_I386_CALLER_OFFSET -1
#define USDT_I386_ADDRESS_SIZE 4
#define USDT_I386_STACK_WORD 19
#define USDT_I386_KEPT_WORDS 4, 5, 13, 14 /* ebp, ebx, esi, edi */
#define USDT_I386_GOROUTINE_WORD 255 /* none */
#define USDT_I386_RETURN_POPS 4
#define USDT_I386_CODE_OFFSET -1
#define USDT_I386_COMPAT_CODE 0
#define USDT_I386_TABLES_UNWIND 0
#define USDT_I386_KPROBE_IP 1
#define USDT_I386_KERNEL_HALF 0xc0000000u /* PAGE_OFFSET with VMSPLIT_3G */
#define USDT_I386_THREAD_SEGMENT "gs"
#define USDT_I386_THREAD_CHECKED 1
#define USDT_I386_THREAD_LATE 0

/* arm64: struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h. FRAME is x29, the caller's frame: at a return
 * that kprobe_multi catches the stack pointer is not to be relied on, since Linux 6.14 saves only x0 to x7 and x29
 * there (return_to_handler in arch/arm64/kernel/entry-ftrace.S). */
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
#define USDT_ARM64_ADDRESS_SIZE 8
#define USDT_ARM64_STACK_WORD 31
#define USDT_ARM64_KEPT_WORDS 19, 20, 21, 22, 23, 24, 29 /* IHI 0055, 6.1.1 */
#define USDT_ARM64_GOROUTINE_WORD 28
#define USDT_ARM64_RETURN_POPS 0
#define USDT_ARM64_CODE_OFFSET -1
#define USDT_ARM64_COMPAT_CODE 0
#define USDT_ARM64_TABLES_UNWIND 0
#define USDT_ARM64_KPROBE_IP 0
#define USDT_ARM64_KERNEL_HALF (1ull << 63)
#define USDT_ARM64_THREAD_SEGMENT ""
#define USDT_ARM64_THREAD_CHECKED 0
#define USDT_ARM64_THREAD_LATE 1

/* riscv64: struct user_regs_struct of arch/riscv/include/uapi/asm/ptrace.h: the program counter, then x1 to x31. FRAME
 * is s0, the caller's frame: where kprobe_multi catches a return, the stack pointer is not saved
 * (arch/riscv/kernel/mcount.S, SAVE_RET_ABI_STATE). */
#define USDT_RISCV_PT_REGS(X)                                                                                   \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72)                 \
	X(10, 80) X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(15, 120) X(16, 128) X(17, 136) X(18, 144)         \
	X(19, 152) X(20, 160) X(21, 168) X(22, 176) X(23, 184) X(24, 192) X(25, 200) X(26, 208)                 \
	X(27, 216) X(28, 224) X(29, 232) X(30, 240) X(31, 248)
#define USDT_RISCV_REG_LOAD "u64"
#define USDT_RISCV_REG_BITS USDT_REG_BITS_RISCV
#define USDT_RISCV_IP_OFFSET 0
#define USDT_RISCV_FRAME_OFFSET 64
#define USDT_RISCV_CALLER_OFFSET 8
#define USDT_RISCV_ADDRESS_SIZE 8
#define USDT_RISCV_STACK_WORD 2
#define USDT_RISCV_KEPT_WORDS 8, 9, 18, 19, 20, 21, 22 /* s0 to s6: RISC-V ELF psABI, "Integer Register Convention" */
#define USDT_RISCV_GOROUTINE_WORD 27
#define USDT_RISCV_RETURN_POPS 0
#define USDT_RISCV_CODE_OFFSET -1
#define USDT_RISCV_COMPAT_CODE 0
#define USDT_RISCV_TABLES_UNWIND 0
#define USDT_RISCV_KPROBE_IP 0
#define USDT_RISCV_KERNEL_HALF (1ull << 63)
#define USDT_RISCV_THREAD_SEGMENT ""
#define USDT_RISCV_THREAD_CHECKED 0
#define USDT_RISCV_THREAD_LATE 0

/* clang-format on */

#endif /* USDT_BPF_PT_REGS_H */
