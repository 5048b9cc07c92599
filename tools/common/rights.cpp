// SPDX-License-Identifier: BSD-2-Clause
#include "common/rights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "usdt/broker.hpp"
#include "usdt/session.hpp"

namespace usdt::tools {
namespace {

constexpr std::string_view kAdmin = "CAP_SYS_ADMIN";

/// usdt-trace beside the program that runs, or that itself.
std::string tracing_program() {
  std::error_code none;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", none);
  const auto tracer = self.parent_path() / "usdt-trace";
  return std::filesystem::exists(tracer, none) ? tracer.string() : self.string();
}

std::string in_small(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

}  // namespace

std::string command_for_rights(const std::vector<Right>& rights, const std::string& program) {
  if (::geteuid() == 0 || rights.empty() || program.empty()) return {};
  std::set<std::string> missing;
  for (const Right& right : rights)
    for (const std::string_view each : right.lacks)
      if (each != kAdmin || &right == &rights.front()) missing.insert(in_small(each));
  if (missing.empty()) return {};
  return fmt::format("sudo setcap {}+ep {}", fmt::join(missing, ","), program);
}

bool print_rights(const std::vector<Right>& rights, const std::optional<BpfToken>& token, io::Stream& out) {
  constexpr std::size_t indent = 7;
  const std::size_t room = out.room(indent, 20);
  const auto put = [&](std::string_view word, io::Style style, std::string_view text) {
    out.print("  {:<4} {}\n", out.styled(word, style), io::next_line(text, room));
    while (!text.empty()) out.print("{:{}}{}\n", "", indent, io::next_line(text, room));
  };
  for (const Right& right : rights) {
    const bool has = right.lacks.empty();
    put(has ? "yes" : "no", has ? io::Style::name : io::Style::bad,
        fmt::format("{}: {}", right.purpose, fmt::join(has ? right.needs : right.lacks, ", ")));
  }
  if (token) {
    const bool is_used = token->why_not.empty();
    put(is_used ? "yes" : "no", is_used ? io::Style::name : io::Style::bad,
        fmt::format("a BPF token of {} ({}){}{}", token->directory, fmt::join(token->delegates, ", "),
                    is_used ? "" : ": ", token->why_not));
  }
  bool may_trace = rights.empty() || rights.front().lacks.empty();
  if (!may_trace) {
    const auto broker = usdt::Broker::connect(usual_broker_socket());
    may_trace = broker.has_value();
    put(broker ? "yes" : "no", broker ? io::Style::name : io::Style::bad,
        broker ? fmt::format("trace own processes alone: by usdt-broker {}, at {}", (*broker)->version(),
                             usual_broker_socket())
               : fmt::format("trace own processes alone, by usdt-broker(8): {}", broker.error().message));
  }
  const std::string command = command_for_rights(rights, tracing_program());
  if (command.empty()) return may_trace;
  out.print("\n  {}\n", command);
  put("", io::Style::plain,
      "Whoever may run it then sees the processes of all users: give it to a group (chgrp), and to "
      "nobody else (chmod 0750), before.");
  return may_trace;
}

}  // namespace usdt::tools
