// SPDX-License-Identifier: BSD-2-Clause
// What a name that no function has may have been meant to be.
#include <algorithm>
#include <utility>

#include "base/near_text.hpp"
#include "kernel/catalogue.hpp"

namespace usdt::kernel {
namespace {

constexpr unsigned kSuggestions = 3;

}  // namespace

std::vector<std::string_view> near_names(std::string_view name, std::span<const KernelFunction> all) {
  std::vector<std::pair<unsigned, std::string_view>> found;
  const unsigned most = likely_mistakes(name);
  for (const KernelFunction& function : all) {
    const std::string_view other = function.name;
    // `x.isra.0` is what the compiler made of `x`.
    if (other.size() > name.size() && other[name.size()] == '.' && other.starts_with(name)) {
      found.emplace_back(0, other);
      continue;
    }
    if (const unsigned changes = typing_distance(name, other, most); changes <= most)
      found.emplace_back(changes, other);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > kSuggestions) found.resize(kSuggestions);
  std::vector<std::string_view> out;
  for (const auto& [changes, other] : found) out.push_back(other);
  return out;
}

}  // namespace usdt::kernel
