// SPDX-License-Identifier: BSD-2-Clause
#include "plan/spec_table.hpp"

#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace usdt::plan {
namespace {

/// usdt_arg_spec has no padding (asserted in spec.h), so that its bytes are its value.
std::string_view bytes_of(const std::vector<usdt_arg_spec>& args) {
  return {reinterpret_cast<const char*>(args.data()), args.size() * sizeof(usdt_arg_spec)};
}

}  // namespace

Index<EncodedSpec> SpecTable::intern(EncodedSpec spec) {
  const std::string_view args = bytes_of(spec.args);
  const std::string_view steps = bytes_of(spec.steps);
  std::size_t hash = std::hash<std::string_view>{}(args) ^ static_cast<std::size_t>(spec.user_cookie);
  if (!steps.empty()) hash = hash * 31 + std::hash<std::string_view>{}(steps);
  const auto [number, fresh] = by_hash_.try_add(hash, specs_.next().value, [&](std::uint32_t at) {
    const EncodedSpec& known = specs_[Index<EncodedSpec>(at)];
    return known.user_cookie == spec.user_cookie && bytes_of(known.args) == args && bytes_of(known.steps) == steps;
  });
  return fresh ? specs_.add(std::move(spec)) : Index<EncodedSpec>(number);
}

}  // namespace usdt::plan
