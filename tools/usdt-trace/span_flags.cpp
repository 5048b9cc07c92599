// SPDX-License-Identifier: BSD-2-Clause
#include "span_flags.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/command_line.hpp"

namespace usdt_trace {
namespace {

/// "A ~~ B", or "A" "~~" "B": what is before it and behind it, blanks at the ends left out.
constexpr std::string_view kTo = "~~";

/// Where it stands alone; npos: nowhere.
std::size_t find_to(std::string_view text) {
  for (std::size_t at = text.find(kTo); at != text.npos; at = text.find(kTo, at + 1)) {
    const std::size_t behind = at + kTo.size();
    if ((at == 0 || text[at - 1] == ' ') && (behind == text.size() || text[behind] == ' ')) return at;
  }
  return text.npos;
}

/// The same of probes: where it stands alone nowhere, the first that is not in quotes, as in "A~~B".
std::size_t find_to_of_probes(std::string_view text) {
  if (const std::size_t alone = find_to(text); alone != text.npos) return alone;
  bool in_quotes = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      in_quotes = !in_quotes;
    else if (!in_quotes && text.substr(at).starts_with(kTo))
      return at;
  }
  return text.npos;
}

}  // namespace

usdt::Result<SpanSides> split_probes(const std::vector<std::string>& words) {
  SpanSides sides;
  bool behind = false;
  const auto add = [&](std::string_view word) {
    if (!word.empty()) (behind ? sides.ends : sides.begins).emplace_back(word);
  };
  for (const std::string& word : words) {
    const std::size_t at = find_to_of_probes(word);
    if (at == word.npos) {
      (behind ? sides.ends : sides.begins).push_back(word);
      continue;
    }
    if (behind || find_to_of_probes(word.substr(at + kTo.size())) != word.npos)
      return usdt::fail(usdt::ErrorKind::invalid_argument, "'~~' twice: one trace has spans of one kind, 'A ~~ B'");
    add(usdt::tools::without_blanks(std::string_view(word).substr(0, at)));
    behind = true;
    add(usdt::tools::without_blanks(std::string_view(word).substr(at + kTo.size())));
  }
  if (behind && (sides.begins.empty() || sides.ends.empty()))
    return usdt::fail(usdt::ErrorKind::invalid_argument, "a span is 'A ~~ B': a probe is missing on one side");
  return sides;
}

usdt::Result<usdt::SpanPairing> parse_pairing(const std::string& text) {
  usdt::SpanPairing pairing;
  const std::size_t at = find_to(text);
  auto begin = usdt::parse_expressions(std::string_view(text).substr(0, std::min(at, text.size())));
  if (!begin) return usdt::fail(begin.error().within("--pair-by"));
  pairing.begin = std::move(*begin);
  if (at == text.npos) return pairing;
  auto end = usdt::parse_expressions(std::string_view(text).substr(at + kTo.size()));
  if (!end) return usdt::fail(end.error().within("--pair-by"));
  pairing.end = std::move(*end);
  return pairing;
}

}  // namespace usdt_trace
