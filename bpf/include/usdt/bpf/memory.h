/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Memory of the process, or of the kernel, at a hit: numbers, windows of neighbouring operands, texts. For BPF
 * programs. */
#ifndef USDT_BPF_MEMORY_H
#define USDT_BPF_MEMORY_H

#include "regs.h"

/* The smallest pages there are: larger ones are touched more than once. */
#define USDT_PAGE 4096ull

/* What was read last for neighbouring operands. */
struct usdt_window {
	__u64 number; /* of the window in `words`, 0: none */
	__u64 failed; /* bit N: window N could not be read, its operands may be */
	__u64 words[USDT_WINDOW_BYTES / 8 + 1];
	__u64 spare[5]; /* as much as a question takes, which is asked here before anything else is read (filter.h) */
};

/* Exactly `size` bytes: the next one may be on an unmapped page. A sleepable program waits for pages to come in. */
static __always_inline long usdt_copy(const struct usdt_ctx *ctx, void *to, __u32 size, __u64 address)
{
	if (ctx->source != USDT_SOURCE_USER)
		return bpf_probe_read_kernel(to, size, (const void *)address);
	if (ctx->sleepable)
		return bpf_copy_from_user(to, size, (const void *)address);
	return bpf_probe_read_user(to, size, (const void *)address);
}

static __always_inline void usdt_init_window(const struct usdt_ctx *ctx, struct usdt_window *window)
{
	const __u64 zero = usdt_opaque(ctx, 0);

	window->number = zero;
	window->failed = zero;
	for (int i = 0; i < USDT_WINDOW_BYTES / 8 + 1; i++)
		window->words[i] = zero;
}

/* The 8 bytes at `address`, which is within a window of its spec; false if the window cannot be read as a whole. */
static __always_inline bool usdt_read_window(const struct usdt_ctx *ctx, __u8 in, __u64 address, __u64 *bits)
{
	__u64 number = USDT_WINDOW_NUMBER(in), offset = USDT_WINDOW_OFFSET(in);
	__u32 word = offset >> 3, shift = 8 * (offset & 7), size;
	struct usdt_window *window = ctx->window;

	if (window->number != number) {
		if (window->failed & 1ull << number)
			return false;
		size = ((usdt_spec_of(ctx->spec)->window_size[number] - 1) & (USDT_WINDOW_BYTES - 1)) + 1;
		/* Operands whose addresses wrap at 2^32 are no neighbours across it. */
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

/* The `size` bytes at `address`, by the window of number and offset `in` if that is not 0. 0 or -EFAULT. What is read
 * alone is on the stack here only, so that the value itself stays in a register. */
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

/* Kernel functions have pointers of both kinds, which are in different halves of the address space. */
static __always_inline bool usdt_is_kernel_pointer(const struct usdt_ctx *ctx, __u64 address)
{
	const __u64 kernel = USDT_TARGET(KERNEL_HALF);

	return ctx->source != USDT_SOURCE_USER && address >= kernel;
}

/* The text at `address`: bytes with the NUL, or a negative errno. */
static __always_inline long usdt_copy_text(const struct usdt_ctx *ctx, char *to, __u32 size, __u64 address)
{
	long length;

	if (usdt_is_kernel_pointer(ctx, address))
		return bpf_probe_read_kernel_str(to, size, (const void *)address);
	length = bpf_probe_read_user_str(to, size, (const void *)address);
	/* With the closing 0; for an empty text 6.1 says 0 and newer kernels 1. */
	return length ? length : 1;
}

/* Exactly `size` bytes of a text, as far as that. */
static __always_inline long usdt_copy_bytes(const struct usdt_ctx *ctx, char *to, __u32 size, __u64 address)
{
	if (usdt_is_kernel_pointer(ctx, address))
		return bpf_probe_read_kernel(to, size, (const void *)address);
	if (ctx->sleepable)
		return bpf_copy_from_user(to, size, (const void *)address);
	return bpf_probe_read_user(to, size, (const void *)address);
}

/* Base address of struct desc_struct, a segment descriptor (Intel SDM volume 3A, section 3.4.5). */
static __always_inline __u64 usdt_descriptor_base(__u64 descriptor)
{
	return (descriptor >> 16 & 0xffffff) | (descriptor >> 32 & 0xff000000);
}

/* Where the current thread's variables are: the base of its %fs (x86-64), or of its %gs if it is an i386 one
 * (`compat`). 0, or: -ENODATA; -EFAULT where there is no thread pointer: the first word of what it points to is the
 * pointer itself
 * ("ELF Handling For Thread-Local Storage", sections on IA-32 and x86-64), so that a base that is not the thread's own
 * shows.
 *
 * x86-64: thread_struct.fsbase of the current task is what arch_prctl(ARCH_SET_FS) or clone(CLONE_SETTLS) set last
 * (arch/x86/kernel/process_64.c do_arch_prctl_64, process.c copy_thread). A base the program wrote itself by wrfsbase
 * gets there only when the thread is next switched out (current_save_fsgs).
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
	if (bpf_probe_read_user(&self, compat ? sizeof(__u32) : sizeof(__u64), (const void *)word) || self != word)
		return -USDT_EFAULT;
	*base = word;
	return 0;
}

#endif /* USDT_BPF_MEMORY_H */
