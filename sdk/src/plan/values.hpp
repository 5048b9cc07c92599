// SPDX-License-Identifier: BSD-2-Clause
// What is read at a point beside its arguments. Private to plan/.
#pragma once

#include <map>
#include <optional>

#include "resolve/follow.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// What is wanted beside the arguments at the point that `name` names.
template <class Name>
[[nodiscard]] const ValueOptions& value_options(const PlanOptions& options, const Name& name) {
  const ValueOptions* own = options.values_of ? options.values_of(name()) : nullptr;
  return own ? *own : options.values;
}

/// Adds to the lists of arguments what is wanted beside them, and remembers which paths led somewhere.
class ValueAdder {
 public:
  /// Where a path has a fault at this point, an unreadable argument of its name says so.
  void add(resolve::TypedArgs& list, const TypeGraph* types, Machine machine, const ValueOptions& options);
  /// Paths that led nowhere at any point where their argument is: the first fault of one. Errors: invalid_argument.
  [[nodiscard]] Result<void> check() const;

 private:
  struct Outcome {
    bool found = false;
    std::optional<Error> fault = {};
  };
  std::map<const ValuePath*, Outcome> outcomes_;
};

}  // namespace usdt::plan
