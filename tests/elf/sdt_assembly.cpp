// SPDX-License-Identifier: BSD-2-Clause
#include "sdt_assembly.hpp"

#include <fmt/format.h>

namespace usdt::test {

std::string many_probes(int count) {
  return fmt::format(R"asm(
        .section .stapsdt.base,"aG","progbits",.stapsdt.base,comdat
        .weak _.stapsdt.base
        .hidden _.stapsdt.base
_.stapsdt.base: .space 1
        .size _.stapsdt.base, 1
        .text
        .rept   {}
990:    nop
        .pushsection .note.stapsdt,"?","note"
        .balign 4
        .4byte  992f-991f, 994f-993f, 3
991:    .asciz  "stapsdt"
992:    .balign 4
993:    .8byte  990b, _.stapsdt.base, 0
        .asciz  "provider"
        .asciz  "a_probe_with_a_name"
        .asciz  "8@%rdi -4@-20(%rbp) 8@8(%rsp)"
994:    .balign 4
        .popsection
        .endr
)asm",
                     count);
}

}  // namespace usdt::test
