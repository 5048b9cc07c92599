/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A thread-local variable of a process: where it is for each of its threads, which user space finds out and BPF
 * programs follow ("ELF Handling For Thread-Local Storage", Drepper; glibc's nptl_db/td_thr_tlsbase.c). */
#ifndef USDT_BPF_THREAD_VARIABLE_H
#define USDT_BPF_THREAD_VARIABLE_H

#include "types.h"

/* The variable of a program, or of a library that was there when the program began, is so far from the thread pointer.
 * Other libraries have a block of variables for each thread that uses them, in the thread's vector (DTV): an entry is
 * two words, of which the first is the block's address, -1 while there is none. The first entry is a generation: the
 * vector is as the thread last saw it. */
struct usdt_thread_variable {
	__u64 offset;	  /* from the thread pointer, modulo 2^64; of a `module` from where its block begins */
	__u64 generation; /* a vector with a smaller one has not heard of the module */
	__u32 module;	  /* the number of the library's entry; 0: none, the variable is near the thread pointer */
	__s16 vector_at;  /* the byte behind the thread pointer at which the vector's address is */
	__u8 entry_size;  /* of an entry of the vector, in bytes */
	__u8 word_size;	  /* of an address in the process: 4 or 8 bytes */
	/* From the thread pointer to the area that the thread has registered by rseq(2), modulo 2^64, where the kernel
	 * has pointers late; 0: not known. */
	__u64 rseq;
};

#ifdef __bpf__
#include "memory.h"

/* Reads a word of the process, of 4 or 8 bytes. */
static __always_inline int usdt_read_word(__u64 *word, __u32 size, __u64 address)
{
	*word = 0;
	if (size == sizeof(__u32))
		return bpf_probe_read_user(word, sizeof(__u32), (const void *)(__u64)(__u32)address);
	return bpf_probe_read_user(word, sizeof(*word), (const void *)address);
}

/* The address of the variable for the thread whose thread pointer is `base`. 0; or -ENOENT: the thread has none, since
 * it has not used the library yet; or -EFAULT. */
static __always_inline int usdt_find_thread_variable(const struct usdt_thread_variable *variable, __u64 base,
						     __u64 *address)
{
	const __u32 size = variable->word_size;
	const __u64 none = size == sizeof(__u32) ? (__u32)-1 : (__u64)-1;
	__u64 vector, word;

	*address = base + variable->offset;
	if (!variable->module)
		return 0;
	if (usdt_read_word(&vector, size, base + variable->vector_at) || usdt_read_word(&word, size, vector))
		return -USDT_EFAULT;
	if (word < variable->generation)
		return -USDT_ENOENT;
	if (usdt_read_word(&word, size, vector + (__u64)variable->module * variable->entry_size))
		return -USDT_EFAULT;
	*address = word + variable->offset;
	return word == none || !word ? -USDT_ENOENT : 0;
}
#endif

#endif /* USDT_BPF_THREAD_VARIABLE_H */
