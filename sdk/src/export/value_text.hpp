// SPDX-License-Identifier: BSD-2-Clause
// Addresses and bytes as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "usdt/event.hpp"

namespace usdt::exports {

/// A struct in_addr as a word: its bytes as they are in memory, with dots between them.
[[nodiscard]] std::string ipv4_text(std::uint64_t bits);

/// An address of 4 or 16 bytes as it is in memory: "192.168.0.1", "fe80::1". Empty: there are not so many.
[[nodiscard]] std::string address_text(std::string_view bytes);
/// Returns the Internet address in an event's argument: of 4 or 16 bytes as they are in memory, "192.168.0.1",
/// "fe80::1", or of a number. Errors: io (it could not be read), invalid_argument (it is something else).
[[nodiscard]] Result<std::string> address_in(const Event& event, std::size_t n);
/// Bytes for people: "GET\x00\xff", and for programs: "47455400ff".
[[nodiscard]] std::string bytes_text(std::string_view bytes);
[[nodiscard]] std::string hex_digits(std::string_view bytes, bool upper = false);

/// The bits of an integer; nothing: it is none.
[[nodiscard]] std::optional<std::uint64_t> integer_bits(const Value& value) noexcept;

}  // namespace usdt::exports
