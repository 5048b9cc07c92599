// SPDX-License-Identifier: BSD-2-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <vector>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "usdt/broker.hpp"

namespace usdt_broker {
namespace {

constexpr const char* kDescription =
    "Attaches probes for users without privileges, to their own processes alone.\n"
    "usdt-trace asks it by itself where it may not attach, and does everything else itself. Who asks the kernel says, "
    "and "
    "what is attached counts no hit of a process that is, or becomes, anybody else's. Each connection is served by a "
    "process of its own, which has CAP_BPF and CAP_PERFMON and nothing else. A line for each trace that is granted or "
    "refused goes to standard error, which is the journal where systemd starts it.\n"
    "It needs Linux 6.10 with BTF, or a fixed one of 6.6 on. docs/broker.md has its threat model.";

constexpr const char* kExamples =
    "Examples:\n"
    "  systemctl enable --now usdt-broker.socket\n"
    "  usdt-broker --socket /run/usdt-broker/socket\n"
    "Who may connect the permissions of the socket say. Traces go on when it ends.\n"
    "Exit code: 0 when it was asked to end (SIGTERM); 1 run-time failure; 2 wrong usage.";

void declare(CLI::App& app, Options& options) {
  app.name(kTool);
  app.description(kDescription);
  app.footer(kExamples);
  app.set_help_flag("-h,--help", "Print this");
  app.set_version_flag("-V,--version", std::string(kTool) + " " USDT_VERSION);
  app.add_option("--socket", options.socket, "Listen there, if no service manager hands over a socket")
      ->type_name("PATH")
      ->default_val(std::string(usdt::Broker::kSocket));
  app.add_option("--user", options.user, "The user that the processes are that serve clients")
      ->type_name("NAME")
      ->default_val("nobody");
  app.add_option("--connections", options.connections, "Serve so many connections at once")
      ->type_name("N")
      ->default_val(64)
      ->check(CLI::Range(1, 4096).description(""));
  app.add_option("--connections-of-user", options.connections_of_user, "Of them so many of one user")
      ->type_name("N")
      ->default_val(16)
      ->check(CLI::Range(1, 4096).description(""));
  app.add_option(
         "--places-of-user", options.places_of_user,
         "Attach at so many places within an hour for one user, who may keep them: each process, and each end of "
         "calls, counts anew")
      ->type_name("N")
      ->default_val(262144)
      ->check(CLI::Range(1, 1 << 30).description(""));
  app.add_option("--memory", options.megabytes, "Megabytes that the kernel keeps for one connection: rings, counters")
      ->type_name("N")
      ->default_val(256)
      ->check(CLI::Range(1, 65536).description(""));
  app.add_option("--memory-of-user", options.megabytes_of_user,
                 "And of such memory so many megabytes within an hour for one user, who may keep it")
      ->type_name("N")
      ->default_val(1024)
      ->check(CLI::Range(1, 1 << 20).description(""));
  app.add_flag("-q,--quiet", options.quiet, "No line for each trace");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app;
  declare(app, options);
  if (const auto end = usdt::tools::parse_command_line(app, {argv + 1, argv + argc}, kUsageError)) {
    exit_code = *end;
    return std::nullopt;
  }
  return options;
}

}  // namespace usdt_broker
