// SPDX-License-Identifier: BSD-2-Clause
// The functions of a Go program by the table that its runtime unwinds with, which strip leaves (runtime/symtab.go of Go
// 1.16 and later).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "elf/elf_impl.hpp"

namespace usdt::elf {

struct GoFunction {
  std::uint64_t address;
  std::uint64_t size;
  std::string_view name;  ///< in the table's bytes
};

/// Reads what `file` has of it; whatever is in there, in time and memory that follow the table's size.
class GoFunctions {
 public:
  GoFunctions(const File& file, const Image& image);

  /// By address. Empty: there is no such table, or it is not understood to its end, or it does not say where code is.
  [[nodiscard]] const std::vector<GoFunction>& all() const noexcept { return functions_; }
  /// Returns the bytes that the names are in; to be kept with them.
  [[nodiscard]] std::shared_ptr<const Bytes> bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<const Bytes> bytes_;
  std::vector<GoFunction> functions_;
};

}  // namespace usdt::elf
