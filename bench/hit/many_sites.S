/* SPDX-License-Identifier: BSD-2-Clause */
/* A file with SITES sites, each a probe p0, p1, .. of its own with an argument of its own. Nothing runs it: it is mapped,
 * so that the kernel puts breakpoints into a process, and attached to. */
#include "note.inc"

	.altmacro
	.macro site n
990:	nop
	note	p\n, "-4@$\n"
	.endm

	.globl	many
	.type	many, @function
many:
	.set	number, 0
	.rept	SITES
	site	%number
	.set	number, number+1
	.endr
	ret
	.size	many, .-many
