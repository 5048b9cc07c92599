// SPDX-License-Identifier: BSD-2-Clause
#include "elf/other_names.hpp"

#include <charconv>
#include <optional>

namespace usdt::elf {
namespace {

constexpr std::string_view kPascalUnit = "_$$_";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The names of D, as far as they are identifiers (https://dlang.org/spec/abi.html#name_mangling).
class DName {
 public:
  explicit DName(std::string_view symbol) : symbol_(symbol) {}

  std::string text(std::size_t most) {
    std::string text;
    for (at_ = 2; at_ < symbol_.size();) {
      const auto name = next();
      if (!name) break;
      if (name->empty() || text.size() + name->size() >= most) return {};
      if (!text.empty()) text += '.';
      text += *name;
    }
    return text;
  }

 private:
  /// Nothing: behind the last one, where the type begins.
  std::optional<std::string_view> next() {
    if (symbol_[at_] != 'Q') {
      const auto name = identifier(at_);
      if (name) at_ = static_cast<std::size_t>(name->data() - symbol_.data()) + name->size();
      return name;
    }
    // The distance to an identifier before, in digits of 26, the last of which is small.
    const std::size_t from = at_;
    std::size_t distance = 0;
    for (++at_; at_ < symbol_.size() && distance < symbol_.size(); ++at_) {
      const char c = symbol_[at_];
      const bool last = c >= 'a' && c <= 'z';
      if (!last && (c < 'A' || c > 'Z')) return std::string_view();
      distance = distance * 26 + static_cast<std::size_t>(c - (last ? 'a' : 'A'));
      if (!last) continue;
      ++at_;
      return distance == 0 || distance > from ? std::string_view() : identifier(from - distance).value_or("");
    }
    return std::string_view();
  }

  [[nodiscard]] std::optional<std::string_view> identifier(std::size_t at) const {
    std::size_t size = 0;
    const char* const end = symbol_.data() + symbol_.size();
    const auto read = std::from_chars(symbol_.data() + at, end, size);
    if (read.ec != std::errc() || size == 0 || size > static_cast<std::size_t>(end - read.ptr)) return std::nullopt;
    return std::string_view(read.ptr, size);
  }

  std::string_view symbol_;
  std::size_t at_ = 0;
};

/// "UNIT_$$_NAME$TYPE$$RESULT"; a program is "P$NAME", a method "UNIT$_$CLASS_$__$$_NAME$...".
std::string pascal_name(std::string_view symbol) {
  const std::size_t unit_end = symbol.find(kPascalUnit);
  if (unit_end == 0 || unit_end == symbol.npos) return {};
  std::string_view unit = symbol.substr(0, unit_end);
  std::string_view name = symbol.substr(unit_end + kPascalUnit.size());
  name = name.substr(0, name.find('$'));
  if (name.empty()) return {};
  if (unit.starts_with("P$")) unit.remove_prefix(2);
  std::string text;
  if (const std::size_t type = unit.find("$_$"); type != unit.npos) {
    std::string_view of = unit.substr(type + 3);
    if (of.ends_with("_$_")) of.remove_suffix(3);
    text.append(unit.substr(0, type)).append(".").append(of);
  } else {
    text = unit;
  }
  return text.append(".").append(name);
}

}  // namespace

bool may_be_other_name(std::string_view symbol) noexcept {
  if (symbol.size() > 3 && symbol.starts_with("_D") && is_digit(symbol[2])) return true;
  return symbol.find(kPascalUnit) != symbol.npos;
}

std::string other_name(std::string_view symbol, std::size_t most) {
  return symbol.starts_with("_D") ? DName(symbol).text(most) : pascal_name(symbol);
}

}  // namespace usdt::elf
