# SPDX-License-Identifier: BSD-2-Clause
"""Writes a program of hand-made notes: operand forms sys/sdt.h and today's compilers do not reach.

Every form sets registers by inline assembly, sits on a nop, and logs what a tracer must show: a value, an error, or
("maybe") one of the two where reading the form is optional.
"""

import dataclasses

ERROR = "truth_error();"
DATA = [0x1111111111111111 * n for n in range(1, 9)]
MASK64 = (1 << 64) - 1


def u(value):
    return f"truth_u({value}ull);" if isinstance(value, int) else f"truth_u({value});"


def i(value):
    return f"truth_i((long long){value & MASK64}ull);"


def f4(text):
    return f"truth_f4({text}f);"


def f8(text):
    return f"truth_f8({text});"


def maybe(value):
    return f"truth_maybe({value}ull);" if isinstance(value, int) else f"truth_maybe({value});"


@dataclasses.dataclass(frozen=True)
class Form:
    name: str
    args: str
    expect: tuple
    setup: str = ""
    after: str = ""


def _registers_x86_64():
    """Every general register in every width it has a name for."""
    legacy = {"a": 0, "b": 1, "c": 2, "d": 3}
    names = [(f"r{x}x", f"e{x}x", f"{x}x", f"{x}l") for x in legacy]
    names += [("rsi", "esi", "si", "sil"), ("rdi", "edi", "di", "dil"), ("rbp", "ebp", "bp", "bpl")]
    names += [(f"r{n}", f"r{n}d", f"r{n}w", f"r{n}b") for n in range(8, 16)]
    for index, (quad, double, word, byte) in enumerate(names):
        value = 0xF1E2D3C4B5A69788 + index * 0x0101010101010101 & MASK64
        low = [value & (1 << 8 * size) - 1 for size in (8, 4, 2, 1)]
        signed = [bits - (1 << 8 * size) if bits >> 8 * size - 1 else bits for bits, size in zip(low, (8, 4, 2, 1))]
        args = [f"{sign}{size}@%{name}" for sign in ("", "-")
                for size, name in zip((8, 4, 2, 1), (quad, double, word, byte))]
        yield Form(f"reg_{quad}", " ".join(args), tuple(map(u, low)) + tuple(map(i, signed)),
                   f"push %{quad}; movabs ${value:#x}, %{quad}", f"pop %{quad}")


def _constants():
    word = {"8@$18446744073709551615": u(MASK64), "8@$18446744073709551614": u(MASK64 - 1), "8@$-2": u(MASK64 - 1),
            "-8@$-9223372036854775808": i(-(1 << 63)), "-8@$9223372036854775807": i((1 << 63) - 1),
            "8@$9007199254740993": u((1 << 53) + 1), "4@$-9": u(0xFFFFFFF7), "-4@$4294967295": i(-1),
            "4@$0x10": u(16), "-4@$-0x10": i(-16), "1@$200": u(200), "-1@$200": i(-56), "-2@$-1": i(-1), "2@$0": u(0)}
    return Form("constants", " ".join(word), tuple(word.values()))


def _common(data, word):
    """Forms both x86 sizes share; `data` loads the table's address into the register named in {b}."""
    b, c = ("%rsi", "%rcx") if word == 8 else ("%esi", "%ecx")
    first = [value & (1 << 8 * word) - 1 for value in DATA]
    table = f"{data}; mov $2, {c}"
    yield Form("sums", f"{word}@-8+16({b}) 4@0x10({b}) 4@24-8({b})",
               (u(DATA[1] & (1 << 8 * word) - 1), u(DATA[2] & 0xFFFFFFFF), u(DATA[2] & 0xFFFFFFFF)), table)
    yield Form("indexed", f"8@({b},{c},8) 4@4({b},{c},4) 2@({b},{c}) 1@-2({b},{c},2) -8@8({b},{c},4)",
               (u(DATA[2]), u(DATA[1] >> 32), u(DATA[0] & 0xFFFF), u(DATA[0] & 0xFF), i(DATA[2])), table)
    yield Form("no_base", f"8@(,{c},8) 8@8(,{c},8)", (u(DATA[0]), u(DATA[1])), f"{data}; mov {b}, {c}; shr $3, {c}")
    yield Form("high_bytes", "1@%ah -1@%bh 1@%ch -1@%dh",
               (u(0x12), i(-128), u(0xFE), i(0x7F)),
               "mov $0x1234, %eax; mov $0x80ff, %ebx; mov $0xfe01, %ecx; mov $0x7f80, %edx")
    yield Form("no_size", f"{b} $7", (u(first[0] & 0x7FFFFFFF), u(7)), f"mov ${first[0] & 0x7FFFFFFF:#x}, {b}")
    yield Form("float_bits", f"4f@%edi 8f@({b}) 4f@4({b})", (f4("1.5"), f8("-2.25"), f4("-2.03125")),
               f"{data}; add ${8 * len(DATA)}, {b}; mov $0x3fc00000, %edi")
    yield Form("odd_neighbour", "-4@%edi 8@%%%bogus((( -4@$5", (i(-5), ERROR, i(5)), "mov $-5, %edi")
    yield Form("odd_sizes", f"3@%eax 16@{b} 40@8({b}) 0@%eax -4@$1", (ERROR, ERROR, ERROR, ERROR, i(1)))
    yield Form("unknown_register", "4@%zork -4@$2", (ERROR, i(2)))
    yield Form("null_pointer", f"4@({b}) 8@16({b}) -4@$3", (ERROR, ERROR, i(3)), f"xor {b}, {b}")
    yield Form("twenty", " ".join(f"-4@${n}" for n in range(20)), tuple(i(n) for n in range(20)))
    yield Form("none", "", ())
    yield Form("symbol_address", f"{word}@$form_data {word}@$form_data+8",
               (u("(uintptr_t)form_data"), u("(uintptr_t)form_data + 8")))
    base = "(%rip)" if word == 8 else ""
    yield Form("missing_symbol", f"{word}@nosuch{base} 8@.LC999{base} -4@$4", (ERROR, ERROR, i(4)))
    yield Form("twice", f"4@form_defined_twice{base} -4@$6", (ERROR, i(6)))


