// SPDX-License-Identifier: BSD-2-Clause
// Values of events as text: numbers, texts, bytes, and what has members or elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "export/output.hpp"

namespace usdt::exports {

/// Prints values of events. What could not be read is printed as "<reason>", and counted.
class ValueWriter {
 public:
  /// Both live as long.
  ValueWriter(io::Stream& out, std::uint64_t& unreadable) : out_(out), unreadable_(unreadable) {}

  void show_error(std::string_view reason);
  /// A value without its members.
  void show_value(const Event& event, std::size_t n, bool hex) { show_value(event.arg_info(n), event.value(n), hex); }
  /// A value of an argument.
  void show_value(const Arg& arg, const Value& value, bool hex);
  /// A value with its members.
  void show_whole(const Event& event, std::size_t n, bool hex);
  /// The text that a value is, or points to, in quotes.
  void show_text(const Event& event, std::size_t n);
  void show_text(const Text& text);
  /// "ntop(x)"
  void show_address(const Event& event, std::size_t n);
  /// "buf(p, 16)"
  void show_bytes(const Event& event, std::size_t n);

 private:
  /// "{a=1 b={c=2}}", "[1 2 3]"; false: none is known.
  bool show_members(const Event& event, std::size_t whole, bool hex);
  /// A member or an element.
  void show_part(const Event& event, std::size_t n, bool hex);
  /// "[1 2 3 ...(97 more)]"
  void show_list(const Event& event, std::size_t whole, bool hex);
  /// Shows the name of a value; false: it has none.
  bool show_name(const Arg& arg, const Value& value);

  io::Stream& out_;
  std::uint64_t& unreadable_;
};

}  // namespace usdt::exports
