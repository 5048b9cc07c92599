// SPDX-License-Identifier: BSD-2-Clause
#include "export/meaning.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "export/value_text.hpp"
#include "io/number_text.hpp"
#include "parsers/declared.hpp"

namespace usdt::exports {
namespace {

/// "ENOENT", and "-ENOENT" of what the kernel returns.
std::string error_name(std::int64_t number) {
  const char* name = number > -4096 && number < 4096 ? ::strerrorname_np(std::abs(static_cast<int>(number))) : nullptr;
  if (number == 0 || !name) return fmt::format("{}", number);
  return fmt::format("{}{}", number < 0 ? "-" : "", name);
}

std::optional<double> nanoseconds_in(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  for (const auto& [name, nanoseconds] : kUnits)
    if (name == unit) return nanoseconds;
  return std::nullopt;
}

struct Number {
  std::string text;
  double size;
  std::int64_t whole;  ///< of integers up to 2^63
};

Number number_of(const Value& value) {
  if (const auto* natural = std::get_if<std::uint64_t>(&value))
    return {fmt::format("{}", *natural), static_cast<double>(*natural), static_cast<std::int64_t>(*natural)};
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return {fmt::format("{}", *whole), static_cast<double>(*whole), *whole};
  const double real = std::get<double>(value);
  return {fmt::format("{}", real), real, 0};
}

}  // namespace

Arg called_so(const Arg& arg, const Declaration& called) {
  Arg made;
  made.type = arg.type;
  Declaration declaration = called;
  declaration.type = arg.c_type();
  parsers::set_meaning(made.type, declaration);
  made.declaration = std::make_shared<const Declaration>(std::move(declaration));
  return made;
}

std::string_view name_of_number(const Arg& arg, const Value& value) {
  const auto bits = integer_bits(value);
  return bits ? enumerator_name(arg, *bits) : std::string_view();
}

std::optional<std::string> text_by_meaning(const Arg& arg, const Value& value) {
  if (!arg.declaration || std::holds_alternative<ArgError>(value)) return std::nullopt;
  const Declaration& declared = *arg.declaration;
  const Number number = number_of(value);
  const bool integer = !std::holds_alternative<double>(value);
  if (declared.meaning == "errno" && integer) return error_name(number.whole);
  if (declared.meaning == "bits" && integer) {
    const unsigned spare = arg.type.size == 0 || arg.type.size > 8 ? 0 : 64 - 8 * arg.type.size;
    return fmt::format("{:#x}", static_cast<std::uint64_t>(number.whole) << spare >> spare);
  }
  if (declared.meaning == "duration") {
    if (const auto each = nanoseconds_in(declared.unit)) return io::duration_text(number.size * *each);
  }
  if (declared.unit.empty()) return std::nullopt;
  return number.text + declared.unit;
}

}  // namespace usdt::exports