def _set_fs(base):
    """arch_prctl(ARCH_SET_FS); the base so far is left in %rbx, and restored from there."""
    keep = "" if "%rbx" in base else "mov %fs:0, %rbx; "
    return f"{keep}{base}; mov $158, %eax; mov $0x1002, %edi; syscall"


def forms_x86_64():
    data = "lea form_data(%rip), %rsi"
    yield from [*_registers_x86_64(), _constants(), *_common(data, 8)]
    yield Form("symbols", "8@form_data(%rip) 8@form_data+8(%rip) 8@16+form_data(%rip) 8@8+form_data+16(%rip) "
               "-4@form_static(%rip)", (u(DATA[0]), u(DATA[1]), u(DATA[2]), u(DATA[3]), i(-77)))
    yield Form("stack_pointer", "8@%rsp 8@(%rsp)", (u("(uintptr_t)form_stack"), u(0xABCD)),
               "push $0xabcd; mov %rsp, form_stack(%rip)", "pop %rax")
    yield Form("noncanonical", "8@(%rdi) -4@$8", (ERROR, i(8)), "movabs $0x8000000000000000, %rdi")
    yield Form("kernel_address", "8@(%rdi) -4@$9", (ERROR, i(9)), "movabs $0xffffffff81000000, %rdi")
    yield Form("vector", "8@%xmm3 -8@%xmm4", (maybe(5), maybe(7)),
               "mov $5, %eax; movq %rax, %xmm3; mov $7, %eax; movq %rax, %xmm4")
    yield Form("thread_local", "8@%fs:form_tls@tpoff 8@%fs:0 8@%fs:(%rsi) 2@%fs:-8(%rsi,%rcx,4) "
               "8@form_tls@tpoff(%rdi) 8@8+form_tls@tpoff-8(%rdi)",
               (u(4242), u("(uintptr_t)form_self()"), u(4242), u(4242), u(4242), u(4242)),
               "mov form_tls@gottpoff(%rip), %rsi; mov $2, %ecx; mov %fs:0, %rdi")
    yield Form("thread_wild", "8@%fs:(%rdi) 8@%gs:0 4@%fs:(%esi) 8@form_tls@gottpoff(%rip) 8@%fs:form_data -4@$7",
               (ERROR, ERROR, ERROR, ERROR, ERROR, i(7)), "movabs $0x4000000000000000, %rdi")
    # A base whose first word is not itself cannot be told from one the kernel has not seen.
    yield Form("thread_pointer_odd", "8@%fs:8 -4@$8", (ERROR, i(8)), _set_fs("lea form_data(%rip), %rsi"),
               _set_fs("mov %rbx, %rsi"))
    yield Form("thread_pointer_own", "8@%fs:8", (u(0xFEED),), _set_fs("lea form_thread(%rip), %rsi"),
               _set_fs("mov %rbx, %rsi"))
    yield Form("got", "8@form_data@GOTPCREL(%rip)", (maybe("(uintptr_t)form_data"),))


