// SPDX-License-Identifier: BSD-2-Clause
// Scripts: several named questions of one session in a TOML file (docs/scripts.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// A place in a script; counted from 1.
struct ScriptPlace {
  std::uint32_t line = 0, column = 0;
};

/// A key of a script, which is called as the option of the command line it stands for.
struct ScriptOption {
  std::string name;  ///< without the dashes
  std::variant<bool, std::vector<std::string>> value =
      {};  ///< of a flag; what is given to others, perhaps again and again
  ScriptPlace place = {};
};

/// One question.
struct ScriptQuestion {
  std::string name;
  ScriptPlace place = {};
  std::vector<std::string> probes = {};
  std::vector<ScriptOption> options = {};

  /// Whether it has an option of this name.
  [[nodiscard]] bool has(std::string_view option) const {
    return std::ranges::find(options, option, &ScriptOption::name) != options.end();
  }
};

/// A need of a script: "linux 6.1", "feature kernel_btf".
struct ScriptNeed {
  std::string text;
  ScriptPlace place = {};
};

struct Script {
  std::string file;
  std::string title = {};
  std::vector<ScriptNeed> needs = {};
  std::vector<ScriptOption> shared = {};  ///< of all questions
  std::vector<ScriptQuestion> questions = {};

  /// Returns an error about a place: "gc.toml:7:3: ...".
  [[nodiscard]] usdt::Error wrong(ScriptPlace place, std::string_view why) const;
};

/// Reads a file of at most 1 MiB. The values of its keys are not checked. Errors: not_found, no_permission, io; syntax
/// and invalid_argument with the place (no TOML, values of other types than options have, no question, no probes).
[[nodiscard]] usdt::Result<Script> read_script(const std::string& file);
inline constexpr std::size_t kMostScriptBytes = 1U << 20;
/// Parses what a file has, which is `file` in errors. Errors: syntax and invalid_argument, as read_script().
[[nodiscard]] usdt::Result<Script> parse_script(const std::string& file, std::string_view text);

/// Checks that this machine has all needs of a script. Errors: not_supported, with all that is missing;
/// invalid_argument (a need that is none).
[[nodiscard]] usdt::Result<void> check_needs(const Script& script);

}  // namespace usdt_trace
