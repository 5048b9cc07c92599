// SPDX-License-Identifier: BSD-2-Clause
// Lines as --format-string wants them: printf's directives for the values of --print, and names of what every hit has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "print_choice.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What is known of every event.
enum class EventField : std::uint8_t { time, nsecs, pid, tid, cpu, comm, probe, duration };

/// A directive, or text between them.
struct FormatPiece {
  enum class Kind : std::uint8_t { text, value, field };
  Kind kind = Kind::text;
  std::string text = {};                ///< of Kind::text
  char conversion = 's';                ///< of Kind::value: one of "diuxXocfegFEGsp"
  EventField field = EventField::time;  ///< of Kind::field
  bool left = false;                    ///< flag '-'
  bool zeros = false;                   ///< flag '0'
  bool plus = false;                    ///< flag '+'
  bool blank = false;                   ///< flag ' '
  bool prefix = false;                  ///< flag '#': "0x", "0", and the point of reals
  std::size_t width = 0;                ///< columns at least
  std::optional<std::size_t> precision =
      {};                    ///< digits behind the point; of integers digits at least, of texts characters at most
  std::uint32_t column = 0;  ///< zero-based, where it is in the format
};

struct FormatString {
  std::string source;               ///< as written; empty: none
  std::vector<FormatPiece> pieces;  ///< in order
  /// What is shown by "%{EXPR}" is a list of its own.
  PrintList list = {};

  [[nodiscard]] bool empty() const noexcept { return pieces.empty(); }
  /// How many values it takes.
  [[nodiscard]] std::size_t values() const noexcept;
};

/// What "%{NAME}" has of every event: "time, nsecs, ...".
[[nodiscard]] std::string format_field_names();

/// Parses "%s took %d", "%-16{comm} %{str(arg0)} took %{duration}\n". Errors: syntax with the column; invalid_argument
/// ("%s" beside "%{EXPR}").
[[nodiscard]] usdt::Result<FormatString> parse_format_string(std::string_view source);

/// Every value has a directive that can show it, at all sites. Errors: invalid_argument, with the column.
[[nodiscard]] usdt::Result<void> check_format(const FormatString& format, const usdt::AttachPlan& plan,
                                              const Printed& printed);

/// A number, as an integer directive shows it: `bits` of a value of `size` bytes.
[[nodiscard]] std::string integer_text(const FormatPiece& piece, const usdt::Value& value, std::size_t size);
/// A real, as "%f", "%e" and "%g" show it.
[[nodiscard]] std::string real_text(const FormatPiece& piece, double value);

}  // namespace usdt_trace
