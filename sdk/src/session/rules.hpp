// SPDX-License-Identifier: BSD-2-Clause
// Reasons to refuse a question.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "session/option_names.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// A reason to refuse a question, and whether it holds.
struct Rule {
  bool broken = false;
  const char* why = "";
};

/// Fails with the first reason that holds.
template <std::size_t N>
[[nodiscard]] Result<void> check_rules(const Question& question, const std::array<Rule, N>& rules) {
  const auto broken = std::ranges::find(rules, true, &Rule::broken);
  return broken == rules.end() ? Result<void>() : refuse(broken->why, question.option_prefix);
}

}  // namespace usdt::session
