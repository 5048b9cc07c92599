// SPDX-License-Identifier: BSD-2-Clause
// Rows of the table of options: what an option is, and what it does to a question that is being made. Each group of
// options has a file, options_of_GROUP.cpp.
#pragma once

#include <concepts>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/option_values.hpp"
#include "usdt/question_text.hpp"
#include "usdt/type.hpp"

namespace usdt::session {

/// Options for all functions, whichever patterns name them.
struct FunctionChoice {
  bool inlined = true;
  bool debuginfod = false;
  std::optional<bool> ret_probes = {};
  std::vector<Type> args = {};
};

/// A question that is being made. Values that several options make together wait here for the last of them.
struct QuestionDraft {
  Question question = {};
  ViewText view = {};
  FunctionChoice functions = {};
};

/// An option that is set.
struct SetOption {
  const QuestionOption& option;
  std::span<const std::string> values;  ///< of the right form; of a flag none
  std::string_view prefix;              ///< before the names of options in messages

  /// Returns the value of an option that has one alone.
  [[nodiscard]] const std::string& value() const { return values.front(); }
  /// Returns the name as messages have it.
  [[nodiscard]] std::string name() const { return std::string(prefix).append(option.name); }
  /// Fails with what is wrong with the option.
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view why) const;
  /// Fails: the option and `other` are not set together.
  [[nodiscard]] tl::unexpected<Error> excluded_by(std::string_view other) const;
};

/// Puts what an option says into a draft. Options before it in the table are there already.
using TakeOption = std::function<Result<void>(QuestionDraft&, const SetOption&)>;

/// A row of the table.
struct OptionRow {
  QuestionOption option;
  TakeOption take;
};

/// Stores a value, in a member of the type that options of its kind have.
inline void store(const SetOption&, bool& to) { to = true; }
inline void store(const SetOption& set, std::string& to) { to = set.value(); }
inline void store(const SetOption& set, std::vector<std::string>& to) { to = {set.values.begin(), set.values.end()}; }
inline void store(const SetOption& set, std::optional<double>& to) { to = read_seconds(set.value()); }
inline void store(const SetOption& set, std::optional<std::uint64_t>& to) {
  to = read_number<std::uint64_t>(set.value());
}
template <std::unsigned_integral Number>
requires(!std::same_as<Number, bool>) void store(const SetOption& set, Number& to) {
  to = read_number<Number>(set.value()).value_or(to);
}

/// Makes what stores a value in the member that `member_of` returns.
template <class MemberOf>
[[nodiscard]] TakeOption into(MemberOf member_of) {
  return [member_of](QuestionDraft& draft, const SetOption& set) -> Result<void> {
    store(set, member_of(draft));
    return {};
  };
}

/// Joins lists of rows.
template <std::same_as<std::vector<OptionRow>>... More>
[[nodiscard]] std::vector<OptionRow> join_rows(std::vector<OptionRow> rows, More... more) {
  (rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end())), ...);
  return rows;
}

/// Return the rows of each group, in the order of the table.
[[nodiscard]] std::vector<OptionRow> options_of_processes();
[[nodiscard]] std::vector<OptionRow> options_of_values();
[[nodiscard]] std::vector<OptionRow> options_of_tables();
[[nodiscard]] std::vector<OptionRow> options_of_limits();
[[nodiscard]] std::vector<OptionRow> options_of_files();
[[nodiscard]] std::vector<OptionRow> options_of_functions();
[[nodiscard]] std::vector<OptionRow> options_of_attaching();

/// Returns the whole table.
[[nodiscard]] const std::vector<OptionRow>& option_rows();

}  // namespace usdt::session
