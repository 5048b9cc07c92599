// SPDX-License-Identifier: BSD-2-Clause
// Where functions leave what they return. Private to locate/.
#pragma once

#include <string>
#include <vector>

#include "dwarf/types.hpp"
#include "locate/entries.hpp"
#include "locate/locator.hpp"
#include "locate/moment.hpp"
#include "locate/parameters.hpp"
#include "locate/place_checker.hpp"
#include "locate/rust_result.hpp"
#include "locate/signature.hpp"
#include "locate/user_shapes.hpp"

namespace usdt::locate {

/// Whether results are where the calling convention has them.
struct ResultConvention {
  bool holds = false;              ///< results are where it has them
  bool holds_for_scalars = false;  ///< those, at least
  /// A result that the code is proven to hand to its caller is where the convention has it.
  bool holds_if_proven = false;
  std::string reason = {};  ///< why it may not hold
};

/// Finds the result of a function. What it is made of must outlive it.
class Results {
 public:
  Results(const Moment& moment, const PlaceChecker& checker, const Types& types, const UserShapes& user_shapes)
      : moment_(moment), checker_(checker), types_(types), user_shapes_(user_shapes), locator_(moment.arch) {}

  /// Adds the result of a function of any language but Go.
  void add(Language language, const ResultConvention& convention, Signature& signature) const;
  /// Adds the results of a function of Go, which are parameters. One is the value itself, several are a struct with
  /// them as members.
  void add_of_go(const std::vector<Parameter>& results, Signature& signature) const;

 private:
  void put(const std::optional<Dwarf_Die>& declared_type, Located located, Signature& signature) const;
  void add_of_rust(Signature& signature) const;
  [[nodiscard]] bool is_proven(const arch::UserPlace& place) const;
  [[nodiscard]] std::string why_not_returned(const RustResult& result) const;
  [[nodiscard]] Located of_go(const Parameter& result, const arch::UserPlace& place) const;

  const Moment& moment_;
  const PlaceChecker& checker_;
  const Types& types_;
  const UserShapes& user_shapes_;
  Locator locator_;
};

/// The DIE that has the parameters' names and types.
[[nodiscard]] Dwarf_Die declaration_of(const Moment& moment);

}  // namespace usdt::locate
