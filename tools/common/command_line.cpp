// SPDX-License-Identifier: BSD-2-Clause
#include "common/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/documented.hpp"
#include "common/help.hpp"
#include "common/nearest.hpp"
#include "common/presets.hpp"
#include "common/report.hpp"
#include "io/terminal.hpp"
#include "usdt/question_text.hpp"

namespace usdt::tools {
namespace {

/// The option a message of CLI11 is about: "--print: 1 required LIST missing", "Expected exactly 1 arguments to
/// --print, got 2", "Could not convert: --verbose = x".
std::string option_of(std::string_view message) {
  for (const std::string_view before : {"arguments to ", "Could not convert: "}) {
    const std::size_t at = message.find(before);
    if (at == message.npos) continue;
    message.remove_prefix(at + before.size());
    return std::string(message.substr(0, message.find_first_of(", ")));
  }
  return std::string(message.substr(0, message.find_first_of(": ")));
}

/// Returns what to write to usdt-trace for a word of bpftrace, bcc, perf or strace; empty: it is none of theirs.
std::string_view meant_by_users_of_others(std::string_view written) {
  using Row = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Row, 16> kOthers = {{
      {"-l", ": usdt-list lists probes"},
      {"-lv", ": usdt-list -v lists probes with their arguments"},
      {"--list", ": usdt-list lists probes"},
      {"-e", ": probes are named as they are, and --print, --where and --count ask about them"},
      {"-i", ", but --interval"},
      {"-K", ", but --kstack"},
      {"-U", ", but --ustack"},
      {"-n", ": --where 'comm == \"NAME\"' is about programs of that name"},
      {"--comm", ": --where 'comm == \"NAME\"' is about programs of that name"},
      {"-t", ": each event has its time, and --format-string says how"},
      {"-T", ": each event has its time, and --format-string says how"},
      {"--cmd", ": a program to start goes behind the probes: -- PROGRAM ARGUMENTS"},
      {"--filter", ", but --where"},
      {"--group-by", ", but --by"},
      {"--json", ", but --format json"},
      {"--limit", ", but --max-events"},
  }};
  const auto known = std::ranges::find(kOthers, written.substr(0, written.find('=')), &Row::first);
  return known == kOthers.end() ? std::string_view() : known->second;
}

/// ", but --where" for an option that there is none of: those that begin with what was written, or that what
/// was written begins with, or else one that is spelt nearly so.
std::string meant_by(const CLI::App& app, std::string_view written) {
  if (app.get_name() == "usdt-trace")
    if (const std::string_view answer = meant_by_users_of_others(written); !answer.empty()) return std::string(answer);
  if (!written.starts_with("--")) return {};
  const std::string_view word = written.substr(2, written.find('=') - 2);
  std::vector<std::string> near;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      if (word.size() > 2 && (name.starts_with(word) || word.starts_with(name))) near.push_back("--" + name);
  }
  if (!near.empty()) return fmt::format(", but {}", fmt::join(near, ", "));
  std::vector<std::string> all;
  for (const CLI::Option* option : app.get_options())
    all.insert(all.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::string nearest_one = nearest(word, all);
  return nearest_one.empty() ? std::string() : fmt::format(", but --{}", nearest_one);
}

std::string in_our_words(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr ||
      dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const CLI::Option* option = app.get_option_no_throw(option_of(message));
    if (option != nullptr && option->get_expected_max() > 0)
      return fmt::format("{} takes one {}", option_of(message), option->get_type_name());
    return fmt::format("{} takes no value", option_of(message));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> rest = app.remaining();
    const auto option = std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with('-'); });
    if (option != rest.end()) return fmt::format("there is no option {}{}", *option, meant_by(app, *option));
    return fmt::format("'{}' is one word too many", fmt::join(rest, " "));
  }
  return message;
}

/// Prints to standard output; returns the exit code.
int print_lines(std::string_view text, int failure) {
  io::Stream out(STDOUT_FILENO);
  out.lines(text);
  return out.flush() == io::Stream::Flushed::all ? 0 : failure;
}

int print_asked(const CLI::App& app, const CLI::ParseError& asked, int failure) {
  const bool version = dynamic_cast<const CLI::CallForVersion*>(&asked) != nullptr;
  return print_lines(version ? std::string(asked.what()) : app.help(), failure);
}

bool is_help(std::string_view word) { return word == "-h" || word == "--help"; }

/// "tables" of "Tables and histograms".
std::string word_of(std::string_view group) {
  std::string word(group.substr(0, group.find(' ')));
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word;
}

std::vector<std::string> words_of_groups(const CLI::App& app) {
  std::vector<std::string> words;
  for (const std::string& group : app.get_groups()) words.push_back(word_of(group));
  return words;
}

/// Returns the words that may stand behind --help.
std::vector<std::string> words_of_help(const CLI::App& app) {
  std::vector<std::string> words = words_of_groups(app);
  words.insert(words.begin(), "all");
  return words;
}

/// Prints a line for each word, with a tab before its title; returns the exit code.
int print_preset_words(const std::string& beginning, int failure) {
  io::Stream out(STDOUT_FILENO);
  for (const PresetWord& each : complete_preset(beginning)) out.print("{}\t{}\n", each.word, each.title);
  return out.flush() == io::Stream::Flushed::all ? 0 : failure;
}

/// All that there is to say (`part`: "all"), or of one group of options; empty: there is no such group.
std::string help_about(const CLI::App& app, const std::string& part) {
  if (part == "all") return app.help();
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  if (!formatter) return {};
  for (const std::string& group : app.get_groups()) {
    if (word_of(group) != part) continue;
    const auto options = app.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
    return formatter->make_group(group, false, options).substr(1);  // without the line between groups
  }
  return {};
}

