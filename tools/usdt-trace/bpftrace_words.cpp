// SPDX-License-Identifier: BSD-2-Clause
#include "bpftrace_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "common/command_line.hpp"

namespace usdt_trace {
namespace {

/// Returns a statement without its ';'.
std::string_view trimmed(std::string_view text) { return usdt::tools::without_blanks(text, " \t\n;"); }

/// Returns where the bracket closes that opens at `at`, behind texts in quotes; npos: nowhere.
std::size_t closing(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  bool quoted = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      quoted = !quoted;
    else if (!quoted && text[at] == open)
      ++depth;
    else if (!quoted && text[at] == close && --depth == 0)
      return at;
  }
  return text.npos;
}

/// Returns the text between the brackets behind `name`; empty: it is not called.
std::string_view arguments_of(std::string_view body, std::string_view name) {
  const std::size_t at = body.find(std::string(name) + "(");
  const bool within_word = at != body.npos && at > 0 && (std::isalnum(static_cast<unsigned char>(body[at - 1])) != 0);
  if (at == body.npos || within_word) return {};
  const std::size_t end = closing(body, at + name.size(), '(', ')');
  return end == body.npos ? std::string_view() : trimmed(body.substr(at + name.size() + 1, end - at - name.size() - 1));
}

/// Returns the keys of the first map: "comm" of "@[comm] = count()".
std::string_view keys_of(std::string_view body) {
  const std::size_t map = body.find('@');
  if (map == body.npos) return {};
  std::size_t at = map + 1;
  while (at < body.size() && (std::isalnum(static_cast<unsigned char>(body[at])) != 0 || body[at] == '_')) ++at;
  if (at == body.size() || body[at] != '[') return {};
  const std::size_t end = closing(body, at, '[', ']');
  return end == body.npos ? std::string_view() : trimmed(body.substr(at + 1, end - at - 1));
}

/// Returns `text` in quotes for a shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out.append("'\\''");
    else
      out.push_back(c);
  }
  return out + "'";
}

std::vector<std::string> options_for(std::string_view predicate, std::string_view body) {
  std::vector<std::string> options;
  const auto add = [&](std::string_view option, std::string_view value) {
    if (!value.empty()) options.push_back(fmt::format("{} {}", option, in_quotes(value)));
  };
  add("--where", predicate);
  const std::string_view keys = keys_of(body);
  add("--by", keys);
  for (const auto& [name, option] :
       {std::pair("hist", "--hist"), {"sum", "--sum"}, {"avg", "--avg"}, {"min", "--min"}, {"max", "--max"}})
    add(option, arguments_of(body, name));
  if (std::string ranges(arguments_of(body, "lhist")); !ranges.empty()) {
    std::ranges::replace(ranges, ',', ':');
    std::erase(ranges, ' ');
    add("--lhist", ranges);
  }
  const std::string_view shown = arguments_of(body, "printf");
  if (const std::size_t end = shown.starts_with('"') ? shown.find("\",") : shown.npos; end != shown.npos) {
    add("--print", trimmed(shown.substr(end + 2)));
    std::string_view format = shown.substr(1, end - 1);
    if (format.ends_with("\\n")) format.remove_suffix(2);  // which each line has
    add("--format-string", format);
  }
  if (keys.empty() && body.find("count()") != body.npos) options.emplace_back("--count");
  return options;
}

}  // namespace

std::optional<std::string> answer_to_bpftrace(const std::vector<std::string>& words) {
  const std::string text = fmt::format("{}", fmt::join(words, " "));
  // Names of functions have braces, too, but none behind a blank: "main::{closure#0}".
  const std::size_t tight = text.find("/{", std::min(text.find(" /"), text.size()));  // behind a predicate
  std::size_t begin = text.starts_with('{') ? 0 : std::min(text.find(" {"), tight);
  if (begin == text.npos && text.ends_with('}') && text.find_first_of("@;") != text.npos) begin = text.find('{');
  const std::size_t slash = text.find(" /");
  const std::size_t open = begin == text.npos ? text.npos : text.find('{', begin);
  std::string_view predicate;
  if (slash != text.npos && slash < std::min(open, text.size())) {
    const std::string_view rest = std::string_view(text).substr(slash + 2);
    const std::size_t end = rest.substr(0, open == text.npos ? rest.npos : open - slash - 2).rfind('/');
    if (end != rest.npos && end > 0 &&
        trimmed(rest.substr(end + 1, open == text.npos ? rest.npos : open - slash - 3 - end)).empty())
      predicate = trimmed(rest.substr(0, end));
  }
  // A path as a word of its own is no predicate.
  const bool is_predicate = predicate.find_first_of("=<>!&| ") != predicate.npos;
  if (open == text.npos && !is_predicate) return std::nullopt;
  const std::size_t close = open == text.npos ? text.npos : closing(text, open, '{', '}');
  const std::string_view body =
      close == text.npos ? std::string_view() : std::string_view(text).substr(open + 1, close - open - 1);
  const std::string_view probe =
      trimmed(std::string_view(text).substr(0, is_predicate ? slash : std::min(open, text.size())));
  const auto options = options_for(is_predicate ? predicate : std::string_view(), body);
  return fmt::format("that is a program of bpftrace, whose predicate is --where here and whose actions are options{}",
                     options.empty() || probe.empty()
                         ? ": --print, --count, --by, --hist"
                         : fmt::format(": usdt-trace {} {}", in_quotes(probe), fmt::join(options, " ")));
}

}  // namespace usdt_trace
