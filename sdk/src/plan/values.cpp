// SPDX-License-Identifier: BSD-2-Clause
#include "plan/values.hpp"

#include <memory>
#include <utility>

namespace usdt::plan {

void ValueAdder::add(resolve::TypedArgs& list, const TypeGraph* types, Machine machine, const ValueOptions& options) {
  if (!options.open && options.paths.empty()) return;
  const std::size_t arguments = list.args.size();
  resolve::Follower follower(list, types, machine, {.structures = options.depth});
  for (std::size_t n = 0; options.open && n < arguments; ++n) follower.open(n);
  for (const ValuePath& path : options.paths) {
    Outcome& outcome = outcomes_[&path];
    if (path.steps.empty()) {
      const auto n = find_arg(list.args, path.root);
      if (!n) continue;
      outcome.found = true;
      if (!options.open) follower.open(*n);
      continue;
    }
    auto added = follower.add(path);
    if (added) {
      outcome.found = true;
    } else if (added.error().kind != ErrorKind::not_found) {
      Arg arg{.type = {}, .location = Unreadable{added.error().message}, .source = {}};
      arg.declaration = std::make_shared<const Declaration>(Declaration{path.text, {}, {}});
      arg.derived = true;
      if (list.args.size() < USDT_MAX_ARGS) list.args.push_back(std::move(arg));
      if (!outcome.fault) outcome.fault = std::move(added.error());
    }
  }
}

Result<void> ValueAdder::check() const {
  for (const auto& [path, outcome] : outcomes_) {
    if (outcome.found || !outcome.fault) continue;
    return fail(
        Error{ErrorKind::invalid_argument, outcome.fault->message, 0, outcome.fault->column}.within(path->text));
  }
  return {};
}

}  // namespace usdt::plan
