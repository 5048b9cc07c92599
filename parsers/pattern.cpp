// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/pattern.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <vector>

#include "parsers/quote.hpp"

namespace usdt {
namespace {

/// Where the ':' are that separate parts, from `start` on: a '\\' hides one, and so do the quotes around a part.
std::vector<std::size_t> find_separators(std::string_view text, std::size_t start) {
  std::vector<std::size_t> out;
  bool part_starts = true;
  for (std::size_t at = start; at < text.size();) {
    const std::size_t quoted = part_starts ? quoted_length(text.substr(at)) : 0;
    part_starts = false;
    if (quoted > 0 && (at + quoted == text.size() || text[at + quoted] == ':')) {
      at += quoted;
      continue;
    }
    if (text[at] == ':') {
      out.push_back(at);
      part_starts = true;
    }
    at += text[at] == '\\' ? 2 : 1;
  }
  return out;
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

/// Prefixes of bpftrace's other kinds of attach point, which people type from habit, and what there is for them here.
struct Foreign {
  std::string_view prefix;
  std::string_view answer;
};
constexpr std::string_view kFunctions =
    "functions of programs cannot be traced yet: their USDT probes can be (usdt:FILE:PROVIDER:NAME; "
    "usdt-list FILE shows them), and the kernel's functions (kfunc:NAME)";
constexpr Foreign kForeign[] = {
    {"uprobe", kFunctions},
    {"uretprobe", kFunctions},
    {"ucall", kFunctions},
    {"ur", kFunctions},
    {"tracepoint", "write raw_tp:NAME for the same event with the raw tracepoint's arguments"},
    {"t", "write raw_tp:NAME for the same event with the raw tracepoint's arguments"},
    {"profile", "there are no timed samples here"},
    {"interval", "there are no timed samples here"},
    {"software", "there are no counters here"},
    {"hardware", "there are no counters here"},
};

/// What to say to a foreign prefix with two parts behind it: "uprobe:n" is the probe n of a provider called so.
std::string_view foreign_answer(std::string_view text, std::span<const std::size_t> colons) noexcept {
  if (colons.size() < 2) return {};
  for (const Foreign& each : kForeign) {
    if (text.substr(0, colons[0]) == each.prefix) return each.answer;
  }
  return {};
}

}  // namespace

Result<ProbePattern> ProbePattern::parse(std::string_view text) {
  std::size_t start = prefix_length(text);
  std::vector<std::size_t> colons = find_separators(text, start);
  // A prefix needs a target behind it: "u:malloc" is the probe malloc of a provider called u.
  if (colons.empty() && start > 0) colons = find_separators(text, start = 0);
  if (colons.empty()) return bad_syntax(fmt::format("no ':' in '{}': write PROVIDER:NAME", text), text.size());
  if (const std::string_view answer = foreign_answer(text, colons); start == 0 && !answer.empty())
    return fail(Error{ErrorKind::not_supported, fmt::format("'{}': {}", text, answer), 0, 0U});
  const std::size_t name_at = colons.back() + 1;
  if (name_at == text.size()) return bad_syntax("empty probe name", text.size());

  ProbePattern pattern;
  pattern.name = glob_of_part(text.substr(name_at));
  if (pattern.name.empty()) return bad_syntax("empty probe name", name_at);  // ""
  if (start > 0 && colons.size() == 1) {
    pattern.target = text.substr(start, colons[0] - start);
    return pattern;
  }
  const bool has_target = colons.size() > 1;
  const std::size_t provider_at = has_target ? colons[colons.size() - 2] + 1 : start;
  if (provider_at + 1 == name_at) return bad_syntax("empty provider", provider_at);
  pattern.provider = glob_of_part(text.substr(provider_at, name_at - 1 - provider_at));
  if (pattern.provider.empty()) return bad_syntax("empty provider", provider_at);
  if (has_target) pattern.target = text.substr(start, provider_at - 1 - start);
  return pattern;
}

bool ProbePattern::matches(std::string_view site_provider, std::string_view site_name) const noexcept {
  return glob_match(provider, site_provider) && glob_match(name, site_name);
}

std::string ProbePattern::str() const { return fmt::format("usdt:{}:{}:{}", target, provider, name); }

}  // namespace usdt
