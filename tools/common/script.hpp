// SPDX-License-Identifier: BSD-2-Clause
// Scripts: several named questions of one session in a TOML file (docs/scripts.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt::tools {

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

/// A condition of a process, without which a probe that it has does not fire.
struct Condition {
  enum class Kind : std::uint8_t {
    environment,  ///< it was started with the variable NAME, or with NAME=VALUE
    argument,     ///< a word of its command line, or of the variables that stand for one, matches
    unseen,       ///< what nobody sees from outside: a sentence
  };
  Kind kind = Kind::unseen;
  std::string text = {};  ///< a glob; of `unseen` the sentence
};

/// One question.
struct ScriptQuestion {
  std::string name;
  ScriptPlace place = {};
  std::string title = {};
  std::vector<std::string> probes = {};
  std::vector<ScriptOption> options = {};
  bool on_request = false;                    ///< asked only where it is named (NAME.QUESTION of a preset)
  std::string cost = {};                      ///< why a trace of it may cost much
  std::vector<Condition> fires_only_if = {};  ///< one of them has to hold of a process, else there are no hits
  std::string otherwise = {};  ///< the name of the question that takes its place where none holds; empty: none
  std::vector<std::string> known_as = {};  ///< what other tracers call it: "gethostlatency"

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
  std::string preset = {};   ///< its name as one of these; empty: it is none
  bool is_built_in = false;  ///< as a preset: nobody has its file
  std::string title = {};
  std::vector<ScriptNeed> needs = {};
  std::vector<std::string> programs = {};  ///< that it is about: globs of the names of their files
  std::vector<std::string> tried = {};     ///< versions that it was tried with
  std::vector<std::string> known_as = {};  ///< other words for what it is about: "mysql"
  std::vector<ScriptOption> shared = {};   ///< of all questions
  /// Names and meanings of arguments of probes that declare none. Null: there are none.
  std::shared_ptr<const std::vector<ProbeDeclaration>> declarations = {};
  std::vector<ScriptQuestion> questions = {};

  /// Names a place, and the question there: "gc.toml:7:3: pauses", "preset 'gc.pauses': /etc/usdt/presets/gc.toml:7:3",
  /// "built-in preset 'gc.pauses'".
  [[nodiscard]] std::string name_place(ScriptPlace place, std::string_view question = {}) const;
  /// Returns an error about a place, which it names.
  [[nodiscard]] Error wrong(ScriptPlace place, std::string_view why, std::string_view question = {}) const;
};

/// Reads a file of at most 1 MiB. The values of its keys are not checked. Errors: not_found, no_permission, io; syntax
/// and invalid_argument with the place (no TOML, values of other types than options have, no question, no probes).
[[nodiscard]] Result<Script> read_script(const std::string& file);
inline constexpr std::size_t kMostScriptBytes = 1U << 20;
/// Parses what a file has, which is `file` in errors. Errors: syntax and invalid_argument, as read_script().
[[nodiscard]] Result<Script> parse_script(const std::string& file, std::string_view text);

/// Checks that this machine has all needs of a script. Errors: not_supported, with all that is missing;
/// invalid_argument (a need that is none).
[[nodiscard]] Result<void> check_needs(const Script& script);

}  // namespace usdt::tools
