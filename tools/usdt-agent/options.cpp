// SPDX-License-Identifier: BSD-2-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/version.hpp"
#include "exports.hpp"

namespace usdt_agent {
namespace {

constexpr const char* kDescription =
    "Asks questions about running programs for as long as it runs, and hands the answers to monitoring systems.\n"
    "Questions are those of usdt-trace's scripts (docs/scripts.md): each FILE.toml has some, a DIRECTORY all files "
    "*.toml in it. `usdt-agent check` reads them, says all that is wrong with them and where their answers would go, "
    "and traces nothing; it needs no privilege. The word may be anywhere (a file of this name is ./check).\n"
    "SIGHUP reads the files again: questions that are as they were go on without a gap. SIGTERM ends it.";

constexpr const char* kExamples =
    "Examples:\n"
    "  usdt-agent check /etc/usdt-agent\n"
    "  usdt-agent --listen 9435 /etc/usdt-agent\n"
    "  usdt-agent --export otlp=http://127.0.0.1:4318 --spool spool postgres.toml\n"
    "Pages: http://ADDRESS:PORT/metrics, and /healthz, which has status 503 if a question is not answered.\n"
    "Exit code: 0 when it was asked to end; 1 run-time failure; 2 wrong usage, or files that are wrong.";

/// "otlp=", of the formats that an agent takes.
std::vector<std::string> beginnings_of_exports() {
  std::vector<std::string> all;
  for (const usdt::SinkFormat& format : usdt::sink_formats())
    if (is_for_agents(format)) all.push_back(fmt::format("{}=", format.name));
  return all;
}

void declare(CLI::App& app, Options& options, std::vector<std::string>& exports, std::uint64_t& megabytes) {
  app.name(kTool);
  app.description(kDescription);
  app.footer(kExamples);
  app.set_help_flag("-h,--help", "Print this");
  app.set_version_flag("-V,--version", usdt::tools::version_text(kTool));
  app.add_option("what", options.places, "Files with questions, and directories of them")->type_name("FILE");
  app.add_option("--listen", options.listen,
                 "Serve the numbers of all questions, and the agent's own, as metrics for Prometheus; without an "
                 "address on this host alone")
      ->type_name("[ADDRESS:]PORT");
  app.add_option("--export", exports,
                 "Send the answers to all questions there, as far as they can be written so: otlp=http://HOST:PORT and "
                 "its like, prometheus=FILE. Questions may have places of their own")
      ->allow_extra_args(false)
      ->check(usdt::tools::such_as(beginnings_of_exports()))
      ->type_name("FORMAT=PLACE");
  app.add_option("--spool", options.spool,
                 "Keep what a server does not take now in this directory, and send it later; without it, what does not "
                 "fit in memory is lost, and counted")
      ->type_name("DIRECTORY");
  app.add_option("--spool-size", megabytes, "Megabytes on disk for each server; what comes then is lost, and counted")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("-v,--verbose", options.verbose, "Tell how sites are attached, too");
}

/// Makes sense of what was parsed. Returns what is wrong with it; nothing: all is well.
std::optional<std::string> interpret(Options& options, const std::vector<std::string>& exports,
                                     std::uint64_t megabytes) {
  constexpr std::uint64_t most = 1U << 20;
  options.only_check = std::erase(options.places, "check") > 0;
  if (options.places.empty()) return "no files with questions";
  if (!options.listen.empty())
    if (auto fits = usdt::check_listen_place(options.listen); !fits) return "--listen: " + fits.error().message;
  if (megabytes == 0 || megabytes > most) return fmt::format("--spool-size: {} is not 1 to {}", megabytes, most);
  options.spool_bytes = megabytes << 20;
  for (const std::string& each : exports) {
    const std::size_t equals = each.find('=');
    if (equals == 0 || equals == each.npos || equals + 1 == each.size())
      return fmt::format("--export: \"{}\" is not FORMAT=PLACE", usdt::shown_place(each));
    options.exports.push_back({each.substr(0, equals), each.substr(equals + 1)});
    if (auto fits = check_export(options.exports.back()); !fits) return "--export: " + fits.error().message;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  std::vector<std::string> exports, words(argv + 1, argv + argc);
  std::uint64_t megabytes = 256;
  CLI::App app;
  declare(app, options, exports, megabytes);
  if (const auto end = usdt::tools::parse_command_line(app, words, kUsageError)) {
    exit_code = *end;
    return std::nullopt;
  }
  if (const auto wrong = interpret(options, exports, megabytes)) {
    usdt::tools::print_notice(kTool, *wrong + "; see --help");
    exit_code = kUsageError;
    return std::nullopt;
  }
  return options;
}

}  // namespace usdt_agent
