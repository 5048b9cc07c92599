// SPDX-License-Identifier: BSD-2-Clause
// Options as they were written, before anybody made sense of them. For flags.cpp and script_flags.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "common/question_flags.hpp"
#include "flags.hpp"

namespace usdt_trace {

struct RawFlags {
  std::vector<std::string> probes;
  usdt::tools::QuestionFlags question;
  std::vector<std::string> exports;
  std::string listen;
  std::vector<std::string> disabled;
  bool doctor = false;
};

/// The words of a command line.
struct CommandLine {
  std::vector<std::string> own;      ///< before "--"
  std::vector<std::string> command;  ///< behind it, untouched by our own options
  bool empty_command = false;        ///< nothing is behind it
};

/// Tells `app` of all options, which it puts into `flags` and `raw`.
void declare(CLI::App& app, Flags& flags, RawFlags& raw);
/// Returns the text that --help prints before anybody asks for more.
[[nodiscard]] const usdt::tools::BriefHelp& brief_help();

/// Makes sense of the options that are of the tool, as `app` parsed them. Errors: not_found (a feature),
/// invalid_argument.
[[nodiscard]] usdt::Result<void> interpret_own(const CLI::App& app, Flags& flags, const RawFlags& raw);
/// Sets an option of the question, "signal" of --dump-on in `flags`. Errors: as QuestionText::set().
[[nodiscard]] usdt::Result<void> set_option(Flags& flags, usdt::QuestionText& text, std::string_view name,
                                            std::string_view value);
/// Returns what the command line asks, without its points. Errors: as set_option().
[[nodiscard]] usdt::Result<usdt::QuestionText> asked_text(Flags& flags, const RawFlags& raw, const CommandLine& line);
/// Makes the question of `flags`, whose name stays. Errors: as parse_question(), with hints about command lines, and
/// as check_sink_format().
[[nodiscard]] usdt::Result<void> make_question(Flags& flags, const usdt::QuestionText& text);

/// Whether an option of the tool is about what was recorded, too, and not about tracing alone.
[[nodiscard]] bool own_option_goes_with_replay(std::string_view name);

}  // namespace usdt_trace
