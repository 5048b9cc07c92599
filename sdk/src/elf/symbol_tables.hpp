// SPDX-License-Identifier: BSD-2-Clause
// The symbol and string tables of one image, each read once however many headers name it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "elf/claims.hpp"
#include "elf/image.hpp"

namespace usdt::elf {

/// A string table that hands out names up to a total length. Names may share bytes (linkers merge tails and
/// duplicates), but where thousands of symbols name one string of megabytes, only looking for its end would take for
/// ever.
class StringTable {
 public:
  explicit StringTable(Bytes bytes);

  /// Adds what a symbol table of `symbols` entries may name.
  void allow(std::size_t symbols) noexcept;
  /// The string at `at`, cut at the table's end, empty beyond it; empty once the names are longer in all than is
  /// allowed.
  [[nodiscard]] std::string_view take(std::uint64_t at) noexcept;
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }

 private:
  Bytes bytes_;
  std::uint64_t left_;
  bool exhausted_ = false;
};

/// One entry of a symbol table, class-neutral.
struct Symbol {
  std::uint32_t name = 0;  ///< where it is in the string table
  std::uint8_t type = STT_NOTYPE;
  std::uint8_t binding = STB_LOCAL;
  std::uint8_t visibility = STV_DEFAULT;
  std::uint16_t section = SHN_UNDEF;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

/// The entries of a symbol table, and where their names are.
class SymbolTable {
 public:
  SymbolTable() = default;
  SymbolTable(bool is64, Bytes entries, std::shared_ptr<StringTable> strings);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size() / entry_size_; }
  /// The entry `index`, which is below size().
  [[nodiscard]] Symbol operator[](std::size_t index) const noexcept;
  /// Its name, without "@VERSION".
  [[nodiscard]] std::string_view name_of(const Symbol& symbol) const noexcept;
  /// Its name as it stands: .symtab has "name@VERSION" and "name@@VERSION".
  [[nodiscard]] std::string_view full_name_of(const Symbol& symbol) const noexcept;
  [[nodiscard]] const std::shared_ptr<StringTable>& strings() const noexcept { return strings_; }

 private:
  bool is64_ = false;
  std::size_t entry_size_ = 1;
  Bytes entries_;
  std::shared_ptr<StringTable> strings_;
};

class SymbolTables {
 public:
  SymbolTables(const File& file, const Image& image) : image_(image), entries_(file, image), strings_(file, image) {}

  /// The symbols of the section numbered `section`, with names from the section it is linked to; none where there is no
  /// such section, or its bytes are another table's.
  [[nodiscard]] const SymbolTable& at(std::uint32_t section);
  /// The string table that is the section numbered `section`; nullptr where there is no such section.
  [[nodiscard]] std::shared_ptr<StringTable> strings_at(std::uint32_t section);
  /// True where some bytes were claimed by several tables, or some names were too long in all: then not everything that
  /// the headers promise was read.
  [[nodiscard]] bool incomplete() const noexcept;

 private:
  const Image& image_;
  Claims entries_;
  Claims strings_;
  std::map<std::uint32_t, SymbolTable> tables_;
  std::map<std::uint32_t, std::shared_ptr<StringTable>> string_tables_;
};

/// A name that is ordered quickly, whatever names there are: by hash, and only where hashes are equal by its bytes. So
/// an index of names takes no longer where somebody made their hashes collide.
struct HashedName {
  explicit HashedName(std::string_view text) : hash(std::hash<std::string_view>{}(text)), name(text) {}
  std::size_t hash;
  std::string_view name;

  friend auto operator<=>(const HashedName&, const HashedName&) = default;
};

}  // namespace usdt::elf
