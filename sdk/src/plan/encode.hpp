// SPDX-License-Identifier: BSD-2-Clause
// Where text operands, machine tables and symbols meet: ArgSpec -> Arg (what people and JSON see) and the encoded
// usdt_arg_spec (what the BPF program sees). The only such place.
#pragma once

#include "arch/arch.hpp"
#include "elf/symbols.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"

namespace usdt::plan {

/// An argument in both its forms. An unreadable argument is encoded with kind USDT_ARG_UNREADABLE.
struct ResolvedArg {
  Arg arg;
  usdt_arg_spec encoded{};
};

/// Resolves one argument of a site at (corrected) address `pc`, which is where the breakpoint will be; `symbols` may be
/// null.
[[nodiscard]] ResolvedArg resolve_arg(ArgSpec spec, const arch::Arch& arch, const elf::SymbolIndex* symbols,
                                      VirtAddr pc);

}  // namespace usdt::plan
