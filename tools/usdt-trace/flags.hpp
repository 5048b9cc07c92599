// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Forms of answers (usdt::sink_formats()) about which there is more to say than in their rows.
inline constexpr std::string_view kTextFormat = "text", kJsonFormat = "json", kRecordFormat = "record",
                                  kMetricsFormat = "prometheus";

/// The place and form of answers.
struct ExportPart {
  std::string format;       ///< by name
  std::string file = {};    ///< empty: standard output, unless they are served
  std::string listen = {};  ///< the address where they are served
};

/// The script that a question is of.
struct ScriptPart {
  std::string file = {};        ///< empty: none
  std::string preset = {};      ///< "python.gc"; empty: none. `file` is its name then
  std::string place = {};       ///< in errors: "gc.toml:7:1: pauses"
  std::size_t label_width = 0;  ///< of the longest name of a question
};

/// Outputs for the answers, and how much is said beside them.
struct OutputPart {
  ExportPart shown = {.format = std::string(kTextFormat), .file = {}};
  std::vector<ExportPart> exports = {};  ///< besides
  bool quiet = false;
  bool verbose = false;  ///< how sites are attached, too
};

/// The command line, or one question of a script, parsed and checked for sense.
struct Flags {
  usdt::Question question = {};
  ScriptPart script = {};
  OutputPart output = {};
  usdt::FeatureChoice features = {};  ///< of all questions
  std::string broker = {};            ///< the socket of usdt-broker; empty: the usual one, and only if it is needed
  bool no_broker = false;
  bool dump_on_signal = false;  ///< SIGUSR1 ends the trace, whose last events are written
  bool strict = false;
  bool explain = false;           ///< say what would be traced, and trace nothing
  std::string verifier_log = {};  ///< file for what the kernel's verifier says of a program it refuses
};

/// Parses argv, and a script that it names; prints help, version or a usage error itself. Returns the questions,
/// without a script one; nothing when the program shall end, with the exit code in `exit_code`.
[[nodiscard]] std::optional<std::vector<Flags>> parse_flags(int argc, char** argv, int& exit_code);

}  // namespace usdt_trace
