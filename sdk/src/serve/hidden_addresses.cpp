// SPDX-License-Identifier: BSD-2-Clause
#include "serve/hidden_addresses.hpp"

#include <algorithm>
#include <cstddef>

namespace usdt::serve {
namespace {

/// Numbers that begin with "0x" are hexadecimal, of kernels of 64 bits in the upper half of all addresses.
constexpr std::size_t kDigits = 16;
/// What comes before the value of an instruction that loads 64 bits: "1: (18) r1 = 0xffffc900026cb180".
constexpr std::string_view kLoads = "(18) r";

bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Whether the number at the end of `before` is one that an instruction loads: a place of a map, perhaps, whatever it
/// looks like.
bool is_loaded(std::string_view before) {
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  const std::size_t at = line.rfind(kLoads);
  return at != line.npos && line.ends_with("= ") && line.find('=', at) == line.size() - 2;
}

}  // namespace

std::string without_addresses(std::string_view text) {
  std::string out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t at = std::min(text.find("0x", from), text.size());
    out += text.substr(from, at - from);
    if (at == text.size()) break;
    const auto* const digits = text.data() + at + 2;
    const auto* const end = std::find_if_not(digits, text.data() + text.size(), is_digit);
    const bool is_upper = static_cast<std::size_t>(end - digits) >= kDigits && *digits >= '8';
    from = static_cast<std::size_t>(end - text.data());
    if (is_upper || is_loaded(text.substr(0, at)))
      out += "0x(hidden)";
    else
      out += text.substr(at, from - at);
  }
  return out;
}

Error without_addresses(const Error& error) {
  Error hidden = error;
  hidden.message = without_addresses(error.message);
  hidden.log = without_addresses(error.log);
  return hidden;
}

}  // namespace usdt::serve
