// SPDX-License-Identifier: BSD-2-Clause
#include "expr/near_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/near_text.hpp"
#include "usdt/hit_field.hpp"

namespace usdt::expr {
namespace {

constexpr std::string_view kReturnValue = "retval";

/// Words of other tools and of programming languages, and what is meant by them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kSynonyms{{{"return", kReturnValue},
                                                                                   {"ret", kReturnValue},
                                                                                   {"result", kReturnValue},
                                                                                   {"returned", kReturnValue},
                                                                                   {"took", "duration"},
                                                                                   {"latency", "duration"},
                                                                                   {"delta", "duration"},
                                                                                   {"process", "comm"},
                                                                                   {"execname", "comm"},
                                                                                   {"timestamp", "nsecs"},
                                                                                   {"stack", "ustack"},
                                                                                   {"func", "name"},
                                                                                   {"function", "name"}}};
}  // namespace

std::string near_names(std::string_view written, const std::vector<Arg>& args) {
  const bool returns = std::ranges::any_of(args, &Arg::result);
  for (const auto& [word, meant] : kSynonyms)
    if (written == word && (returns || meant != kReturnValue)) return fmt::format(" (did you mean {}?)", meant);
  NearTexts near(written);
  if (returns) near.offer(kReturnValue);
  for (const HitFieldInfo& each : kHitFields)
    if (each.type != ExpressionType::stack) near.offer(each.word);
  for (const Arg& arg : args)
    if (!arg.hidden && !arg.name().empty()) near.offer(arg.name());
  const auto best = std::move(near).best();
  return best.empty() ? std::string() : fmt::format(" (did you mean {}?)", fmt::join(best, ", "));
}

}  // namespace usdt::expr
