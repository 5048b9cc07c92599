// SPDX-License-Identifier: BSD-2-Clause
// Folded stacks of events, added up in bounded memory. Private to export/.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace usdt::exports {

/// Adds up events by their folded stack.
class FoldedStacks {
 public:
  /// Takes new stacks while all of them take at most `most_bytes`.
  explicit FoldedStacks(std::size_t most_bytes) noexcept : room_(most_bytes) {}

  /// Adds `weight` events with this stack. False: it is a new one that there is no room for.
  [[nodiscard]] bool add(std::string stack, double weight) {
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) {
      known->second += weight;
      return true;
    }
    const std::size_t bytes = stack.size() + kNode;
    if (bytes > room_) return false;
    room_ -= bytes;
    stacks_.emplace(std::move(stack), weight);
    return true;
  }
  /// Returns the stacks in order, and how many events had each.
  [[nodiscard]] const std::map<std::string, double>& all() const noexcept { return stacks_; }

 private:
  static constexpr std::size_t kNode = 96;  ///< bytes that an entry takes beside its text, about

  std::size_t room_;
  std::map<std::string, double> stacks_;
};

}  // namespace usdt::exports
