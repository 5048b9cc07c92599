/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Memory of the process, or of the kernel, at a hit: numbers, windows of neighbouring operands, texts. For BPF
 * programs. */
#ifndef USDT_BPF_MEMORY_H
#define USDT_BPF_MEMORY_H

#include "regs.h"

/* The smallest size of pages, in bytes; where pages are larger they are touched more than once. */
#define USDT_PAGE 4096ull

/* The window (spec.h) that was read last. */
struct usdt_window {
	__u64 number; /* of the window that `words` has; 0: none */
	__u64 failed; /* bit N: window N cannot be read as a whole; its operands are read one by one */
	__u64 words[USDT_WINDOW_BYTES / 8 + 1];
	__u64 spare[5]; /* makes it as large as a question, which is asked in this memory (filter.h) */
};

/* Copies exactly `size` bytes, since the next one may be on a page that is not mapped; of the process or of the kernel,
 * by the program's source. A sleepable program waits for pages that are not in memory. 0, or a negative errno. */
static __always_inline long usdt_copy(const struct usdt_ctx *ctx, void *to, __u32 size, __u64 address)
{
	if (ctx->source != USDT_SOURCE_USER)
		return bpf_probe_read_kernel(to, size, (const void *)address);
	if (ctx->sleepable)
		return bpf_copy_from_user(to, size, (const void *)address);
	return bpf_probe_read_user(to, size, (const void *)address);
}

/* Empties a window. */
static __always_inline void usdt_init_window(const struct usdt_ctx *ctx, struct usdt_window *window)
{
	const __u64 zero = usdt_opaque(ctx, 0);

	window->number = zero;
	window->failed = zero;
	for (int i = 0; i < USDT_WINDOW_BYTES / 8 + 1; i++)
		window->words[i] = zero;
}

/* The 8 bytes at `address`, from the window that `in` names (USDT_WINDOW), which is read if it was not yet. False: the
 * window cannot be read as a whole. */
static __always_inline bool usdt_read_window(const struct usdt_ctx *ctx, __u8 in, __u64 address, __u64 *bits)
{
	__u64 number = USDT_WINDOW_NUMBER(in), offset = USDT_WINDOW_OFFSET(in);
	__u32 word = offset >> 3, shift = 8 * (offset & 7), size;
	struct usdt_window *window = ctx->window;

	if (window->number != number) {
		if (window->failed & 1ull << number)
			return false;
		size = ((usdt_spec_of(ctx->spec)->window_size[number] - 1) & (USDT_WINDOW_BYTES - 1)) + 1;
		/* Operands on both sides of 2^32 are not close together if addresses wrap there. */
		if ((address - offset) >> 32 != (address - offset + size - 1) >> 32)
			return false;
		window->number = usdt_opaque(ctx, number);
		if (usdt_copy(ctx, window->words, size, address - offset)) {
			window->number = usdt_opaque(ctx, 0);
			window->failed |= 1ull << number;
			return false;
		}
	}
	*bits = window->words[word] >> shift;
	if (shift)
		*bits |= window->words[word + 1] << (64 - shift);
	return true;
}

/* The `size` bytes at `address`; by a window if `in` (usdt_arg_spec::window) is not 0. 0 or -EFAULT. Only what is read
 * without a window is put on the stack here, so that `bits` can stay in a register. */
static __always_inline int usdt_read_memory(const struct usdt_ctx *ctx, __u8 in, __u32 size, __u64 address, __u64 *bits)
{
	__u64 word = 0;

	if (usdt_program()->windows && in && usdt_read_window(ctx, in, address, bits))
		return 0;
	if (usdt_copy(ctx, &word, size, address))
		return -USDT_EFAULT;
	*bits = word;
	return 0;
}

/* Whether a pointer that a kernel function was given is one of the kernel's: they and those of processes are in
 * different halves of the address space. */
static __always_inline bool usdt_is_kernel_pointer(const struct usdt_ctx *ctx, __u64 address)
{
	const __u64 kernel = USDT_TARGET(KERNEL_HALF);

	return ctx->source != USDT_SOURCE_USER && address >= kernel;
}

/* Copies the text at `address` up to its NUL. Its size with the NUL, at most `size`, or a negative errno. */
static __always_inline long usdt_copy_text(const struct usdt_ctx *ctx, char *to, __u32 size, __u64 address)
{
	long length;

	if (usdt_is_kernel_pointer(ctx, address))
		return bpf_probe_read_kernel_str(to, size, (const void *)address);
	length = bpf_probe_read_user_str(to, size, (const void *)address);
	/* Linux 6.1 returns 0 for an empty text, newer kernels return 1. */
	return length ? length : 1;
}

/* Copies exactly `size` bytes, of the process or of the kernel, whichever has the address. 0, or a negative errno. */
static __always_inline long usdt_copy_bytes(const struct usdt_ctx *ctx, char *to, __u32 size, __u64 address)
{
	if (usdt_is_kernel_pointer(ctx, address))
		return bpf_probe_read_kernel(to, size, (const void *)address);
	if (ctx->sleepable)
		return bpf_copy_from_user(to, size, (const void *)address);
	return bpf_probe_read_user(to, size, (const void *)address);
}

/* The base address in a segment descriptor, struct desc_struct (Intel SDM volume 3A, section 3.4.5). */
static __always_inline __u64 usdt_descriptor_base(__u64 descriptor)
{
	return (descriptor >> 16 & 0xffffff) | (descriptor >> 32 & 0xff000000);
}

/* The thread pointer of the current thread: the base of its %fs (x86-64), or, of a 32-bit process (`compat`), of its
 * %gs. Errors: -ENODATA, it is not known where the kernel keeps it; -EFAULT, there is none. The word that a thread
 * pointer points to is the pointer itself ("ELF Handling For Thread-Local Storage", sections on IA-32 and x86-64),
 * which is checked, so that no other base is taken for it.
 *
 * x86-64: thread_struct.fsbase of the current task is what arch_prctl(ARCH_SET_FS) or clone(CLONE_SETTLS) set last
 * (arch/x86/kernel/process_64.c do_arch_prctl_64, process.c copy_thread). A base the program wrote itself by wrfsbase
 * gets there only when the thread is next switched out (current_save_fsgs).
 * arm64: thread_struct.uw.tp_value is what clone(CLONE_SETTLS) set, or what tpidr_el0 was when the thread was last
 * switched out (arch/arm64/kernel/process.c tls_preserve_current_state()): what it is of a program's first thread
 * before then was another program's. No word there tells that it is one.
 * i386 under a 64-bit kernel: thread_struct.tls_array holds the three GDT entries of set_thread_area()
 * (arch/x86/kernel/tls.c); the first free one is given out first, so the C library's is entry 0. */
static __always_inline int usdt_thread_base(__u64 *base, bool compat)
{
	__u32 offset = compat ? usdt_kernel()->thread_tls_offset : usdt_kernel()->thread_fsbase_offset;
	__u64 word = 0, self = 0;

	*base = 0;
	if (!offset)
		return -USDT_ENODATA;
	if (bpf_probe_read_kernel(&word, sizeof(word), (char *)bpf_get_current_task() + offset))
		return -USDT_EFAULT;
	if (compat)
		word = usdt_descriptor_base(word);
	if (!USDT_TARGET(THREAD_CHECKED)) {
		*base = word;
		return word ? 0 : -USDT_EFAULT;
	}
	if (bpf_probe_read_user(&self, compat ? sizeof(__u32) : sizeof(__u64), (const void *)word) || self != word)
		return -USDT_EFAULT;
	*base = word;
	return 0;
}

#endif /* USDT_BPF_MEMORY_H */
