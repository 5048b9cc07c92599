// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/documented.hpp"

namespace usdt::tools {
namespace {

bool is_file(const DocumentedOption& option) {
  return option.value == "FILE" || option.value == "PATH" || option.value == "SOCKET";
}
bool is_directory(const DocumentedOption& option) { return option.value == "DIRECTORY"; }
bool is_process(const DocumentedOption& option) { return option.value.starts_with("PID"); }
bool is_positional(const DocumentedOption& option) { return option.word.empty() && option.letter.empty(); }

/// Whether something may stand behind an option: its value, or what a flag such as --help is asked about.
bool has_words_behind(const DocumentedOption& option) { return !option.value.empty() || !option.proposed.all.empty(); }
/// Whether a file follows the words that are proposed: "csv=".
bool precede_files(const ProposedWords& words) { return !words.all.empty() && words.all.front().ends_with('='); }

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

/// Commands of bash that set COMPREPLY to what may stand behind an option.
std::string bash_replies(const DocumentedOption& option) {
  const ProposedWords& words = option.proposed;
  if (!words.list.empty())  // the program has left out what does not begin so
    return fmt::format(
        R"(mapfile -t COMPREPLY < <("${{COMP_WORDS[0]/#\~/$HOME}}" --completion {} ${{cur:+"--{}=$cur"}} 2>/dev/null); )"
        R"(COMPREPLY=("${{COMPREPLY[@]%%$'\t'*}}");)",
        words.list, option.word);
  if (!words.all.empty())
    return fmt::format("{}COMPREPLY=($(compgen -W '{}' -- \"$cur\"));",
                       precede_files(words) ? "compopt -o nospace 2>/dev/null; " : "", fmt::join(words.all, " "));
  if (is_file(option)) return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"));";
  if (is_directory(option)) return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\"));";
  if (is_process(option)) return "COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\"));";
  return ":;";
}

std::string bash(const DocumentedProgram& program) {
  std::string cases;
  std::vector<std::string> words;
  for (const DocumentedOption& option : program.options) {
    if (is_positional(option)) continue;
    if (!option.word.empty()) words.push_back("--" + option.word);
    if (has_words_behind(option))
      cases += fmt::format("    {}) {} return ;;\n", names(option, "|"), bash_replies(option));
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

/// The name of the function of a shell that proposes what the program lists.
std::string lister_name(const DocumentedProgram& program, const DocumentedOption& option) {
  return fmt::format("{}_{}", function_name(program), option.proposed.list);
}

/// Returns the action of _arguments for the value of an option.
std::string zsh_action(const DocumentedProgram& program, const DocumentedOption& option) {
  const ProposedWords& words = option.proposed;
  if (!words.list.empty()) return lister_name(program, option);
  if (precede_files(words))
    return fmt::format(R"({{ if compset -P "*="; then _files; else compadd -S "" -- {}; fi }})",
                       fmt::join(words.all, " "));
  if (!words.all.empty()) return fmt::format("({})", fmt::join(words.all, " "));
  if (is_file(option) || is_positional(option)) return "_files";
  if (is_directory(option)) return "_directories";
  return is_process(option) ? "_pids" : "";
}

std::string zsh(const DocumentedProgram& program) {
  std::string out = fmt::format("#compdef {}\n# Made from the options of {}.\n", program.name, program.name);
  for (const DocumentedOption& option : program.options)
    if (!option.proposed.list.empty())
      out += fmt::format(R"zsh({0}() {{
  local -a lines
  lines=(${{(f)"$(_call_program {1} $words[1] --completion {1} ${{PREFIX:+--{2}=${{(q)PREFIX}}}} 2>/dev/null)"}})
  lines=("${{(@)lines/$'\t'/:}}")
  _describe {2} lines
}}
)zsh",
                         lister_name(program, option), option.proposed.list, option.word);
  out += "_arguments -s -S";
  for (const DocumentedOption& option : program.options) {
    std::string value;
    if (!option.value.empty())
      value = fmt::format(":{}:{}", escaped(option.value, ":\\"), zsh_action(program, option));
    else if (has_words_behind(option))
      value = fmt::format("::{}:{}", option.word, zsh_action(program, option));
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

/// Returns the words of `complete` in fish for the value of an option.
std::string fish_value(const DocumentedProgram& program, const DocumentedOption& option) {
  const ProposedWords& words = option.proposed;
  if (!words.list.empty()) return fmt::format(" -x -a '({})'", lister_name(program, option));
  if (!words.all.empty())
    return fmt::format(" {} -a '{}'", precede_files(words) ? "-r -F" : "-x", fmt::join(words.all, " "));
  if (is_process(option)) return " -x -a '(__fish_complete_pids)'";
  if (is_file(option)) return " -r -F";
  if (is_directory(option)) return " -x -a '(__fish_complete_directories)'";
  return option.value.empty() ? "" : " -x";
}

std::string fish(const DocumentedProgram& program) {
  std::string out = fmt::format("# fish completion of {}, made from its options.\n", program.name);
  for (const DocumentedOption& option : program.options)
    if (!option.proposed.list.empty())
      out += fmt::format(R"(function {0}
    set -l tool (commandline -opc)[1]
    command -q -- $tool; or set tool {1}
    set -l word (string replace -r '^--{3}=' '' -- (commandline -ct))
    if test -n "$word"
        set word --{3}=$word
    else
        set -e word
    end
    $tool --completion {2} $word 2>/dev/null
end
)",
                         lister_name(program, option), program.name, option.proposed.list, option.word);
  for (const DocumentedOption& option : program.options) {
    if (is_positional(option)) continue;
    out += fmt::format("complete -c {}", program.name);
    if (!option.letter.empty()) out += " -s " + option.letter;
    if (!option.word.empty()) out += " -l " + option.word;
    out += fmt::format("{} -d '{}'\n", fish_value(program, option), escaped(in_short(option), "'\\"));
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
