// SPDX-License-Identifier: BSD-2-Clause
// The forms that values of options have, and what is said of a value with another one.
#include "session/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "usdt/question_text.hpp"

namespace usdt {
namespace session {

std::optional<double> read_seconds(std::string_view text) {
  using Unit = std::pair<std::string_view, double>;
  static constexpr std::array<Unit, 7> kUnits = {
      {{"", 1}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto unit = std::ranges::find(kUnits, text.substr(digits), &Unit::first);
  const auto number = read_number<double>(text.substr(0, digits));
  if (!number || unit == kUnits.end() || *number * unit->second > century) return std::nullopt;
  return *number * unit->second;
}

}  // namespace session

inline namespace v1 {
namespace {

std::string complaint_about_number(const QuestionOption& option, std::string_view value) {
  const auto number = session::read_number<std::uint64_t>(value);
  if (number && *number >= option.least && *number <= option.most) return {};
  if (option.most == UINT64_MAX)
    return fmt::format("'{}' is not a whole number from {} on that fits 64 bits", value, option.least);
  return fmt::format("'{}' is not a whole number from {} to {}", value, option.least, option.most);
}

/// Says what is wrong with a value; empty: nothing is.
std::string complaint_about(const QuestionOption& option, std::string_view value) {
  switch (option.kind) {
    case OptionKind::flag:
      return value.empty() ? "" : fmt::format("'{}' is one value too many: it takes none", value);
    case OptionKind::number:
      return complaint_about_number(option, value);
    case OptionKind::time:
      if (session::read_seconds(value)) return {};
      return fmt::format("'{}' is not a time such as 10 (seconds), 0.5, 500ms, 2s, 5m or 24h, up to a century", value);
    case OptionKind::processes:
      if (session::read_number<std::int32_t>(value).value_or(0) > 0) return {};
      return fmt::format("'{}' is not a process id", value);
    case OptionKind::choice:
      if (std::ranges::find(option.words, value) != option.words.end()) return {};
      return fmt::format("'{}' is none of: {}", value, fmt::join(option.words, ", "));
    case OptionKind::text:
      return value.empty() ? "its value is empty" : "";
  }
  return {};
}

}  // namespace

Result<void> check_option_value(const QuestionOption& option, std::string_view value) {
  std::string complaint = complaint_about(option, value);
  return complaint.empty() ? Result<void>() : fail(ErrorKind::invalid_argument, std::move(complaint));
}

}  // namespace v1
}  // namespace usdt
