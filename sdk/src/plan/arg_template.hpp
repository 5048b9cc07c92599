// SPDX-License-Identifier: BSD-2-Clause
// Finds out once what sites with equal arguments share. Private to plan/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash_index.hpp"
#include "plan/captures.hpp"
#include "plan/values.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// Holds what all sites with one argument text share.
struct ArgTemplate {
  Index<std::vector<Arg>> args;
  ValueAdder::Filter filter;
  EncodedSpec encoded;              ///< for a breakpoint at address 0; empty where all its sites share one
  bool result_comes_later = false;  ///< resolve::EncodeOptions
  bool ip_relative = false;         ///< some value is a distance from the breakpoint
  Index<EncodedSpec> spec;          ///< where all its sites share one
};

/// Sites outlive the planning, so that keys are views of their strings.
using MachineText = std::pair<Machine, std::string_view>;
/// An argument text, what its provider says of the arguments, which of them are wanted as texts, and which are lengths
/// of those.
struct TemplateKey {
  const TextOptions* wanted;
  const ValueOptions* values;
  const TextAndLength* known;
  const SiteDescription* description;
  std::string_view text;
  friend bool operator==(const TemplateKey&, const TemplateKey&) = default;
};

struct KeyHash {
  std::size_t operator()(const MachineText& key) const noexcept {
    return std::hash<Machine>{}(key.first) * 31 + std::hash<std::string_view>{}(key.second);
  }
};

inline std::size_t hash_of(const TemplateKey& key) noexcept {
  const std::hash<const void*> of_pointer;
  const std::size_t how = (of_pointer(key.wanted) * 31 + of_pointer(key.values)) * 31 + of_pointer(key.known);
  return (how * 31 + of_pointer(key.description)) * 31 + std::hash<std::string_view>{}(key.text);
}

/// The numbers of the templates of a file's sites.
class KnownTemplates {
 public:
  void reserve(std::size_t count) { by_key_.reserve(count); }
  [[nodiscard]] bool contains(const TemplateKey& key) const {
    return by_key_.contains(hash_of(key), [&](std::uint32_t at) { return all_[at].first == key; });
  }
  /// Returns the template of `key`; if none is known, that of make(), which is known from then on.
  template <class Make>
  std::uint32_t get(const TemplateKey& key, const Make& make) {
    const auto [at, fresh] = by_key_.try_add(hash_of(key), static_cast<std::uint32_t>(all_.size()),
                                             [&](std::uint32_t known) { return all_[known].first == key; });
    if (fresh) all_.emplace_back(key, make());
    return all_[at].second;
  }

 private:
  HashIndex by_key_;
  std::vector<std::pair<TemplateKey, std::uint32_t>> all_;
};

}  // namespace usdt::plan
