// SPDX-License-Identifier: BSD-2-Clause
// Options as they were written, before anybody made sense of them. For flags.cpp and script_flags.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "flags.hpp"

namespace usdt_trace {

/// What --backend and --carrier call the choice that is ours.
inline constexpr std::string_view kAuto = "auto";

struct RawFlags {
  std::vector<std::string> probes;
  std::vector<std::string> prints;
  std::string format_string;
  std::string where;
  std::string pair_by;
  std::string sample;
  std::string max_rate;
  std::string max_overhead;
  std::string last;
  std::string dump_on;
  std::string strings;
  std::string user_stack;
  std::vector<std::string> backends;
  std::string carrier{kAuto};
  std::string format = "text";
  std::vector<std::string> disabled;
  bool wait_for_pages = false;
  bool no_wait_for_pages = false;
  usdt::tools::FunctionFlags functions;
  usdt::ViewText view;
};

/// The words of a command line.
struct CommandLine {
  std::vector<std::string> own;      ///< before "--"
  std::vector<std::string> command;  ///< behind it, untouched by our own options
  bool empty_command = false;        ///< nothing is behind it
};

/// Tells `app` of all options, which it puts into `flags` and `raw`.
void declare(CLI::App& app, Flags& flags, RawFlags& raw);
/// What --help prints before anybody asks for more.
[[nodiscard]] const usdt::tools::BriefHelp& brief_help();
/// Makes sense of what `app` parsed. Errors: syntax, invalid_argument, not_found.
[[nodiscard]] usdt::Result<void> interpret(const CLI::App& app, Flags& flags, const RawFlags& raw);
/// Whether an option is about what was recorded, too, and not about tracing alone.
[[nodiscard]] bool goes_with_replay(std::string_view name);
/// "--kstack PROBE", "--ustack PROBE": the value may be left out, and what is none is not taken for it.
void complete_stacks(std::vector<std::string>& words);

}  // namespace usdt_trace
