// SPDX-License-Identifier: BSD-2-Clause
// Which units of a debug file have code of which functions, their inlined copies included. libdw reads only those then.
// What indexes of compilers and linkers tell (.debug_names, .gdb_index) is where functions are defined: copies that
// were inlined elsewhere are not in them. Private to dwarf/.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "dwarf/name_filter.hpp"
#include "dwarf/unit_reader.hpp"
#include "usdt/address.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// The names of a function, as FunctionInfo has them.
struct FunctionNames {
  std::string_view name;
  std::string_view linkage_name;
  std::string_view qualified;
};

/// Some units of .debug_info, by their offset.
struct UnitSet {
  std::unordered_set<std::uint64_t> offsets;
  std::uint64_t all_from = 0;  ///< and each from here on
  [[nodiscard]] bool contains(std::uint64_t offset) const { return offset >= all_from || offsets.contains(offset); }
};

/// Names are not kept but where they are in the sections, so that of a gigabyte some megabytes are remembered.
class FunctionIndex {
 public:
  /// Whether an address is code of the file: what the linker discarded is not. Several threads ask.
  using IsCode = std::function<bool(VirtAddr)>;
  /// Called now and then, by each thread: what was read of the sections up to here is not needed soon.
  using LetGo = std::function<void()>;

  /// How many threads are of use for so many bytes of .debug_info; at least 1.
  [[nodiscard]] static std::size_t useful_threads(std::uint64_t bytes) noexcept;
  /// Reads all of .debug_info, by so many threads, at least 1: the result is the same for any number. Units that are
  /// not understood, or that lead to other files, may have any function. Where `stop` was requested, the result is of
  /// no use. With a `filter` only the units that it lets through are read: of its names alone this is an index then.
  FunctionIndex(const DebugSections& sections, const IsCode& is_code, const StopToken& stop, const LetGo& let_go,
                std::size_t threads, const NameFilter* filter = nullptr);

  /// The units that may have code of a function that is `wanted`; all others have none. `sections`: those that were
  /// indexed. The result is of no use once `stop` was requested.
  [[nodiscard]] UnitSet units(const DebugSections& sections, const std::function<bool(const FunctionNames&)>& wanted,
                              const StopToken& stop, const LetGo& let_go) const;

  /// All of it, behind `skipped` words that are the caller's; and an index of such words. Nothing: they are none.
  [[nodiscard]] std::vector<std::uint64_t> words(std::size_t skipped) const;
  [[nodiscard]] static std::optional<FunctionIndex> from_words(std::span<const std::uint64_t> words);

 private:
  class Builder;
  FunctionIndex() = default;

  /// A namespace, class, or function around others; each is behind what it is in.
  struct Scope {
    std::uint32_t outer = 0;  ///< its index and 1; 0: none
    bool is_namespace = false;
    TextPlace name;
    friend bool operator==(const Scope&, const Scope&) = default;
  };
  struct Function {
    std::uint32_t scope = 0;  ///< its index and 1; 0: none
    TextPlace name;
    TextPlace own_name;  ///< that of the declaration itself, which `qualified` ends with
    TextPlace linkage_name;
    friend bool operator==(const Function&, const Function&) = default;
  };
  struct InUnit {
    std::uint32_t function;
    std::uint32_t unit;
    auto operator<=>(const InUnit&) const = default;
  };

  [[nodiscard]] std::string qualified(const DebugSections& sections, const Function& function) const;

  std::vector<Scope> scopes_;
  std::vector<Function> functions_;
  std::vector<std::uint64_t> units_;    ///< offsets
  std::vector<InUnit> places_;          ///< sorted
  std::vector<std::uint32_t> unknown_;  ///< units that may have any function
  std::uint64_t end_ = 0;               ///< units from here on were not read
};

}  // namespace usdt::dwarf
