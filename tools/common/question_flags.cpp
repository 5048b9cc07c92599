// SPDX-License-Identifier: BSD-2-Clause
#include "common/question_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/command_line.hpp"

namespace usdt::tools {
namespace {

bool has_checked_form(const QuestionOption& option) {
  return option.kind != OptionKind::flag && option.kind != OptionKind::text;
}

bool looks_like_value(const QuestionOption& option, std::string_view word) {
  const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
  const std::string_view beginning = word.substr(0, word.find(','));
  return is_number || std::ranges::find(option.words, beginning) != option.words.end();
}

}  // namespace

CLI::Option* QuestionFlags::declare(CLI::App& app, const QuestionOption& option) {
  Written& written = options_.emplace_back(Written{&option});
  const std::string letter = option.short_name.empty() ? "" : fmt::format("-{},", option.short_name);
  const std::string names = fmt::format("{}--{}", letter, option.name);
  if (option.kind == OptionKind::flag) return app.add_flag(names, written.is_set, option.description);
  CLI::Option* const declared = app.add_option(names, written.values, option.description);
  declared->type_name(std::string(option.value_name))->default_str(option.usual_value)->allow_extra_args(false);
  if (!option.repeats) declared->expected(1);
  if (option.kind == OptionKind::processes) declared->delimiter(',');
  if (has_checked_form(option))
    declared->check(value_of(option));
  else if (!option.words.empty())
    declared->check(such_as({option.words.begin(), option.words.end()}));
  return declared;
}

std::vector<std::pair<std::string_view, std::string_view>> QuestionFlags::written() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const Written& each : options_) {
    if (each.is_set) all.emplace_back(each.option->name, "");
    for (const std::string& value : each.values) all.emplace_back(each.option->name, value);
  }
  return all;
}

void complete_bare_options(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with(kOptionPrefix)) continue;
    const QuestionOption* const option = find_question_option(std::string_view(words[i]).substr(kOptionPrefix.size()));
    if (option == nullptr || option->bare_value.empty()) continue;
    if (i + 1 == words.size() || !looks_like_value(*option, words[i + 1]))
      words[i] += fmt::format("={}", option->bare_value);
  }
}

}  // namespace usdt::tools
