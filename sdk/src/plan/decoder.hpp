// SPDX-License-Identifier: BSD-2-Clause
// What ArgDecoder holds. Private to plan/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/encode.hpp"
#include "usdt/decode.hpp"

namespace usdt {

struct ArgDecoder::Impl {
  const arch::Arch& arch;
  std::optional<elf::SymbolIndex> symbols;  ///< absent where symbols have no addresses yet

  /// Every argument of `args_text` for a breakpoint at `pc`. Only specs with USDT_ARG_IP depend on `pc`: their
  /// value is a distance from it.
  [[nodiscard]] std::vector<plan::ResolvedArg> resolve(std::string_view args_text, VirtAddr pc) const;
};

}  // namespace usdt
