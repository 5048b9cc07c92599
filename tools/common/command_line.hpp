// SPDX-License-Identifier: BSD-2-Clause
// Command lines of the tools: what CLI11 makes of them, said in our words and written like everything else.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/question_text.hpp"

// <CLI/CLI.hpp> takes a compiler five seconds: who only passes these on is without it.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace usdt::tools {

/// Text of --help for a program with many options: how it is called, what most people need, and examples. "--help all"
/// has everything, "--help GROUP" the options of one group.
struct BriefHelp {
  std::string_view usage;
  std::string_view description;
  std::vector<std::pair<std::string_view, std::string_view>> options;  ///< "-p PID", and what it does
  std::string_view examples;
};

/// Parses `words` (argv without the program's name). Returns the exit code where the program shall end: 0 after
/// --help, --version, --manual or --completion, which are printed, `kUsageError` after a complaint. `brief`: null:
/// --help is all of it.
[[nodiscard]] std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> words, int usage_error,
                                                    const BriefHelp* brief = nullptr);

/// Parses `words` without output, and without --manual and --completion. Returns what is wrong with them, if something
/// is.
[[nodiscard]] std::optional<std::string> complaint_of(CLI::App& app, std::vector<std::string> words);

/// Checks values as the library does, in the words of a command line.
[[nodiscard]] CLI::Validator value_of(QuestionOption option);
/// Accepts a process id.
[[nodiscard]] CLI::Validator process_id();
[[nodiscard]] CLI::Validator one_of(std::vector<std::string_view> words);
/// Accepts any value. Shells propose these words, and behind those that end in "=" a file.
[[nodiscard]] CLI::Validator such_as(std::vector<std::string> words);
/// Accepts any value. Shells propose what --completion prints for the word `list` (kPresetWords).
[[nodiscard]] CLI::Validator as_listed_by(std::string_view list);
inline constexpr std::string_view kPresetWords = "presets";

/// The values that shells propose for an option, as its validator knows them.
struct ProposedWords {
  std::vector<std::string> all;  ///< of one_of() and such_as()
  bool are_all_there_are = false;
  std::string list;  ///< of as_listed_by()
};
[[nodiscard]] ProposedWords words_of(const CLI::Validator& validator);

/// Returns a text without the blanks, or other characters, around it.
[[nodiscard]] std::string_view without_blanks(std::string_view text, std::string_view blanks = " ");

}  // namespace usdt::tools
