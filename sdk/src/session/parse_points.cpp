// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "session/option_names.hpp"
#include "session/without_blanks.hpp"
#include "usdt/question.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Stands between where spans begin and where they end: "A ~~ B".
constexpr std::string_view kTo = "~~";

/// Finds where it stands alone; npos: nowhere.
std::size_t find_to(std::string_view text) {
  for (std::size_t at = text.find(kTo); at != text.npos; at = text.find(kTo, at + 1)) {
    const std::size_t behind = at + kTo.size();
    if ((at == 0 || text[at - 1] == ' ') && (behind == text.size() || text[behind] == ' ')) return at;
  }
  return text.npos;
}

/// Finds it between names of probes: where it stands alone nowhere, the first that is not in quotes, as in "A~~B".
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

Result<SpanSides> split_spans(const std::vector<std::string>& words) {
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
      return fail(ErrorKind::invalid_argument, "'~~' twice: one trace has spans of one kind, 'A ~~ B'");
    add(session::without_blanks(std::string_view(word).substr(0, at)));
    behind = true;
    add(session::without_blanks(std::string_view(word).substr(at + kTo.size())));
  }
  if (behind && (sides.begins.empty() || sides.ends.empty()))
    return fail(ErrorKind::invalid_argument, "a span is 'A ~~ B': a probe is missing on one side");
  return sides;
}

Result<AskedPoints> parse_points(const std::vector<std::string>& words) {
  auto sides = TRY(split_spans(words));
  auto begins = TRY(parse_patterns(sides.begins));
  auto ends = TRY(parse_patterns(sides.ends));
  return AskedPoints{.patterns = std::move(begins), .ends = std::move(ends)};
}

Result<SpanPairing> parse_pairing(std::string_view text, std::string_view prefix) {
  SpanPairing pairing;
  const std::size_t at = find_to(text);
  auto begin = parse_expressions(text.substr(0, std::min(at, text.size())));
  if (!begin) return fail(begin.error().within(session::name_options("--pair-by", prefix)));
  pairing.begin = std::move(*begin);
  if (at == text.npos) return pairing;
  auto end = parse_expressions(text.substr(at + kTo.size()));
  if (!end) return fail(end.error().within(session::name_options("--pair-by", prefix)));
  pairing.end = std::move(*end);
  return pairing;
}

}  // namespace v1
}  // namespace usdt
