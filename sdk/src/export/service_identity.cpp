// SPDX-License-Identifier: BSD-2-Clause
#include "export/service_identity.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include "usdt/utf8.hpp"

namespace usdt::exports {
namespace {

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

}  // namespace

ServiceIdentity identity_of(const AttachPlan& plan) {
  constexpr std::size_t kMostLength = 255;  ///< in bytes, of each
  const auto attributes = resource_attributes();
  /// The first that there is.
  const auto choose = [&](std::string first, std::string_view attribute, std::string otherwise) {
    const auto found = attributes.find(attribute);
    if (first.empty() && found != attributes.end()) first = found->second;
    if (first.empty()) first = std::move(otherwise);
    return std::string(without_partial_utf8(std::string_view(first).substr(0, kMostLength)));
  };
  std::string file = "usdt";
  if (plan.files.size() == 1) file = plan.files[Index<PlannedFile>(0)].target.path.filename().native();
  return {.host = choose({}, "host.name", host_name()),
          .service = choose(from_environment("OTEL_SERVICE_NAME"), "service.name", file),
          .version = choose({}, "service.version", {}),
          .container = choose({}, "container.id", {})};
}

}  // namespace usdt::exports
