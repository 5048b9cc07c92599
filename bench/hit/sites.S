/* SPDX-License-Identifier: BSD-2-Clause */
/* The probes that `bench_hit` fires in itself. Their arguments are 1, 2, 3 and so on, so that what a program read can
 * be told from the sum. Each is a function NAME(uint64_t hits) that passes its site so many times. */
#include "note.inc"

/* Eight bytes for each of the arguments of mixed12 that are not in the frame. */
	.section .rodata
	.balign	8
elsewhere:
	.8byte	6, 0, 7

	.text
	.macro begin name
	.globl	\name
	.type	\name, @function
	.balign	64
\name:	push	%rbp
	mov	%rsp, %rbp
	sub	$128, %rsp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	mov	%rdi, %r14
	.endm

	.macro fire name, args:vararg
	.balign	64
990:	nop
	note	\name, \args
	dec	%r14
	jnz	990b
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	leave
	ret
	.size	\name, .-\name
	.endm

	.macro registers
	mov	$1, %edi
	mov	$2, %esi
	mov	$3, %edx
	mov	$4, %ecx
	mov	$5, %r8d
	mov	$6, %r9d
	mov	$7, %eax
	mov	$8, %ebx
	mov	$9, %r10d
	mov	$10, %r11d
	mov	$11, %r12d
	mov	$12, %r13d
	.endm

	begin	reg1
	registers
	fire	reg1, "8@%rdi"
	begin	reg3
	registers
	fire	reg3, "8@%rdi -4@%esi 8@%rdx"
	begin	reg6
	registers
	fire	reg6, "8@%rdi -4@%esi 8@%rdx 4@%ecx -8@%r8 8@%r9"
	begin	reg12
	registers
	fire	reg12, "8@%rdi -4@%esi 8@%rdx 4@%ecx -8@%r8 8@%r9 8@%rax -4@%ebx 8@%r10 4@%r11d -8@%r12 8@%r13"

/* Local variables of eight bytes side by side, as compilers lay them out. */
	.macro locals
	.set	number, 1
	.rept	12
	movq	$number, -8*number(%rbp)
	.set	number, number+1
	.endr
	.endm

	begin	mem1
	locals
	fire	mem1, "8@-8(%rbp)"
	begin	mem3
	locals
	fire	mem3, "8@-8(%rbp) -4@-16(%rbp) 8@-24(%rbp)"
	begin	mem6
	locals
	fire	mem6, "8@-8(%rbp) -4@-16(%rbp) 8@-24(%rbp) 4@-32(%rbp) -8@-40(%rbp) 8@-48(%rbp)"
	begin	mem12
	locals
	fire	mem12, "8@-8(%rbp) -4@-16(%rbp) 8@-24(%rbp) 4@-32(%rbp) -8@-40(%rbp) 8@-48(%rbp) 8@-56(%rbp) -4@-64(%rbp) 8@-72(%rbp) 4@-80(%rbp) -8@-88(%rbp) 8@-96(%rbp)"

/* Five locals, two fields behind pointers, four registers and a constant. */
	begin	mixed12
	locals
	lea	elsewhere(%rip), %r12
	mov	%r12, %r13
	mov	$8, %edi
	mov	$9, %esi
	mov	$10, %edx
	mov	$11, %ecx
	fire	mixed12, "8@-8(%rbp) -4@-16(%rbp) 8@%rdi 8@(%r12) -4@%esi 8@-24(%rbp) 4@-32(%rbp) -4@$12 8@%rdx 8@16(%r13) -8@-40(%rbp) 4@%ecx"

/* One site of each form that the kernel treats in its own way: void FORM(void). A traced nop5 becomes a call on some
 * kernels and its return address is written below the stack pointer, so it stands clear of anything there. */
	.macro form name
	.globl	\name
	.type	\name, @function
	.balign	64
\name:
	.endm

	.macro done name
	ret
	.size	\name, .-\name
	.endm

	form	form_nop
990:	nop
	note	nop, ""
	done	form_nop

	form	form_nop5
	lea	-128(%rsp), %rsp
990:	.byte	0x0f, 0x1f, 0x44, 0, 0
	note	nop5, ""
	lea	128(%rsp), %rsp
	done	form_nop5

	form	form_nop10
	lea	-128(%rsp), %rsp
990:	.byte	0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	note	nop10, ""
	lea	128(%rsp), %rsp
	done	form_nop10

	form	form_entry
990:	push	%rbp
	note	entry, ""
	pop	%rbp
	done	form_entry

	form	form_step
990:	xor	%eax, %eax
	note	step, ""
	done	form_step
