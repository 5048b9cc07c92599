// SPDX-License-Identifier: BSD-2-Clause
// Parameters and results.
#include <fmt/format.h>

#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"

namespace usdt::dwarf {

Result<Signature> DebugInfo::signature(const FunctionInfo& function, const Instance& instance) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto die = impl_->die(instance.die);
  if (!die)
    return fail(ErrorKind::invalid_argument, fmt::format("'{}': an instance of another file", function.qualified));
  Signature signature;
  std::uint64_t steps = impl_->most_steps();
  for_each_child(*die, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) return true;
    const auto name = text(attribute(child, DW_AT_name));
    signature.args.push_back(
        {.type = {.size = impl_->arch.word_size},
         .location = Unreadable{.reason = "its location has not been read"},
         .source = {},
         .declaration = std::make_shared<const Declaration>(Declaration{std::string(name), {}, {}})});
    return true;
  });
  signature.pieces.resize(signature.args.size());
  return signature;
}

}  // namespace usdt::dwarf
