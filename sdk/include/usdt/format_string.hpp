// SPDX-License-Identifier: BSD-2-Clause
// Lines of events in a form of the caller's own: printf's directives for the values of a print list, and names of what
// every hit has. parse_format_string() reads "%-16{comm} read %d bytes"; check_format() says whether the values of a
// plan can be shown so. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// A fact that every event has.
enum class EventField : std::uint8_t { time, nsecs, pid, tid, cpu, comm, probe, duration };

/// A directive, or text between them.
struct FormatPiece {
  /// The kinds of pieces.
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

/// A form of lines, as it was parsed.
struct FormatString {
  std::string source;               ///< as written; empty: none
  std::vector<FormatPiece> pieces;  ///< in order
  /// The list of the values that "%{EXPR}" shows.
  PrintList list = {};

  /// Whether there is no form, so that lines have their usual one.
  [[nodiscard]] bool empty() const noexcept { return pieces.empty(); }
  /// Returns how many values it takes.
  [[nodiscard]] std::size_t values() const noexcept;
};

/// Returns the names that "%{NAME}" takes, for messages: "time, nsecs, ...".
[[nodiscard]] std::string format_field_names();

/// Parses "%s took %d", "%-16{comm} %{str(arg0)} took %{duration}\n". Errors: syntax with the column; invalid_argument
/// ("%s" beside "%{EXPR}"). Messages put `prefix` before the names of options.
[[nodiscard]] Result<FormatString> parse_format_string(std::string_view source, std::string_view prefix = {});

/// Checks that every value has a directive that can show it, at all sites. Errors: invalid_argument, with the column.
[[nodiscard]] Result<void> check_format(const FormatString& format, const AttachPlan& plan, const Printed& printed,
                                        std::string_view prefix = {});

}  // namespace v1
}  // namespace usdt
