// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/path_walker.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/try.hpp"
#include "resolve/path_step.hpp"

namespace usdt::resolve {

Object PathWalker::object_of(std::size_t n) const {
  const Arg& arg = roots_.args[n];
  Object object{
      .place = Number{arg.location, arg.steps}, .type = {}, .text = {}, .result = arg.result, .needs = arg.needs};
  object.text = arg.result ? "retval" : arg.name().empty() ? fmt::format("arg{}", n) : std::string(arg.name());
  if (n < roots_.types.size()) object.type.id = roots_.types[n];
  const bool in_pieces = n < roots_.pieces.size() && !roots_.pieces[n].empty();
  if (in_pieces) {
    object.place = InPieces{roots_.pieces[n]};
  } else if (const auto* memory = std::get_if<Memory>(&arg.location); memory != nullptr && !memory->is_value) {
    object.place = InMemory{*memory};
  }
  return object;
}

bool PathWalker::is_root(const ValuePath& path, std::size_t n) const {
  if (n >= roots_.args.size()) return false;
  const Arg& arg = roots_.args[n];
  if (arg.result) return path.root == ArgName("retval");
  const auto* number = std::get_if<std::uint8_t>(&path.root);
  return number != nullptr ? *number == n : arg.name() == std::get<std::string>(path.root);
}

Type PathWalker::root_type(const ValuePath& path) const {
  for (std::size_t n = 0; n < roots_.args.size(); ++n)
    if (is_root(path, n)) return roots_.args[n].type;
  return {};
}

Result<Object> PathWalker::root_of(const ValuePath& path) const {
  for (std::size_t n = 0; n < roots_.args.size(); ++n)
    if (is_root(path, n)) return object_of(n);
  return fail(ErrorKind::not_found, fmt::format("{}: no such argument", path.text));
}

Result<Object> PathWalker::before_last_step(const ValuePath& path) const {
  auto object = TRY(walk(path, path.steps.size() - 1));
  return without_reference(types_, std::move(object));
}

Result<Object> PathWalker::walk(const ValuePath& path, std::size_t steps) const {
  auto object = TRY(root_of(path));
  for (std::size_t i = 0; i < steps; ++i) object = TRY(take_step(types_, std::move(object), path.steps[i]));
  return object;
}

}  // namespace usdt::resolve