std::string brief_text(const BriefHelp& brief, const CLI::App& app, std::size_t width) {
  std::string text = fmt::format("Usage: {}\n{}\n", brief.usage, wrapped(brief.description, width));
  for (const auto& [name, what] : brief.options) text += option_lines(name, what, width);
  text += fmt::format("\n{}\n", brief.examples);
  return text +
         wrapped(
             fmt::format("--help all has all options, --help GROUP those of one group: {}; --manual the manual page.",
                         fmt::join(words_of_groups(app), ", ")),
             width);
}

/// Beginnings of the names of validators, behind which are their words.
constexpr std::string_view kOneOf = "one of ", kSuchAs = "such as ", kAsListedBy = "as listed by ";

/// Says what is wrong with a word that is no process id, and what was meant.
std::string complaint_about_process(const std::string& text) {
  const bool name = !text.empty() && text.find_first_not_of("0123456789-+") != text.npos;
  if (text.empty() || text.find(':') != text.npos || text.starts_with("--"))
    return fmt::format("there is no process id behind it, but '{}': did pgrep find none?", text);
  return fmt::format("'{}' is not a process id{}", text,
                     name ? fmt::format("; those of a program are -p $(pgrep -d, {})", text) : "");
}

/// Complains about an option with an empty value, which would otherwise be as if it was not there.
std::optional<std::string> complaint_of_nothing(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_expected_min() == 0) continue;
    if (std::ranges::any_of(option->results(), &std::string::empty))
      return fmt::format("--{}: its value is empty (a variable of the shell that is not set?)",
                         option->get_lnames()[0]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> words, int usage_error,
                                      const BriefHelp* brief) {
  const std::size_t width = io::Terminal::of(STDOUT_FILENO).width;
  app.formatter(help_formatter(width));
  std::string shell;
  bool manual = false;
  const CLI::Option* const preset = app.get_option_no_throw("--preset");
  std::vector<std::string_view> shells = {"bash", "zsh", "fish"};
  std::string of_completion = "Print a script that completes these options: for bash, zsh or fish";
  if (preset != nullptr) {
    shells.push_back(kPresetWords);
    of_completion += "; presets: what these scripts ask for, the words that begin as that of --preset";
  }
  app.add_option("--completion", shell, of_completion)->check(one_of(shells))->type_name("SHELL");
  app.add_flag("--manual", manual, "Print the manual page, for man -l -");
  if (const auto help = std::find_if(words.begin(), words.end(), is_help); help != words.end()) {
    const std::string part = help + 1 == words.end() ? "" : help[1];
    if (part.empty() && brief != nullptr) return print_lines(brief_text(*brief, app, width), usage_error);
    if (const std::string text = help_about(app, part); !text.empty()) return print_lines(text, usage_error);
    if (brief != nullptr && !part.starts_with('-')) {
      print_notice(app.get_name(), fmt::format("--help: there is no group of options '{}': there are {}", part,
                                               fmt::join(words_of_help(app), ", ")));
      return usage_error;
    }
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return print_asked(app, error, usage_error);
    print_notice(app.get_name(), fmt::format("{}; see --help", in_our_words(app, error)));
    return usage_error;
  }
  if (const auto complaint = complaint_of_nothing(app)) {
    print_notice(app.get_name(), *complaint);
    return usage_error;
  }
  if (manual) return print_lines(manual_page(documented(app)), usage_error);
  if (shell == kPresetWords)
    return print_preset_words(preset->count() > 0 ? preset->results().front() : "", usage_error);
  if (shell.empty()) return std::nullopt;
  DocumentedProgram program = documented(app);
  if (brief != nullptr)
    for (DocumentedOption& option : program.options)
      if (option.word == "help") option.proposed = {.all = words_of_help(app), .are_all_there_are = true, .list = {}};
  return print_lines(*completion_script(program, shell), usage_error);
}

std::optional<std::string> complaint_of(CLI::App& app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return in_our_words(app, error);
  }
  return complaint_of_nothing(app);
}

std::string_view without_blanks(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

CLI::Validator value_of(QuestionOption option) {
  const std::string words =
      option.kind == OptionKind::choice ? fmt::format("{}{}", kOneOf, fmt::join(option.words, " ")) : std::string();
  const auto judge = [option = std::move(option)](const std::string& text) {
    const auto sense = check_option_value(option, text);
    if (sense) return std::string();
    return option.kind == OptionKind::processes ? complaint_about_process(text) : sense.error().message;
  };
  return {judge, "", words};
}

CLI::Validator process_id() { return value_of({.name = "pid", .kind = OptionKind::processes}); }

CLI::Validator one_of(std::vector<std::string_view> words) {
  return value_of({.name = "", .kind = OptionKind::choice, .words = std::move(words)});
}

CLI::Validator such_as(std::vector<std::string> words) {
  return {[](const std::string&) { return std::string(); }, "", fmt::format("{}{}", kSuchAs, fmt::join(words, " "))};
}

CLI::Validator as_listed_by(std::string_view list) {
  return {[](const std::string&) { return std::string(); }, "", fmt::format("{}{}", kAsListedBy, list)};
}

ProposedWords words_of(const CLI::Validator& validator) {
  const std::string& name = validator.get_name();
  if (name.starts_with(kOneOf))
    return {.all = CLI::detail::split(name.substr(kOneOf.size()), ' '), .are_all_there_are = true, .list = {}};
  if (name.starts_with(kSuchAs))
    return {.all = CLI::detail::split(name.substr(kSuchAs.size()), ' '), .are_all_there_are = false, .list = {}};
  if (name.starts_with(kAsListedBy))
    return {.all = {}, .are_all_there_are = false, .list = name.substr(kAsListedBy.size())};
  return {};
}

}  // namespace usdt::tools
