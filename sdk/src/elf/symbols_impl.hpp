// SPDX-License-Identifier: BSD-2-Clause
// The tables behind SymbolIndex, each read when it is first asked.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "elf/elf_impl.hpp"
#include "elf/symbol_tables.hpp"
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

/// The distinct values several table entries give one name.
struct Values {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint8_t count = 0;  ///< 0, 1, 2, 3 (3 or more)

  void add(std::uint64_t value) noexcept;
  void add(const Values& others) noexcept;
};

/// Everything the tables say about one name.
struct NameEntry {
  Values addresses;
  Values thread_offsets;  ///< of a thread-local variable, in its module's block
  bool undefined = false;
  bool thread_local_storage = false;
  bool ifunc = false;
  bool absolute = false;

  void add(const NameEntry& other) noexcept;
};

/// Names to addresses, over all symbol tables of a file. Owns the strings its keys point into.
class NameIndex {
 public:
  /// The tables of one image, whose addresses are moved by `shift`.
  struct Source {
    const File& file;
    const Image& image;
    std::uint64_t shift = 0;
  };
  NameIndex(const std::vector<Source>& sources, const std::stop_token& stop);

  [[nodiscard]] const NameEntry* find(std::string_view name) const noexcept;
  /// Makes the error for an absent name, which says what keeps the absence from being certain, if anything does.
  [[nodiscard]] Error not_found(std::string_view name) const;

 private:
  struct Named {
    HashedName key;
    NameEntry entry;
  };
  void add(const SymbolTable& table, const Source& source);
  void sort_and_merge();

  std::vector<std::shared_ptr<const StringTable>> strings_;
  std::vector<Named> names_;
  bool incomplete_ = false;
  bool stopped_ = false;
};

/// Ranges of addresses, asked by binary search.
class AddressSet {
 public:
  void add(std::uint64_t start, std::uint64_t size);
  /// To be called between the last add() and the first contains().
  void sort();
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept;

 private:
  struct Range {
    std::uint64_t start;
    std::uint64_t last;
  };
  std::vector<Range> ranges_;
};

/// The values in the file's GOT slots.
class GotSlots {
 public:
  explicit GotSlots(const OpenedFile& opened);
  /// The slot of a symbol that has a GLOB_DAT relocation.
  [[nodiscard]] std::optional<std::uint64_t> of_name(std::string_view name) const noexcept;
  /// The slot that holds `address`.
  [[nodiscard]] std::optional<std::uint64_t> of_value(std::uint64_t address) const noexcept;

 private:
  struct NamedSlot {
    HashedName key;
    std::uint64_t slot;
  };
  struct ValueSlot {
    std::uint64_t value;
    std::uint64_t slot;
  };
  void read_words(const Image& image, Claims& claims);
  void read_relocations(const File& file, const Image& image);
  void take_relocations(const Image& image, const Section& section, Claims& claims, const AddressSet& got);
  [[nodiscard]] static const std::uint64_t* find(const std::vector<ValueSlot>& slots, std::uint64_t value) noexcept;

  std::unique_ptr<SymbolTables> symbols_;  ///< of the names in by_name_
  std::vector<NamedSlot> by_name_;
  std::vector<ValueSlot> words_;     ///< as the file has them
  std::vector<ValueSlot> relative_;  ///< as RELATIVE relocations make them, which go before words
};

/// The values of PT_DYNAMIC that are of use here: the first entry of each tag.
struct DynamicValues {
  std::optional<std::uint64_t> flags_1, soname, pltgot;
};
[[nodiscard]] DynamicValues read_dynamic_values(const OpenedFile& opened);

/// "symbol 'x' has 2 addresses: 0x.., 0x..: which one is meant cannot be told"; `what` is the plural.
[[nodiscard]] Error ambiguous(std::string_view name, const Values& values, std::string_view what);

struct SymbolIndex::Impl {
  std::shared_ptr<const OpenedFile> opened;
  Lazy<Result<DebugFile>> debug_file;
  Lazy<NameIndex> names;
  Lazy<GotSlots> got;
  Lazy<Compilers> compilers;
  Lazy<DynamicValues> dynamic_values;
  Lazy<Result<VirtAddr>> offset_table;
  Lazy<std::string> package_hint;

  [[nodiscard]] const DynamicValues& dynamic() const {
    return dynamic_values.get([this] { return read_dynamic_values(*opened); });
  }

  [[nodiscard]] const Result<DebugFile>& debug() const {
    return debug_file.get([this] { return find_debug_file(*opened); });
  }
  [[nodiscard]] const NameIndex& index() const;
  /// Nobody knows `name`; where a package could bring the symbols of a stripped file, that is said.
  [[nodiscard]] Error not_found(std::string_view name) const;
};

}  // namespace usdt::elf