def forms_i386():
    yield from [_constants(), *_common("mov $form_data, %esi", 4)]
    for index, (name, word, byte) in enumerate([("eax", "ax", "al"), ("ebx", "bx", "bl"), ("ecx", "cx", "cl"),
                                                ("edx", "dx", "dl"), ("esi", "si", None), ("edi", "di", None),
                                                ("ebp", "bp", None)]):
        value = 0xF1E2D3C4 + index * 0x01010101 & 0xFFFFFFFF
        args, expect = f"4@%{name} -4@%{name} -2@%{word}", [u(value), i(value - (1 << 32)), i((value & 0xFFFF) - 65536)]
        if byte:
            args, expect = args + f" 1@%{byte}", expect + [u(value & 0xFF)]
        yield Form(f"reg_{name}", args, tuple(expect), f"push %{name}; mov ${value:#x}, %{name}", f"pop %{name}")
    yield Form("absolute", "4@form_data 8@form_data+8 -4@form_static 4@16+form_data",
               (u(DATA[0] & 0xFFFFFFFF), u(DATA[1]), i(-77), u(DATA[2] & 0xFFFFFFFF)))
    yield Form("wrapping", "4@0xfffffff8(%esi) 8@4294967288(%esi)",
               (u(DATA[0] & 0xFFFFFFFF), u(DATA[0])), "mov $form_data+8, %esi")
    yield Form("pair", "8@%eax", (maybe(0x1234567890ABCDEF),), "mov $0x90abcdef, %eax; mov $0x12345678, %edx")
    yield Form("thread_local", "4@%gs:form_tls@ntpoff 4@%gs:0 4@%gs:(%esi) 2@%gs:-8(%esi,%ecx,4) "
               "4@form_tls@ntpoff(%edi)", (u(4242), u("(uintptr_t)form_self()"), u(4242), u(4242), u(4242)),
               "mov $form_tls@ntpoff, %esi; mov $2, %ecx; mov %gs:0, %edi")
    yield Form("thread_wild", "4@%gs:(%edi) 4@%fs:0 4@%gs:form_tls@tpoff -4@$7", (ERROR, ERROR, ERROR, i(7)),
               "mov %gs:0, %edi; neg %edi")


PROLOGUE = """\
/* Generated by formgen.py. */
#include "truth_log.h"
uint64_t form_data[] __attribute__((used)) = {{ {data}, 0xc002000000000000ull /* -2.25 */ }};
static int form_static __attribute__((used)) = -77;
static int form_defined_twice __attribute__((used)) = 1;
void *form_stack __attribute__((used));
__thread uintptr_t form_tls = 4242;
void *form_thread[2] __attribute__((used)) = {{ form_thread, (void *)0xfeed }};
static inline void *form_self(void)
{{
	void *self;
	__asm__ volatile("mov %%{segment}:0, %0" : "=r"(self));
	return self;
}}
#define NOTE(name, args, word) \\
	".pushsection .note.stapsdt,\\"?\\",\\"note\\"\\n.balign 4\\n.4byte 992f-991f,994f-993f,3\\n" \\
	"991:.asciz \\"stapsdt\\"\\n992:.balign 4\\n" \\
	"993:" word " 990b\\n" word " _.stapsdt.base\\n" word " 0\\n" \\
	".asciz \\"forms\\"\\n.asciz \\"" name "\\"\\n.asciz \\"" args "\\"\\n994:.balign 4\\n.popsection\\n"
__asm__(".pushsection .stapsdt.base,\\"aG\\",\\"progbits\\",.stapsdt.base,comdat\\n.weak _.stapsdt.base\\n"
	".hidden _.stapsdt.base\\n_.stapsdt.base: .space 1\\n.size _.stapsdt.base,1\\n.popsection");
"""



def escape(text):
    """Extended assembly spells a percent sign twice."""
    return text.replace("%", "%%")


SECOND_UNIT = "static int form_defined_twice __attribute__((used)) = 2;\n"


def program(i386):
    """The program's text; a second unit (SECOND_UNIT) must be linked to it, for the symbol that exists twice."""
    forms = list(forms_i386() if i386 else forms_x86_64())
    word = ".4byte" if i386 else ".8byte"
    clobbers = "eax ebx ecx edx esi edi" if i386 else "rax rbx rcx rdx rsi rdi r11 xmm3 xmm4"
    clobber_list = ", ".join(f'"{name}"' for name in clobbers.split())
    parts = [PROLOGUE.format(data=", ".join(f"{value:#x}ull" for value in DATA), segment="gs" if i386 else "fs")]
    for form in forms:
        parts.append(f"""\
TRUTH_NOINLINE static void form_{form.name}(void)
{{
	__asm__ volatile("{escape(form.setup)}\\n990: nop\\n{escape(form.after)}\\n"
			 NOTE("{form.name}", "{escape(form.args)}", "{word}")
			 ::: {clobber_list}, "cc", "memory");
	truth_open("{form.name}"); {' '.join(form.expect)} truth_close();
}}
""")
    calls = "\n".join(f"\tform_{form.name}();" for form in forms)
    parts.append(f"int main(void)\n{{\n\ttruth_start();\n\tform_tls = 4242;\n{calls}\n\treturn 0;\n}}\n")
    return "\n".join(parts)
