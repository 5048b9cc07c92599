// SPDX-License-Identifier: BSD-2-Clause
// Programs whose functions the Go compiler made. They move their stacks, and call each other by conventions of their
// own (abi-internal.md of the compiler).
#pragma once

#include <optional>
#include <string>

#include "elf/elf_impl.hpp"

namespace usdt::elf {

struct GoProgram {
  std::string version;  ///< of its compiler, "go1.19.8"; empty: not told where we look (before 1.18)
  /// Arguments are passed in registers, and one of those has the goroutine: since 1.17 (arm64: 1.18), where the version
  /// is known.
  bool by_registers = false;
};

/// Nothing: no such program. By sections that strip leaves.
[[nodiscard]] std::optional<GoProgram> go_program(const File& file, const Image& image);

}  // namespace usdt::elf
