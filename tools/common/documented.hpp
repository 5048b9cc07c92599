// SPDX-License-Identifier: BSD-2-Clause
// Descriptions made of a command line's definition: a manual page, and completions for shells.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"

namespace usdt::tools {

/// One option, or the positional arguments.
struct DocumentedOption {
  std::string letter;      ///< of "-f"; empty: it has none
  std::string word;        ///< of "--format"; empty: positional
  std::string value;       ///< "FORMAT"; empty: a flag
  std::string standard;    ///< the value it has unless another one is given; empty: not said
  ProposedWords proposed;  ///< what the value can be, or begin with; of a flag what may stand behind it
  std::string text;
};
struct DocumentedProgram {
  std::string name;
  std::string description;  ///< paragraphs, each a line
  std::string footer;       ///< more of them; examples begin with a space
  std::vector<DocumentedOption> options;
};
[[nodiscard]] DocumentedProgram documented(CLI::App& app);

/// The manual page, as man(7) wants it. It refers to those of the other tools.
[[nodiscard]] std::string manual_page(const DocumentedProgram& program);

/// A script by which `shell` (bash, zsh, fish) completes the options of the program and their values; nothing for
/// others.
[[nodiscard]] std::optional<std::string> completion_script(const DocumentedProgram& program, std::string_view shell);

}  // namespace usdt::tools
