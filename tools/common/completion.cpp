// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/documented.hpp"

namespace usdt::tools {
namespace {

bool is_file(const DocumentedOption& option) { return option.value == "FILE"; }
bool is_process(const DocumentedOption& option) { return option.value.starts_with("PID"); }
bool is_positional(const DocumentedOption& option) { return option.word.empty() && option.letter.empty(); }

/// The first clause of a description: what a shell has room for. "With --record: " alone says nothing yet.
std::string in_short(const DocumentedOption& option) {
  constexpr std::size_t kLeast = 25;
  constexpr std::size_t kMost = 70;
  std::string_view text = option.text;
  for (const std::string_view end : {". ", "; ", ": ", ", "}) {
    if (text.size() > kMost) text = text.substr(0, text.find(end, kLeast));
  }
  return std::string(text);
}

/// `text` with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != special.npos) out += '\\';
    out += c;
  }
  return out;
}

/// In the single quotes of bash and zsh.
std::string quoted_for_sh(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// "-f|--format"
std::string names(const DocumentedOption& option, std::string_view between) {
  std::string out;
  if (!option.letter.empty()) out = "-" + option.letter;
  if (!option.word.empty()) out += fmt::format("{}--{}", out.empty() ? "" : between, option.word);
  return out;
}

std::string function_name(const DocumentedProgram& program) {
  std::string name = "_" + program.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string bash(const DocumentedProgram& program) {
  std::string cases;
  std::vector<std::string> words;
  for (const DocumentedOption& option : program.options) {
    if (is_positional(option)) continue;
    if (!option.word.empty()) words.push_back("--" + option.word);
    if (option.value.empty()) continue;
    std::string answer = ";";
    if (!option.choices.empty())
      answer = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"));", fmt::join(option.choices, " "));
    else if (is_file(option))
      answer = "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"));";
    else if (is_process(option))
      answer = "COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\"));";
    cases += fmt::format("    {}) {} return ;;\n", names(option, "|"), answer == ";" ? ":;" : answer);
  }
  return fmt::format(R"(# bash completion of {0}, made from its options.
{1}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -- ]] || continue
    compopt -o filenames 2>/dev/null
    if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi
    return
  done
  # To bash --format=text is three words.
  [[ $cur == = ]] && cur=
  [[ $prev == = ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}
  case $prev in
{2}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W '{3}' -- "$cur"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}}
complete -F {1} {0}
)",
                     program.name, function_name(program), cases, fmt::join(words, " "));
}

std::string zsh(const DocumentedProgram& program) {
  std::string out =
      fmt::format("#compdef {}\n# Made from the options of {}.\n_arguments -s -S", program.name, program.name);
  for (const DocumentedOption& option : program.options) {
    std::string action;
    if (!option.choices.empty())
      action = fmt::format("({})", fmt::join(option.choices, " "));
    else if (is_file(option) || is_positional(option))
      action = "_files";
    else if (is_process(option))
      action = "_pids";
    const std::string value = option.value.empty() ? "" : fmt::format(":{}:{}", escaped(option.value, ":\\"), action);
    if (is_positional(option)) {
      out += " \\\n  " + quoted_for_sh("*" + value);
      continue;
    }
    const std::string described = fmt::format("[{}]{}", escaped(in_short(option), "[]:\\"), value);
    if (!option.letter.empty()) out += " \\\n  " + quoted_for_sh(fmt::format("*-{}{}", option.letter, described));
    if (!option.word.empty())
      out +=
          " \\\n  " + quoted_for_sh(fmt::format("*--{}{}{}", option.word, option.value.empty() ? "" : "=", described));
  }
  return out + "\n";
}

std::string fish(const DocumentedProgram& program) {
  std::string out = fmt::format("# fish completion of {}, made from its options.\n", program.name);
  for (const DocumentedOption& option : program.options) {
    if (is_positional(option)) continue;
    out += fmt::format("complete -c {}", program.name);
    if (!option.letter.empty()) out += " -s " + option.letter;
    if (!option.word.empty()) out += " -l " + option.word;
    if (!option.choices.empty())
      out += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
    else if (is_process(option))
      out += " -x -a '(__fish_complete_pids)'";
    else if (is_file(option))
      out += " -r -F";
    else if (!option.value.empty())
      out += " -x";
    out += fmt::format(" -d '{}'\n", escaped(in_short(option), "'\\"));
  }
  return out;
}

}  // namespace

std::optional<std::string> completion_script(const DocumentedProgram& program, std::string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return std::nullopt;
}

}  // namespace usdt::tools
