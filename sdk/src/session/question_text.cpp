// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/question_text.hpp"

#include <fmt/format.h>

#include <string>

#include "base/near_text.hpp"

namespace usdt {
inline namespace v1 {
namespace {

tl::unexpected<Error> no_option(std::string_view name) {
  NearTexts near(name);
  for (const QuestionOption& option : question_options()) near.offer(option.name);
  return fail(ErrorKind::not_found, fmt::format("there is no option '{}'{}", name, std::move(near).question()));
}

/// Splits "PID,PID"; values of other kinds are one each.
std::vector<std::string> split_value(const QuestionOption& option, std::string_view value) {
  std::vector<std::string> values;
  const bool several = option.kind == OptionKind::processes;
  for (std::size_t comma = value.find(','); several && comma != value.npos; comma = value.find(',')) {
    values.emplace_back(value.substr(0, comma));
    value.remove_prefix(comma + 1);
  }
  values.emplace_back(value);
  return values;
}

}  // namespace

Result<void> QuestionText::set(std::string_view name, std::string_view value) {
  const QuestionOption* const option = find_question_option(name);
  if (option == nullptr) return no_option(name);
  const std::string named = option_prefix_ + std::string(name);
  if (option->kind != OptionKind::flag && !option->repeats && has(name))
    return fail(ErrorKind::invalid_argument, fmt::format("{} takes one {}", named, option->value_name));
  const std::vector<std::string> values = split_value(*option, value.empty() ? option->bare_value : value);
  for (const std::string& each : values)
    if (auto sense = check_option_value(*option, each); !sense) return fail(sense.error().within(named));
  std::vector<std::string>& all = values_[std::string(name)];
  if (option->kind != OptionKind::flag) all.insert(all.end(), values.begin(), values.end());
  return {};
}

std::span<const std::string> QuestionText::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::span<const std::string>() : found->second;
}

}  // namespace v1
}  // namespace usdt
