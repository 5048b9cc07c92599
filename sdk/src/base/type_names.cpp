// SPDX-License-Identifier: BSD-2-Clause
#include "base/type_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace usdt {
inline namespace v1 {
namespace {

/// The words of a number's type, which C takes in any order.
struct NumberWords {
  unsigned longs = 0;
  bool is_unsigned = false, is_signed = false, is_short = false, is_char = false, is_int = false;

  /// False where `word` is none of those that integer types are made of.
  bool add(std::string_view word) {
    if (word == "long") return ++longs != 0;
    for (const auto& [known, seen] : {std::pair<std::string_view, bool*>{"unsigned", &is_unsigned},
                                      {"signed", &is_signed},
                                      {"short", &is_short},
                                      {"char", &is_char},
                                      {"int", &is_int}})
      if (word == known) return *seen = true;
    return false;
  }
  /// Empty where no word was added.
  [[nodiscard]] std::string text() const {
    if (!is_unsigned && !is_signed && !is_short && !is_char && !is_int && longs == 0) return {};
    if (is_char) return is_unsigned ? "unsigned char" : is_signed ? "signed char" : "char";
    const std::string_view width = longs > 1 ? "long long" : longs == 1 ? "long" : is_short ? "short" : "int";
    return fmt::format("{}{}", is_unsigned ? "unsigned " : "", width);
  }
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

TypeName split_type_name(std::string_view name) noexcept {
  const auto trim = [&name] {
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
  };
  trim();
  for (const auto& [word, keyword] : {std::pair<std::string_view, TypeKeyword>{"struct ", TypeKeyword::structure},
                                      {"class ", TypeKeyword::structure},
                                      {"union ", TypeKeyword::union_type},
                                      {"enum ", TypeKeyword::enumeration}}) {
    if (!name.starts_with(word)) continue;
    name.remove_prefix(word.size());
    trim();
    return {keyword, name};
  }
  return {TypeKeyword::none, name};
}

std::string normal_type_name(std::string_view name) {
  std::string text;
  NumberWords number;
  const auto append = [&text](std::string_view word) {
    if (!text.empty() && !word.empty() && is_word(text.back())) text += ' ';
    text += word;
  };
  const auto end_number = [&] { append(std::exchange(number, {}).text()); };
  while (!name.empty()) {
    const auto end = std::ranges::find_if_not(name, is_word);
    const std::string_view word = name.substr(0, static_cast<std::size_t>(end - name.begin()));
    name.remove_prefix(word.empty() ? 0 : word.size());
    if (!word.empty() && number.add(word)) continue;
    if (!word.empty() || name.front() != ' ') end_number();
    if (!word.empty()) {
      append(word);
    } else {
      if (name.front() != ' ') text += name.front();
      name.remove_prefix(1);
    }
  }
  end_number();
  return text;
}

std::string_view last_scope(std::string_view name) noexcept {
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    const char c = name[i];
    if (c == '>' || c == ')' || c == '}') ++depth;
    if (c == '<' || c == '(' || c == '{') --depth;
    if (depth == 0 && c == ':' && i > 0 && name[i - 1] == ':') return name.substr(i + 1);
  }
  return name;
}

}  // namespace v1
}  // namespace usdt
