// SPDX-License-Identifier: BSD-2-Clause
// The complete types of a file by their names. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "dwarf/die.hpp"
#include "dwarf/names.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Structs, unions, classes, enums, typedefs and base types outside functions. Each unit that includes a header has its
/// types again: those with one name, size, line and first member are one.
class TypeNames {
 public:
  /// The types of one unit; false: it leads in circles, or there are too many. What was stopped has some of them.
  [[nodiscard]] bool add_unit(Dwarf_Die unit, const StopToken& stop);
  /// Called after the last unit.
  void finish();

  /// The types called `name` with all its scopes, else those whose own name it is; a keyword ("struct x") selects its
  /// kind. A typedef of another type that is found is left out; other typedefs come first.
  [[nodiscard]] std::vector<Dwarf_Die> named(std::string_view name, ScopeNames& names) const;
  /// The complete type that `declaration`, a struct or the like, promises; nothing: there is none, or several differ.
  [[nodiscard]] std::optional<Dwarf_Die> definition(Dwarf_Die declaration, ScopeNames& names) const;
  /// "; did you mean ...?" or empty.
  [[nodiscard]] std::string near(std::string_view name) const;

 private:
  struct Entry {
    std::uint64_t name_hash;
    Dwarf_Die die;
  };
  class Walk;
  void add(Dwarf_Die die, int tag, std::string_view scope);
  [[nodiscard]] std::vector<Dwarf_Die> called(std::string_view own_name) const;

  std::vector<Entry> entries_;  ///< by name_hash, once finished
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace usdt::dwarf
