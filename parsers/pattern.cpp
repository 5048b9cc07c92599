// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/pattern.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace usdt {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// The last ':' before `end` that no '\' quotes; kNone where there is none.
std::size_t last_colon(std::string_view text, std::size_t end) {
  while (end-- > 0) {
    if (text[end] != ':') continue;
    std::size_t quotes = 0;
    while (quotes < end && text[end - quotes - 1] == '\\') ++quotes;
    if (quotes % 2 == 0) return end;
  }
  return kNone;
}

/// Length of a leading "usdt:" (bpftrace), "U:" (its short form) or "u:" (bcc); 0 where there is none.
std::size_t prefix_length(std::string_view text) {
  for (const std::string_view prefix : {"usdt:", "U:", "u:"}) {
    if (text.starts_with(prefix)) return prefix.size();
  }
  return 0;
}

tl::unexpected<Error> bad_syntax(std::string message, std::size_t column) {
  return fail(Error{ErrorKind::syntax, std::move(message), 0, static_cast<std::uint32_t>(column)});
}

}  // namespace

Result<ProbePattern> ProbePattern::parse(std::string_view text) {
  const std::size_t name_colon = last_colon(text, text.size());
  if (name_colon == kNone) return bad_syntax(fmt::format("no ':' in '{}': write PROVIDER:NAME", text), text.size());
  if (name_colon + 1 == text.size()) return bad_syntax("empty probe name", text.size());

  ProbePattern pattern;
  pattern.name = text.substr(name_colon + 1);
  // A prefix needs a target behind it: "u:malloc" is the probe malloc of a provider called u.
  std::size_t start = prefix_length(text);
  if (start > name_colon) start = 0;
  const std::string_view front = text.substr(start, name_colon - start);
  const std::size_t provider_colon = last_colon(front, front.size());
  if (start > 0 && provider_colon == kNone) {
    pattern.target = front;
    return pattern;
  }
  const std::size_t provider_at = provider_colon == kNone ? 0 : provider_colon + 1;
  if (provider_at == front.size()) return bad_syntax("empty provider", start + provider_at);
  pattern.provider = front.substr(provider_at);
  if (provider_colon != kNone) pattern.target = front.substr(0, provider_colon);
  return pattern;
}

bool ProbePattern::matches(std::string_view site_provider, std::string_view site_name) const noexcept {
  return glob_match(provider, site_provider) && glob_match(name, site_name);
}

std::string ProbePattern::str() const { return fmt::format("usdt:{}:{}:{}", target, provider, name); }

}  // namespace usdt
