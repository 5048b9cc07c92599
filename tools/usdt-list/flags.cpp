// SPDX-License-Identifier: BSD-2-Clause
#include "flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "common/command_line.hpp"
#include "common/debug_servers.hpp"
#include "common/question_flags.hpp"
#include "common/report.hpp"
#include "common/version.hpp"
#include "exit_code.hpp"

namespace usdt_list {
namespace {

constexpr const char* kDescription =
    "Lists the USDT probes and functions of programs, libraries and running processes, and the functions and raw "
    "tracepoints of the kernel, with the types of their arguments.\n"
    "WHAT is a file, a directory, a glob, a soname or a program on PATH, whose probes are listed; or it names points, "
    "with globs anywhere:\n"
    "  [[usdt:]PATH:]PROVIDER:NAME        USDT probes\n"
    "  uprobe:PATH:FUNCTION               functions; uretprobe: their returns;\n"
    "                                     ucall: both ends\n"
    "  uprobe:PATH:@FILE:LINE             a line of their source\n"
    "  kfunc:FUNCTION, kretfunc, kcall    the same in the kernel; in one way alone:\n"
    "                                     kprobe, kretprobe, ksession, fentry,\n"
    "                                     fexit, fsession\n"
    "  kfunc:MODULE:FUNCTION              in one of its modules\n"
    "  raw_tp:NAME, tp_btf:NAME           raw tracepoints of the kernel\n"
    "Every name listed can be pasted into usdt-trace.";

constexpr const char* kFooter =
    "Examples:\n"
    "  usdt-list python3.11                       its probes, a line for each\n"
    "  usdt-list -v libstdc++.so.6 'libstdcxx:*'  with semaphores and signatures\n"
    "  usdt-list -p 1234                          of all files that process 1234 runs\n"
    "  usdt-list -f json /usr/lib | jq -r .name   an object of JSON for each site\n"
    "  usdt-list 'kfunc:tcp_*' 'raw_tp:sched_*'   functions, tracepoints\n"
    "  usdt-list -m 'struct request' ./server     where its members are\n"
    "  usdt-list --lint ./server                  what is wrong with its probes\n"
    "  usdt-list --presets -p 1234                questions about what it runs\n"
    "  usdt-list --doctor                         what this kernel offers\n"
    "Exit code: 0 found, 1 nothing matched, 2 wrong usage or an unreadable target; --doctor: 0 if it "
    "could be said, else 2; --lint: 3 if there are faults.";

struct RawFlags {
  std::vector<std::string> words;
  std::vector<std::string> libraries;
  std::string format = "text";
  usdt::tools::QuestionFlags functions;
};

void declare(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.footer(kFooter);
  app.set_version_flag("-V,--version", usdt::tools::version_text("usdt-list"));
  app.add_option("what", raw.words, "Where to look, or which probes")->type_name("WHAT");
  app.add_option("-p,--pid", flags.pids, "Files mapped by these processes")
      ->type_name("PID[,PID]")
      ->delimiter(',')
      ->check(usdt::tools::process_id())
      ->allow_extra_args(false);
  app.add_option("-l,--lib", raw.libraries, "A library by name: libpq.so.5, libpq or pq")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("-v,--verbose", flags.verbosity,
               "-v: semaphores, signatures and costs, of the kernel where arguments are, and what "
               "cannot be attached to; -vv: every site and argument")
      ->default_str("");  // which CLI11 2.4 shows
  app.add_option("-f,--format", raw.format, "text, or json: one object a line for each site")
      ->check(usdt::tools::one_of({"text", "json"}))
      ->type_name("FORMAT");
  app.add_option(
         "-m,--members", flags.members,
         "The layout of a struct, union, class or enum by the debug information of WHAT, without it of the kernel")
      ->type_name("TYPE")
      ->allow_extra_args(false);
  for (const usdt::QuestionOption& option : usdt::question_options())
    if (option.group == usdt::kFunctionOptions) raw.functions.declare(app, option);
  app.add_flag("--lint", flags.lint,
               "Look for faults of the probes instead of listing them: notes without code, arguments nobody can read, "
               "semaphores that cannot be enabled");
  app.add_flag("--presets", flags.presets,
               "List the questions about known programs that usdt-trace --preset asks; with -p those about what these "
               "processes run, and whether they would be answered");
  app.add_flag("--doctor", flags.doctor, "Tell what this kernel offers and test whether probes on nops harm programs");
}

/// The command line as CLI11 is to see it: without a word "[1]", which it takes for a list of one.
std::vector<std::string> words_for_parser(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::string& word : words) {
    if (word.starts_with('[') && word.ends_with(']')) word.insert(0, "./");
  }
  return words;
}

/// Complains about a command line that does not mean anything.
bool usage_error(std::string_view text) {
  usdt::tools::print_notice(kTool, text);
  return false;
}

/// Whether a word is a pattern: it has a ':', and no file has this very name.
bool is_pattern(const std::string& word) {
  std::error_code ec;
  return word.find(':') != word.npos && !std::filesystem::exists(word, ec);
}

/// "usdt:/usr/bin/python3.11", without provider and name, means the file.
std::string_view target_behind_prefix(std::string_view word) {
  static constexpr std::string_view kPrefix = "usdt:";
  if (!word.starts_with(kPrefix)) return {};
  word.remove_prefix(kPrefix.size());
  return word.find(':') == word.npos && word.find('/') != word.npos ? word : std::string_view();
}

/// Makes patterns of functions mean what the options say.
bool interpret_functions(Flags& flags, const RawFlags& raw) {
  usdt::QuestionText text(usdt::tools::kOptionPrefix);
  usdt::Result<void> chosen;
  for (const auto& [name, value] : raw.functions.written())
    if (chosen) chosen = text.set(name, value);
  flags.debuginfod = text.has("debuginfod");
  if (chosen && flags.debuginfod) chosen = usdt::tools::name_debug_servers();
  if (chosen) chosen = usdt::choose_functions(text, flags.patterns);
  if (chosen) return true;
  usdt::tools::print_error(kTool, chosen.error(), text.has("args") ? text.values("args").front() : "");
  return false;
}

bool interpret(Flags& flags, const RawFlags& raw) {
  flags.format = raw.format == "json" ? Format::json : Format::text;
  flags.targets = raw.libraries;
  for (const std::string& word : raw.words) {
    if (!is_pattern(word)) {
      flags.targets.push_back(word);
    } else if (const auto target = target_behind_prefix(word); !target.empty()) {
      flags.targets.emplace_back(target);
    } else if (auto pattern = usdt::parse_pattern(word)) {
      const bool of_kernel = std::holds_alternative<usdt::KernelPattern>(*pattern);
      (of_kernel ? flags.kernel_patterns : flags.patterns).push_back(std::move(*pattern));
    } else {
      usdt::tools::print_error(kTool, pattern.error(), word);
      return false;
    }
  }
  if (!interpret_functions(flags, raw)) return false;
  const bool lists = lists_files(flags) || !flags.kernel_patterns.empty();
  if (flags.lint && (!flags.kernel_patterns.empty() || !flags.members.empty() || flags.doctor))
    return usage_error(
        "--lint is about probes of files, and takes nothing of the kernel, no --members and no --doctor");
  if (flags.presets && (!flags.targets.empty() || !flags.patterns.empty() || !flags.kernel_patterns.empty() ||
                        !flags.members.empty() || flags.lint || flags.doctor))
    return usage_error("--presets takes processes (-p) and --format, and nothing else");
  if (flags.doctor && lists) return usage_error("--doctor is about the kernel and takes no file, probe or process");
  if (!flags.members.empty() && (flags.doctor || !flags.patterns.empty() || !flags.kernel_patterns.empty()))
    return usage_error("--members takes files, programs, libraries or processes (-p) to look into, and no probe");
  if (flags.doctor || flags.presets || lists || !flags.members.empty()) return true;
  return usage_error("nothing to list: name a file, a library, a probe or a process (-p); see --help");
}

}  // namespace

bool lists_files(const Flags& flags) {
  return !flags.targets.empty() || !flags.patterns.empty() || !flags.pids.empty();
}

std::optional<Flags> parse_flags(int argc, char** argv, int& exit_code) {
  Flags flags;
  RawFlags raw;
  CLI::App app(kDescription, std::string(kTool));
  declare(app, flags, raw);
  if (const auto end = usdt::tools::parse_command_line(app, words_for_parser(argc, argv), kTrouble)) {
    exit_code = *end;
    return std::nullopt;
  }
  if (interpret(flags, raw)) return flags;
  exit_code = kTrouble;
  return std::nullopt;
}

}  // namespace usdt_list
