/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Words of the kernel's structures that lead away from the current task. */
#ifndef USDT_TRACE_TASK_WORDS_H
#define USDT_TRACE_TASK_WORDS_H

/* A word of a structure of the kernel, whose type the verifier knows and so the type of each word: a load like any
 * other, where bpf_probe_read_kernel() takes 30 ns. The offset has to be that of a member as large as this. What cannot
 * be read is 0. */
#define TASK_WORD(type, structure, offset) (*(type const volatile *)((const char *)(structure) + (offset)))

#endif /* USDT_TRACE_TASK_WORDS_H */
