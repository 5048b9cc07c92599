// SPDX-License-Identifier: BSD-2-Clause
// Options of questions on a command line, out of the library's table.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/question_text.hpp"

// <CLI/CLI.hpp> takes a compiler five seconds: who only passes these on is without it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace usdt::tools {

/// Stands before the names of options in messages about them.
inline constexpr std::string_view kOptionPrefix = "--";

/// Takes options of questions from a command line. It must live as long as the CLI::App, and stay where it is.
class QuestionFlags {
 public:
  QuestionFlags() = default;
  QuestionFlags(const QuestionFlags&) = delete;
  QuestionFlags& operator=(const QuestionFlags&) = delete;

  /// Declares an option, under the heading "Options".
  CLI::Option* declare(CLI::App& app, const QuestionOption& option);
  /// Returns what the App has parsed, in the order of the declarations: options with their values, an option that
  /// repeats once for each.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> written() const;

 private:
  /// An option, and what was written of it.
  struct Written {
    const QuestionOption* option;
    bool is_set = false;                   ///< of a flag
    std::vector<std::string> values = {};  ///< of others
  };

  std::deque<Written> options_;
};

/// Gives options that stand without a value the one that they have then: "--kstack PROBE" becomes "--kstack=16 PROBE".
/// A word that does not look like a value of the option is none.
void complete_bare_options(std::vector<std::string>& words);

}  // namespace usdt::tools
