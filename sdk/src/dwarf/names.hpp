// SPDX-License-Identifier: BSD-2-Clause
// What things are called with what they are members of. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dwarf/budget.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Whether what has this tag lends its name to what is in it; whether such a thing may be in it.
[[nodiscard]] bool is_scope(int tag);
[[nodiscard]] bool may_hold_scopes(int tag);

/// The text that stands for a scope without a name.
[[nodiscard]] std::string_view nameless_scope(bool is_namespace);

/// "net::Server::handle" of "handle" and what it is in, from the inside out. Of a name that would be longer than any is
/// believed to be, the outermost are left out.
[[nodiscard]] std::string qualified_name(std::string_view own, std::span<const std::string_view> scopes);

/// A DIE does not know its parent: who is in what is found out for one unit at a time, when it is first asked, and kept
/// for as many units as a large program has. Of a file that has more, all is forgotten and found out again; whose
/// names want that without end are spent at some point.
class ScopeNames {
 public:
  /// Links that are remembered of any file: 32 MB, which programs of 100 MB of code do not have.
  static constexpr std::size_t fewest_links = 4'000'000;

  ScopeNames() = default;
  /// `bytes`: those of the file's DIEs. After a stop names may lack their scopes.
  ScopeNames(std::uint64_t bytes, StopToken stop, std::size_t least_links = fewest_links);

  /// "net::Server::handle". Anonymous namespaces are "(anonymous namespace)", as compilers print them. Empty for what
  /// has no name.
  [[nodiscard]] std::string qualified(Dwarf_Die die);
  /// The scope that `die` is in; nothing: none, or `die` is of a kind without qualified names.
  [[nodiscard]] std::optional<Dwarf_Die> scope_of(Dwarf_Die die);
  /// It was too much: some names lack their scopes.
  [[nodiscard]] bool spent() const noexcept { return again_.left() == 0; }

 private:
  /// Offsets behind the unit's own DIE.
  struct Link {
    std::uint32_t child;
    std::uint32_t parent;
  };
  /// Links of entries that have qualified names and are in a scope, by child.
  using Links = std::vector<Link>;
  /// The links that were read of a unit, now or before.
  struct Known {
    Links links;
    bool kept = false;
  };

  [[nodiscard]] const Links& links_of(Dwarf_Die unit);
  [[nodiscard]] std::uint64_t read(Dwarf_Die unit, Links& links) const;
  void forget();

  std::unordered_map<const void*, Known> units_;
  std::size_t count_ = 0;  ///< links of all units
  std::size_t most_ = fewest_links;
  Budget again_{1, 0};  ///< DIEs of units that were read before
  StopToken stop_;
};

}  // namespace usdt::dwarf
