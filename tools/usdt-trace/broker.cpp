// SPDX-License-Identifier: BSD-2-Clause
#include "broker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>

#include "notice.hpp"
#include "usdt/privilege.hpp"
#include "usdt/session.hpp"

namespace usdt_trace {
namespace {

bool names_kernel_points(const usdt::AskedPoints& points) {
  const auto is_kernel = [](const auto& point) { return std::holds_alternative<usdt::KernelPattern>(point); };
  return std::ranges::any_of(points.patterns, is_kernel) || std::ranges::any_of(points.ends, is_kernel);
}

/// Returns whether what is missing is what usdt-broker has: it has no more rights to another user's process than its
/// client, and attaches to no point of the kernel.
bool could_help(const std::string& lack, const usdt::Question& question) {
  const auto may_attach = usdt::check_privilege(usdt::Backend::uprobe_multi);
  return !may_attach && lack.find(may_attach.error().message) != std::string::npos &&
         !names_kernel_points(question.points);
}

std::string socket_of(const Flags& flags) { return flags.broker.empty() ? usdt::usual_broker_socket() : flags.broker; }

}  // namespace

usdt::Result<std::shared_ptr<usdt::Broker>> find_broker(const Flags& flags) {
  if (flags.no_broker || !flags.question.recording.replay.empty()) return std::shared_ptr<usdt::Broker>();
  auto broker = flags.broker.empty() ? usdt::find_broker() : usdt::Broker::connect(flags.broker);
  if (broker && *broker) notice(flags, usdt::broker_text(**broker));
  return broker;
}

bool is_for_broker(const std::string& lack, const Flags& flags) {
  std::error_code unknown;
  return !flags.no_broker && could_help(lack, flags.question) && std::filesystem::exists(socket_of(flags), unknown);
}

std::string help_by_broker(const std::string& lack, const Flags& flags) {
  if (flags.no_broker || !could_help(lack, flags.question)) return {};
  const std::string socket = socket_of(flags);
  if (is_for_broker(lack, flags))
    return fmt::format("; usdt-broker, which is at {}, attaches to your own processes", socket);
  return fmt::format(
      "; or have an administrator enable usdt-broker, which attaches to your own processes "
      "(usdt-broker(8); nothing is at {})",
      socket);
}

usdt::Error with_hint_at_broker(usdt::Error error, const Flags& flags) {
  if (error.kind == usdt::ErrorKind::no_permission) error.message += help_by_broker(error.message, flags);
  return error;
}

}  // namespace usdt_trace
