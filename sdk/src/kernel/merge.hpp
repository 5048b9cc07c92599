// SPDX-License-Identifier: BSD-2-Clause
// The kernel's lists of functions -> one. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/symbol_lists.hpp"
#include "usdt/kernel.hpp"

namespace usdt::kernel {

struct FunctionList {
  std::vector<KernelFunction> functions;  ///< by module, name and address; without types
  /// Indexes of those that ftrace may or may not trace: it lists their name less often than symbols have it, and
  /// without addresses, so that it is not known which are meant.
  std::vector<std::uint32_t> unsure;
};

/// `listed`: what ftrace can trace, with addresses or (all 0) without.
[[nodiscard]] FunctionList merge_lists(Symbols&& symbols, std::vector<Named>&& listed, const ModuleNames& modules);

}  // namespace usdt::kernel
