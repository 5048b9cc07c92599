// SPDX-License-Identifier: BSD-2-Clause
#include "common/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "common/documented.hpp"
#include "common/help.hpp"
#include "common/nearest.hpp"
#include "common/report.hpp"
#include "io/terminal.hpp"

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

/// What users of bpftrace, bcc, perf and strace write to usdt-trace, and what to write instead.
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
  std::vector<std::string> groups;
  for (const std::string& group : app.get_groups()) groups.push_back(word_of(group));
  text += fmt::format("\n{}\n", brief.examples);
  return text +
         wrapped(
             fmt::format("--help all has all options, --help GROUP those of one group: {}; --manual the manual page.",
                         fmt::join(groups, ", ")),
             width);
}

constexpr std::string_view kOneOf = "one of ";  ///< what validators of words are called, with the words behind it

template <class Number>
bool read_all(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// What is wrong with an option whose value has no text, which would otherwise be as if it was not there.
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
  app.add_option("--completion", shell, "Print a script that completes these options: for bash, zsh or fish")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  app.add_flag("--manual", manual, "Print the manual page, for man -l -");
  if (const auto help = std::find_if(words.begin(), words.end(), is_help); help != words.end()) {
    const std::string part = help + 1 == words.end() ? "" : help[1];
    if (part.empty() && brief != nullptr) return print_lines(brief_text(*brief, app, width), usage_error);
    if (const std::string text = help_about(app, part); !text.empty()) return print_lines(text, usage_error);
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
  if (!shell.empty()) return print_lines(*completion_script(documented(app), shell), usage_error);
  return std::nullopt;
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

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto judge = [=](const std::string& text) {
    std::uint64_t number = 0;
    if (read_all(text, number) && number >= least && number <= most) return std::string();
    if (most == std::numeric_limits<std::uint64_t>::max())
      return fmt::format("'{}' is not a whole number from {} on that fits 64 bits", text, least);
    return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
  };
  return {judge, ""};
}

std::optional<double> seconds_of(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  constexpr double kCentury = 100.0 * 365 * 24 * 3600;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(digits);
  const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  double number = 0;
  if (!read_all(std::string(text.substr(0, digits)), number) || (known == kUnits.end() && !unit.empty()))
    return std::nullopt;
  number *= unit.empty() ? 1 : known->second;
  return number <= kCentury ? std::optional(number) : std::nullopt;
}

std::string_view without_blanks(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

CLI::Validator seconds() {
  const std::function<std::string(std::string&)> judge = [](std::string& text) {
    const auto number = seconds_of(text);
    if (!number)
      return fmt::format("'{}' is not a time such as 10 (seconds), 0.5, 500ms, 2s, 5m or 24h, up to a century", text);
    text = fmt::format("{:.17g}", *number);
    return std::string();
  };
  return {judge, ""};
}

CLI::Validator process_id() {
  const auto judge = [](const std::string& text) {
    std::int32_t number = 0;
    if (read_all(text, number) && number > 0) return std::string();
    const bool name = !text.empty() && text.find_first_not_of("0123456789-+") != text.npos;
    if (text.empty() || text.find(':') != text.npos || text.starts_with("--"))
      return fmt::format("there is no process id behind it, but '{}': did pgrep find none?", text);
    return fmt::format("'{}' is not a process id{}", text,
                       name ? fmt::format("; those of a program are -p $(pgrep -d, {})", text) : "");
  };
  return {judge, ""};
}

CLI::Validator one_of(std::vector<std::string_view> words) {
  const std::string description = fmt::format("{}{}", kOneOf, fmt::join(words, " "));
  const auto judge = [all = std::move(words)](const std::string& text) {
    return std::ranges::find(all, text) != all.end() ? std::string()
                                                     : fmt::format("'{}' is none of: {}", text, fmt::join(all, ", "));
  };
  return {judge, "", description};
}

std::vector<std::string> words_of(const CLI::Validator& validator) {
  const std::string& name = validator.get_name();
  return name.starts_with(kOneOf) ? CLI::detail::split(name.substr(kOneOf.size()), ' ') : std::vector<std::string>();
}

void declare(CLI::App& app, FunctionFlags& flags) {
  app.add_option("--args", flags.args,
                 "The types of arguments where no debug information has them: \"i32, str, f64\"; i8 to i64, u8 to u64, "
                 "f32, f64, bool, ptr, str")
      ->type_name("TYPES")
      ->allow_extra_args(false);
  app.add_flag("--debuginfod", flags.debuginfod,
               "Ask the servers of $DEBUGINFOD_URLS for debug files that are not there, by build id");
  app.add_flag("!--no-inline", flags.inlined, "Without the copies of functions that the compiler inlined into others");
  CLI::Option* always = app.add_flag(
      "--ret-probes", flags.ret_probes,
      "See returns of functions by a probe on each RET instruction alone, as of Go programs always, also where they "
      "return by a jump to another function, which is not seen then. Without it the kernel's return probe is taken "
      "there, unless an exception may pass, which ends the program; so does a change of stacks");
  app.add_flag("--no-ret-probes", flags.no_ret_probes,
               "See returns of functions by the kernel's return probes, also where exceptions may leave the function")
      ->excludes(always);
}

namespace {

/// Where a login shell has the servers' names from, elfutils' profile.d/debuginfod.sh: sudo takes them away.
constexpr const char* kServerLists = "/etc/debuginfod";

std::string configured_servers() {
  std::string names;
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator(kServerLists, error)) {
    if (each.path().extension() != ".urls") continue;
    std::ifstream list(each.path());
    for (std::string name; list >> name;) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

Result<void> name_servers() {
  // Seconds and bytes of one file: a server that never ends would stop a trace.
  ::setenv("DEBUGINFOD_MAXTIME", "300", 0);
  ::setenv("DEBUGINFOD_MAXSIZE", "8589934592", 0);
  const char* const named = std::getenv("DEBUGINFOD_URLS");
  if (named != nullptr && *named != '\0') return {};
  const std::string servers = configured_servers();
  if (servers.empty())
    return fail(ErrorKind::invalid_argument,
                "--debuginfod: no server is known: set DEBUGINFOD_URLS, on Debian to https://debuginfod.debian.net, "
                "and see that sudo keeps it");
  ::setenv("DEBUGINFOD_URLS", servers.c_str(), 1);  // before there are other threads
  return {};
}

}  // namespace

Result<void> apply(const FunctionFlags& flags, std::vector<PointPattern>& patterns) {
  if (flags.debuginfod)
    if (auto named = name_servers(); !named) return named;
  auto types = flags.args.empty() ? Result<std::vector<Type>>() : parse_types(flags.args);
  if (!types) return fail(types.error());
  for (PointPattern& pattern : patterns) {
    auto* function = std::get_if<FunctionPattern>(&pattern);
    if (function == nullptr) continue;
    function->inlined = flags.inlined;
    function->debuginfod = flags.debuginfod;
    if (flags.ret_probes || flags.no_ret_probes) function->ret_probes = flags.ret_probes;
    function->args = *types;
  }
  return {};
}

}  // namespace usdt::tools
