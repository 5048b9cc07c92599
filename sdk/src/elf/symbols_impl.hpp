// SPDX-License-Identifier: BSD-2-Clause
// The tables behind SymbolIndex, each read when it is first asked.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "elf/elf_impl.hpp"
#include "elf/symbols.hpp"

namespace usdt::elf {

/// A value made on first use, by whichever thread comes first.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make&& make) const {
    std::call_once(once_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::optional<T> value_;
};

/// One entry of a symbol table, class-neutral.
struct Symbol {
  std::string_view name;  ///< without "@VERSION"
  std::uint8_t type = STT_NOTYPE;
  std::uint16_t section = SHN_UNDEF;
  std::uint64_t value = 0;
};

/// The bytes of a symbol table and of its strings; Symbol::name points into them.
class SymbolTable {
 public:
  SymbolTable(const File& file, const Image& image, const Section& section);
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size() / entry_; }
  [[nodiscard]] Symbol operator[](std::size_t index) const noexcept;

 private:
  bool is64_;
  std::size_t entry_;
  Bytes entries_;
  Bytes strings_;
};

/// The distinct values several table entries give one name.
struct Values {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint8_t count = 0;  ///< 0, 1, 2, 3 (3 or more)

  void add(std::uint64_t value) noexcept;
};

/// Everything the tables say about one name.
struct NameEntry {
  Values addresses;
  Values thread_offsets;  ///< of a thread-local variable, in its module's block
  bool undefined = false;
  bool thread_local_storage = false;
  bool ifunc = false;
  bool absolute = false;
};

/// Names to addresses, over all symbol tables of a file. Owns the tables its keys point into.
class NameIndex {
 public:
  void add(SymbolTable table, bool position_independent, std::uint64_t shift);
  [[nodiscard]] const NameEntry* find(std::string_view name) const noexcept;

 private:
  void add_symbol(const Symbol& symbol, bool position_independent, std::uint64_t shift);
  std::vector<SymbolTable> tables_;
  std::unordered_map<std::string_view, NameEntry> names_;
};

/// What the file's GOT slots hold.
struct GotSlots {
  std::unordered_map<std::string, std::uint64_t> by_name;     ///< GLOB_DAT: symbol -> slot
  std::unordered_map<std::uint64_t, std::uint64_t> by_value;  ///< address the slot holds -> slot
};
[[nodiscard]] GotSlots read_got(const OpenedFile& opened);

/// The value of the first entry of PT_DYNAMIC with `tag`; empty where there is none.
[[nodiscard]] std::optional<std::uint64_t> dynamic_value(const OpenedFile& opened, std::uint64_t tag);

/// "symbol 'x' has 2 addresses: 0x.., 0x..: which one is meant cannot be told"; `what` is the plural.
[[nodiscard]] Error ambiguous(std::string_view name, const Values& values, std::string_view what);
/// "symbol 'x' is in neither .symtab nor .dynsym nor a debug file"
[[nodiscard]] Error in_no_table(std::string_view name);

struct SymbolIndex::Impl {
  std::shared_ptr<const OpenedFile> opened;
  Lazy<std::optional<DebugFile>> debug_file;
  Lazy<NameIndex> names;
  Lazy<GotSlots> got;
  Lazy<Compilers> compilers;

  [[nodiscard]] const std::optional<DebugFile>& debug() const {
    return debug_file.get([this] { return find_debug_file(*opened); });
  }
  [[nodiscard]] const NameIndex& index() const;
};

}  // namespace usdt::elf
