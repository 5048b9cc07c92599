// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/names.hpp"

#include <algorithm>
#include <utility>

#include "base/near_text.hpp"

namespace usdt::kernel {
namespace {

constexpr unsigned kSuggestions = 3;

}  // namespace

std::vector<std::span<const KernelFunction>> by_module(std::span<const KernelFunction> all) {
  std::vector<std::span<const KernelFunction>> out;
  while (!all.empty()) {
    const std::string_view module = all.front().module;
    const auto end = std::ranges::partition_point(all, [&](const auto& f) { return f.module == module; });
    out.push_back(all.first(static_cast<std::size_t>(end - all.begin())));
    all = all.subspan(out.back().size());
  }
  return out;
}

bool module_matches(const std::string& pattern, std::string_view module) noexcept {
  return pattern.empty() || glob_match(pattern, module.empty() ? "vmlinux" : module);
}

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
