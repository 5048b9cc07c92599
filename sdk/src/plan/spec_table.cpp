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
  for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it) {
    const EncodedSpec& known = specs_[it->second];
    if (known.user_cookie == spec.user_cookie && bytes_of(known.args) == args && bytes_of(known.steps) == steps)
      return it->second;
  }
  const Index<EncodedSpec> index = specs_.add(std::move(spec));
  by_hash_.emplace(hash, index);
  return index;
}

}  // namespace usdt::plan
