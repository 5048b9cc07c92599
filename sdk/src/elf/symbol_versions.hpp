// SPDX-License-Identifier: BSD-2-Clause
// Which version of its name a symbol of .dynsym is (LSB Core, "Symbol Versioning").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "elf/symbol_tables.hpp"

namespace usdt::elf {

/// The versions that an image defines. Owns the strings it gives out.
class SymbolVersions {
 public:
  SymbolVersions(const File& file, const Image& image, SymbolTables& tables);

  /// The version of entry `index` of the symbol table that is section `table`; empty where it has none.
  [[nodiscard]] std::string_view of(std::uint32_t table, std::size_t index) const noexcept;

 private:
  void read_definitions(ByteView bytes, StringTable& strings);

  std::map<std::uint32_t, Bytes> numbers_;  ///< by section of the symbol table: a 16-bit number for each symbol
  std::map<std::uint16_t, std::string_view> names_;
  std::vector<std::shared_ptr<StringTable>> strings_;
};

}  // namespace usdt::elf
