// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/wanted.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "kernel/names.hpp"

namespace usdt::kernel {
namespace {

/// Plain names are looked up, since a list of probes may have thousands of them.
class Wanted {
 public:
  Wanted(std::span<const KernelPattern> patterns, const ModuleNames& modules) : modules_(modules) {
    for (const KernelPattern& pattern : patterns) {
      if (is_tracepoint(pattern)) continue;
      if (is_plain(pattern.name)) {
        plain_.emplace(pattern.name, &pattern);
      } else {
        globs_.push_back(&pattern);
      }
    }
  }

  [[nodiscard]] bool operator()(const Named& function) const {
    if (!plain_.empty()) {
      const auto [first, last] = plain_.equal_range(function.name);
      if (std::any_of(first, last, [&](const auto& each) { return in_module(*each.second, function); })) return true;
    }
    return std::ranges::any_of(globs_, [&](const KernelPattern* glob) {
      return glob_match(glob->name, function.name) && in_module(*glob, function);
    });
  }

 private:
  [[nodiscard]] bool in_module(const KernelPattern& pattern, const Named& function) const {
    return module_matches(pattern.module, modules_.name(function.module));
  }

  const ModuleNames& modules_;
  std::vector<const KernelPattern*> globs_;
  std::unordered_multimap<std::string_view, const KernelPattern*> plain_;
};

/// Returns the addresses of `functions` but for hidden ones; sorted.
std::vector<std::uint64_t> addresses_of(const std::vector<Named>& functions) {
  std::vector<std::uint64_t> out;
  for (const Named& function : functions) {
    if (function.address != 0) out.push_back(function.address);
  }
  std::ranges::sort(out);
  return out;
}

/// The names of `functions` that are at one of `addresses`.
std::unordered_set<std::string_view> names_at(const std::vector<std::uint64_t>& addresses,
                                              const std::vector<Named>& functions) {
  std::unordered_set<std::string_view> out;
  for (const Named& function : functions) {
    if (std::ranges::binary_search(addresses, function.address)) out.insert(function.name);
  }
  return out;
}

}  // namespace

void keep_wanted(std::span<const KernelPattern> patterns, const ModuleNames& modules, Symbols& symbols,
                 std::vector<Named>& listed) {
  const Wanted wanted(patterns, modules);
  const auto unwanted = std::stable_partition(symbols.functions.begin(), symbols.functions.end(), wanted);
  const std::vector<Named> others(unwanted, symbols.functions.end());
  symbols.functions.erase(unwanted, symbols.functions.end());
  const auto aliases = names_at(addresses_of(symbols.functions), others);
  const auto is_alias = [&](const Named& function) { return !aliases.empty() && aliases.contains(function.name); };
  std::ranges::copy_if(others, std::back_inserter(symbols.functions), is_alias);
  std::erase_if(listed, [&](const Named& function) { return !wanted(function) && !is_alias(function); });
}

}  // namespace usdt::kernel
