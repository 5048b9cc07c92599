// SPDX-License-Identifier: BSD-2-Clause
#include "export/service_identity.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include "usdt/utf8.hpp"

namespace usdt::exports {
namespace {

constexpr std::string_view kNobodys = "usdt";

std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// "a%20b" -> "a b"
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const bool escaped =
        text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(text.data() + at + 1, text.data() + at + 3, byte, 16).ptr == text.data() + at + 3;
    decoded += escaped ? static_cast<char>(byte) : text[at];
    if (escaped) at += 2;
  }
  return decoded;
}

/// "NAME=VALUE,NAME=VALUE"
std::map<std::string, std::string, std::less<>> resource_attributes() {
  std::map<std::string, std::string, std::less<>> found;
  const std::string all = from_environment("OTEL_RESOURCE_ATTRIBUTES");
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    const std::string_view pair = std::string_view(all).substr(at, end - at);
    const std::size_t equals = pair.find('=');
    if (equals != pair.npos) found.emplace(pair.substr(0, equals), percent_decoded(pair.substr(equals + 1)));
    at = end + 1;
  }
  return found;
}

/// "server" of "/usr/bin/server". A path below /proc says where something is, and not what.
std::string service_of(const AttachPlan& plan, const PlannedProbe& probe) {
  const auto file = probe.span ? plan.probes[probe.span->begin].file : probe.file;
  if (!file) return std::string(kNobodys);
  const auto& path = plan.files[*file].target.path;
  return path.native().starts_with("/proc/") ? std::string(kNobodys) : path.filename().native();
}

}  // namespace

ServiceIdentity identity_of_environment() {
  constexpr std::size_t kMostLength = 255;  ///< in bytes, of each
  const auto attributes = resource_attributes();
  /// The first that there is.
  const auto choose = [&](std::string first, std::string_view attribute, std::string otherwise) {
    const auto found = attributes.find(attribute);
    if (first.empty() && found != attributes.end()) first = found->second;
    if (first.empty()) first = std::move(otherwise);
    return std::string(without_partial_utf8(std::string_view(first).substr(0, kMostLength)));
  };
  return {.host = choose({}, "host.name", host_name()),
          .service = choose(from_environment("OTEL_SERVICE_NAME"), "service.name", {}),
          .version = choose({}, "service.version", {}),
          .container = choose({}, "container.id", {})};
}

std::size_t ServiceNames::number_of(const std::string& name) {
  const auto [known, is_new] = numbers_.try_emplace(name, all_.size());
  if (is_new) all_.push_back(name);
  return known->second;
}

void ServiceNames::look_up(const AttachPlan& plan) {
  of_probes_.clear();
  for (const PlannedProbe& probe : plan.probes)
    of_probes_.push_back(number_of(service_.empty() ? service_of(plan, probe) : service_));
  const bool is_one = !of_probes_.empty() &&
                      std::ranges::count(of_probes_, of_probes_[0]) == static_cast<std::ptrdiff_t>(of_probes_.size());
  of_numbers_ = is_one ? of_probes_[0] : number_of(service_.empty() ? std::string(kNobodys) : service_);
}

}  // namespace usdt::exports
