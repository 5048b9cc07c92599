// SPDX-License-Identifier: BSD-2-Clause
// The table of options, of the rows that each group has, and what it is asked for.
#include <fmt/format.h>

#include <algorithm>

#include "session/option_rows.hpp"

namespace usdt {
namespace session {

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows =
      join_rows(options_of_processes(), options_of_values(), options_of_tables(), options_of_limits(),
                options_of_files(), options_of_functions(), options_of_attaching());
  return rows;
}

tl::unexpected<Error> SetOption::wrong(std::string_view why) const {
  return fail(ErrorKind::invalid_argument, fmt::format("{}: {}", name(), why));
}

tl::unexpected<Error> SetOption::excluded_by(std::string_view other) const {
  return fail(ErrorKind::invalid_argument, fmt::format("{}{} excludes {}", prefix, other, name()));
}

}  // namespace session

inline namespace v1 {

std::span<const QuestionOption> question_options() {
  static const std::vector<QuestionOption> options = [] {
    std::vector<QuestionOption> all;
    for (const session::OptionRow& row : session::option_rows()) all.push_back(row.option);
    return all;
  }();
  return options;
}

const QuestionOption* find_question_option(std::string_view name) {
  const std::span<const QuestionOption> all = question_options();
  const auto found = std::ranges::find(all, name, &QuestionOption::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace v1
}  // namespace usdt
