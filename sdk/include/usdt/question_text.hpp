// SPDX-License-Identifier: BSD-2-Clause
// Questions as text: what people ask on command lines, in files and from other languages, by names of options.
// question_options() is the table of the options, which are those of usdt-trace; QuestionText takes their values, and
// parse_question() makes a Question of them:
//
//     usdt::QuestionText text;
//     text.points = {"python:gc__start ~~ python:gc__done"};
//     if (auto set = text.set("by", "pid"); !set) return set;
//     if (auto set = text.set("latency"); !set) return set;
//     auto question = usdt::parse_question(text);
//
// None of it needs privilege or looks at files. A QuestionText is a plain value, used by one thread at a time; any
// thread may read the table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/pattern.hpp"
#include "usdt/question.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Tells what the value of an option looks like.
enum class OptionKind : std::uint8_t {
  flag,       ///< there is none: the option is set, or it is not
  number,     ///< a whole number, QuestionOption::least to QuestionOption::most, in decimal digits
  time,       ///< a time up to a century: "10" (seconds), "0.5", "500ms", "2s", "5m", "24h", also "us" and "ns"
  processes,  ///< process ids, with commas between them
  choice,     ///< one of QuestionOption::words
  text,       ///< any text that is not empty; parse_question() reads it
};

/// Tells which questions an option is about, where one session has several.
enum class OptionScope : std::uint8_t {
  any,       ///< all of them, or one that differs from the others
  question,  ///< one
  session,   ///< all of them
};

/// An option that a question may be asked with.
struct QuestionOption {
  std::string_view name;             ///< "max-events"
  std::string_view short_name = {};  ///< "M", on command lines; empty: there is none
  std::string_view group = {};       ///< the heading that it has in help: "Limits"
  OptionKind kind = OptionKind::flag;
  std::string_view value_name = {};          ///< the name of the value in help: "N", "EXPR"; empty: a flag
  std::string description = {};              ///< its effect, in sentences that put "--" before names of options
  std::string usual_value = {};              ///< the value of an option that is not set; empty: the description has it
  std::string_view bare_value = {};          ///< the value of an option that is set without one; empty: it needs one
  std::uint64_t least = 0;                   ///< of numbers
  std::uint64_t most = UINT64_MAX;           ///< of numbers
  std::vector<std::string_view> words = {};  ///< of choices the values; of texts how some of their values begin
  bool repeats = false;                      ///< may be set again and again, each time with another value
  OptionScope scope = OptionScope::any;
  bool of_replay = false;  ///< is about recorded events, too ("replay"); other options are about tracing alone
};

/// The group of options about functions, which choose_functions() takes.
inline constexpr std::string_view kFunctionOptions = "Functions";

/// Returns the options in the order of help: those of one group stand together.
[[nodiscard]] std::span<const QuestionOption> question_options();
/// Returns the option with this name, without dashes; null: there is none.
[[nodiscard]] const QuestionOption* find_question_option(std::string_view name);
/// Checks the form of a value, one alone where an option takes several. Errors: invalid_argument, with the value and
/// the form that it should have ("'0' is not a whole number from 1 to 127"), without the name of the option.
[[nodiscard]] Result<void> check_option_value(const QuestionOption& option, std::string_view value);

/// A question as text: names of points, and values of options by their names.
class QuestionText {
 public:
  /// Asks nothing yet. Messages name options as they are.
  QuestionText() = default;
  /// Asks nothing yet. Messages put `option_prefix` before the names of options: "--" on a command line.
  explicit QuestionText(std::string_view option_prefix) : option_prefix_(option_prefix) {}

  std::vector<std::string> points = {};   ///< as parse_points() takes them
  std::vector<std::string> command = {};  ///< AskedProcesses::command

  /// Sets an option of question_options(). The `value` of a flag is empty, and that of an option with a bare value may
  /// be. Errors: not_found (no option has this name; the message proposes others), invalid_argument (a value of another
  /// form; a second value, unless the option repeats). After an error the text is what it was.
  [[nodiscard]] Result<void> set(std::string_view name, std::string_view value = {});
  /// Returns whether an option is set.
  [[nodiscard]] bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// Returns the values of an option in their order, as long as the text lives and the option is not set again; of
  /// flags, and of options that are not set, none.
  [[nodiscard]] std::span<const std::string> values(std::string_view name) const;
  /// Returns what stands before the names of options in messages.
  [[nodiscard]] std::string_view option_prefix() const noexcept { return option_prefix_; }

 private:
  std::string option_prefix_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// Makes a question, which complete_question() and check_question() have seen. Errors: syntax (names of points,
/// expressions, lists of values), invalid_argument (a value that is none, parts that do not go together, no points),
/// not_supported (points of a kind that cannot be traced). Messages begin with the name of the option that they are
/// about.
[[nodiscard]] Result<Question> parse_question(const QuestionText& text);
/// Makes patterns of functions mean what the options of the group kFunctionOptions say; other patterns stay as they
/// are. parse_question() does so with the points of a question. Errors: syntax with the column (of "args"),
/// invalid_argument (options that exclude each other).
[[nodiscard]] Result<void> choose_functions(const QuestionText& text, std::vector<PointPattern>& patterns);

}  // namespace v1
}  // namespace usdt
