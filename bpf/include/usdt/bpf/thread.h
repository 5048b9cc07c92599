/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where the current thread's variables are: the base of its %fs (x86-64) or %gs (i386). Included where usdt_read() is.
 *
 * x86-64: thread_struct.fsbase of the current task is what arch_prctl(ARCH_SET_FS) or clone(CLONE_SETTLS) set last
 * (arch/x86/kernel/process_64.c do_arch_prctl_64, process.c copy_thread). A base the program wrote itself by wrfsbase
 * gets there only when the thread is next switched out (current_save_fsgs).
 * i386 under a 64-bit kernel: thread_struct.tls_array holds the three GDT entries of set_thread_area()
 * (arch/x86/kernel/tls.c); the first free one is given out first, so the C library's is entry 0. */
#ifndef USDT_BPF_THREAD_H
#define USDT_BPF_THREAD_H

/* Set by the loader: 1 where an argument of the plan has USDT_ARG_THREAD. Else the verifier removes all of this. */
const volatile __u32 usdt_thread_args __attribute__((weak)) = 0;
/* Byte offsets in task_struct, from the kernel's BTF; 0: unknown. */
const volatile __u32 usdt_thread_fsbase_offset __attribute__((weak)) = 0;
const volatile __u32 usdt_thread_tls_offset __attribute__((weak)) = 0;

/* Base address of struct desc_struct, a segment descriptor (Intel SDM volume 3A, section 3.4.5). */
static __always_inline __u64 usdt_descriptor_base(__u64 descriptor)
{
	return (descriptor >> 16 & 0xffffff) | (descriptor >> 32 & 0xff000000);
}

/* The thread pointer of the current task, an i386 one if `compat`. 0, or: -ENODATA; -EFAULT where there is no thread
 * pointer: the first word of what it points to is the pointer itself ("ELF Handling For Thread-Local Storage",
 * sections on IA-32 and x86-64), so that a base that is not the thread's own shows. */
static __always_inline int usdt_thread_base(__u64 *base, _Bool compat)
{
	__u32 offset = compat ? usdt_thread_tls_offset : usdt_thread_fsbase_offset;
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

#endif /* USDT_BPF_THREAD_H */
