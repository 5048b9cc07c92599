// SPDX-License-Identifier: BSD-2-Clause
#include "export/value_text.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/try.hpp"

namespace usdt::exports {

std::optional<std::uint64_t> integer_bits(const Value& read) noexcept {
  if (const auto* number = std::get_if<std::int64_t>(&read)) return static_cast<std::uint64_t>(*number);
  const auto* number = std::get_if<std::uint64_t>(&read);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string ipv4_text(std::uint64_t bits) {
  return fmt::format("{}.{}.{}.{}", bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff, bits >> 24 & 0xff);
}

std::string address_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> shown{};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  const bool known = bytes.size() == 4 || bytes.size() == 16;
  return known && ::inet_ntop(family, bytes.data(), shown.data(), shown.size()) != nullptr ? std::string(shown.data())
                                                                                           : std::string();
}

Result<std::string> address_in(const Event& event, std::size_t n) {
  const Arg& arg = event.arg_info(n);
  if (arg.length) {
    const auto bytes = TRY(event.text(n));
    std::string shown = bytes.truncated ? std::string() : address_text(bytes.bytes);
    if (shown.empty()) return fail(ErrorKind::invalid_argument, "an address has 4 or 16 bytes, and these are others");
    return shown;
  }
  const Value read = event.value(n);
  if (const auto* unread = std::get_if<ArgError>(&read)) return fail(ErrorKind::io, std::string(unread->reason));
  const auto bits = arg.type.kind == TypeKind::integer ? integer_bits(read) : std::nullopt;
  if (!bits) return fail(ErrorKind::invalid_argument, fmt::format("{} is no number", arg.name()));
  return ipv4_text(*bits);
}

std::string bytes_text(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes) {
    const bool plain_character = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    shown += plain_character ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown;
}

std::string hex_digits(std::string_view bytes, bool upper) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  if (upper)
    std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return digits;
}

}  // namespace usdt::exports
