// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/decode.hpp"
#include "usdt/event.hpp"
#include "usdt/expression.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/value_path.hpp"

namespace usdt_trace {

/// One thing to show of an event.
struct PrintItem {
  enum class Form : std::uint8_t { value, text, hex, address, bytes };
  Form form = Form::value;
  /// An argument, kReturnValue, or what they lead to; of addresses and bytes with that as the last step.
  usdt::ValuePath value;
  std::optional<usdt::ArgName> length = {};  ///< text: the argument that says how long it is
  std::optional<usdt::ValuePath> size = {};  ///< bytes: the value that says how many they are
  std::string label;                         ///< as written: "str(arg1)"
  /// It is one of the words of questions: at every site, or, of those that give way to arguments (gives_way()), where
  /// there is none of that name.
  std::optional<usdt::HitField> word = {};

  [[nodiscard]] bool gives_way() const { return !word || usdt::TypedExpression::is_word(value); }
};
using PrintList = std::vector<PrintItem>;

/// Whether one of a list's items is this word.
[[nodiscard]] bool names(const PrintList& list, usdt::HitField word) noexcept;

/// A struct in_addr as a word: its bytes as they are in memory, with dots between them.
[[nodiscard]] std::string ipv4_text(std::uint64_t bits);

/// An address of 4 or 16 bytes as it is in memory: "192.168.0.1", "fe80::1". Empty: there are not so many.
[[nodiscard]] std::string address_text(std::string_view bytes);
/// Of an event's argument the address of the Internet: of 4 or 16 bytes as they are in memory, "192.168.0.1",
/// "fe80::1", or of a number. Errors: io (it could not be read), invalid_argument (it is something else).
[[nodiscard]] usdt::Result<std::string> address_in(const usdt::Event& event, std::size_t n);
/// Bytes for people: "GET\x00\xff", and for programs: "47455400ff".
[[nodiscard]] std::string bytes_text(std::string_view bytes);
[[nodiscard]] std::string hex_digits(std::string_view bytes, bool upper = false);

/// The bits of an integer; nothing: it is none.
[[nodiscard]] std::optional<std::uint64_t> integer_bits(const usdt::Value& value) noexcept;

/// What the return value is called.
inline constexpr std::string_view kReturnValue = "retval";

/// The name of a value in its site's list.
[[nodiscard]] usdt::ArgName name_of(const usdt::ValuePath& value);

/// Parses "arg0, str(arg1), hex(count), ntop(addr), buf(p, 16), req->peer.port, retval, pid, args.pid". Error: syntax
/// with the column.
[[nodiscard]] usdt::Result<PrintList> parse_print_list(std::string_view text);

/// Which of a site's arguments `item` means; nothing: it has no such argument.
[[nodiscard]] std::optional<std::size_t> position_of(const PrintItem& item, const std::vector<usdt::Arg>& args);

}  // namespace usdt_trace
