// SPDX-License-Identifier: BSD-2-Clause
// What things are called with what they are members of. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace usdt::dwarf {

/// Whether what has this tag lends its name to what is in it; whether such a thing may be in it.
[[nodiscard]] bool is_scope(int tag);
[[nodiscard]] bool may_hold_scopes(int tag);

/// What a scope without a name is called.
[[nodiscard]] std::string_view nameless_scope(bool is_namespace);

/// "net::Server::handle" of "handle" and what it is in, from the inside out. Of a name that would be longer than any is
/// believed to be, the outermost are left out.
[[nodiscard]] std::string qualified_name(std::string_view own, std::span<const std::string_view> scopes);

/// A DIE does not know its parent: who is in what is found out for one unit at a time, when it is first asked.
class ScopeNames {
 public:
  /// "net::Server::handle". Anonymous namespaces are "(anonymous namespace)", as compilers print them. Empty for what
  /// has no name.
  [[nodiscard]] std::string qualified(Dwarf_Die die);

 private:
  void read_unit(Dwarf_Die die);
  void read(Dwarf_Die parent, bool is_scope, unsigned depth, std::uint64_t& steps);

  struct Parent {
    Dwarf_Die die;
  };
  std::unordered_map<const void*, Parent> parents_;  ///< of those whose parent is a scope with a name
  std::unordered_set<const void*> units_;            ///< that are in parents_
};

}  // namespace usdt::dwarf
