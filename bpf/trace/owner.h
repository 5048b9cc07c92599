/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Whether a hit is of the user for whom somebody else has loaded the program: usdt-broker, which attaches it to
 * processes of that user. A process can become somebody else's while breakpoints are in it. */
#ifndef USDT_TRACE_OWNER_H
#define USDT_TRACE_OWNER_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include "../stock.h"
#include "task_words.h"

/* Whether all users of the task are that one, or all groups: struct cred has uid, gid, suid, sgid, euid and egid one
 * behind the other. */
static __always_inline bool are_all(const void *cred, __u32 offset, __u32 wanted)
{
	return TASK_WORD(__u32, cred, offset) == wanted && TASK_WORD(__u32, cred, offset + 8) == wanted &&
	       TASK_WORD(__u32, cred, offset + 16) == wanted;
}

/* Whether the current task is one that its user may look into, by the rule of ptrace(2) (__ptrace_may_access() in
 * kernel/ptrace.c): all users and groups of it are that user's, it has no capability that the user has not, and the
 * program that it executes is no setuid, setgid or unreadable one (its memory then is not dumpable), nor has it changed
 * its user since. What cannot be read is nobody's: 0 is not dumpable. */
static __always_inline bool is_of_owner(void)
{
	const __u64 mask = 3, by_its_user = 1; /* MMF_DUMPABLE_MASK, SUID_DUMP_USER (linux/sched/coredump.h) */
	const void *task = bpf_get_current_task_btf();
	const void *cred = TASK_WORD(void *, task, usdt_stock()->owner.cred);
	const void *image = TASK_WORD(void *, task, usdt_stock()->owner.image);

	return are_all(cred, usdt_stock()->owner.ids, usdt_stock()->owner.uid) &&
	       are_all(cred, usdt_stock()->owner.ids + 4, usdt_stock()->owner.gid) &&
	       TASK_WORD(__u64, cred, usdt_stock()->owner.permitted) == 0 &&
	       (TASK_WORD(__u64, image, usdt_stock()->owner.dumpable) & mask) == by_its_user;
}

#endif /* USDT_TRACE_OWNER_H */
