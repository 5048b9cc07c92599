// SPDX-License-Identifier: BSD-2-Clause
// Fields that every hit has, whatever the arguments of its site are: the words of questions, print lists and keys.
// kHitFields is the one table of them, which parsers, checks, programs in the kernel, tools and documents read. How a
// program reads one is in sdk/src/expr/field_readers.hpp; how an event has it, in number_of() (event.hpp).
// Plain values, for any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "usdt/expression_type.hpp"

namespace usdt {
inline namespace v1 {

/// Names what an expression can ask of every hit, whatever the arguments of its site are.
enum class HitField : std::uint8_t {
  pid,       ///< the process, as the tracer's pid namespace numbers it
  tid,       ///< the thread, numbered likewise
  comm,      ///< the name of the thread, a text of at most 15 bytes
  cpu,       ///< the number of the processor
  uid,       ///< the user of the process, as the initial user namespace numbers it
  gid,       ///< the group of the process, numbered likewise
  ppid,      ///< the parent of the process, as the initial pid namespace numbers it; 0: it has none
  cgroup,    ///< the cgroup of the process in the unified hierarchy (v2): the inode number of its directory
  nsecs,     ///< the time of the hit, and of a call its end: ns of CLOCK_MONOTONIC
  elapsed,   ///< `nsecs` less Expression::began
  duration,  ///< how long a call or a span took, ns
  provider,  ///< of a USDT probe its provider; of a function and of a point of the kernel the prefix of its name, as
             ///< "ucall" or "kfunc"
  name,      ///< the name of the probe, without its provider
  probe,     ///< the text "PROVIDER:NAME"; where it is a key of a table (table.hpp), the probe itself
  ip,        ///< the address of the site in its file, which `usdt-list -v` shows, or of the function in the kernel
  ustack,    ///< the stack of the process; only as a key of a table
  kstack,    ///< the stack of the kernel, at hits in the kernel; only as a key of a table
  trace_id,  ///< the trace that the thread works for, 32 hexadecimal digits (Event::thread_context()); empty: none
  span_id,   ///< the span of that trace, 16 hexadecimal digits; empty: none
};

/// Tells who knows a field.
enum class HitFieldSource : std::uint8_t {
  hit,      ///< each hit; of a span its beginning
  owner,    ///< each hit, too, but events have it only with PlanOptions::owners
  clock,    ///< the clock, at the hit; of calls and spans at their end
  site,     ///< the site: all of its hits agree on it
  stack,    ///< the stack at the hit
  context,  ///< the thread, which publishes it; events have it with PlanOptions::contexts
};

/// Tells how people read a field that is a number.
enum class HitFieldForm : std::uint8_t {
  plain,     ///< as it is
  duration,  ///< a number with a unit: "1.5 ms"
  address,   ///< in hexadecimal
};

/// Describes a field.
struct HitFieldInfo {
  HitField field;
  std::string_view word;  ///< its name in expressions
  ExpressionType type;
  HitFieldSource source;
  HitFieldForm form;
  bool gives_way;         ///< the word means the argument of this name at sites that have one
  std::string_view help;  ///< a description for people
};

/// Returns whether row n of `rows` is that of the field with number n.
template <class Rows>
[[nodiscard]] constexpr bool are_in_order(const Rows& rows) noexcept {
  std::size_t n = 0;
  for (const auto& row : rows)
    if (row.field != static_cast<HitField>(n++)) return false;
  return true;
}

/// Has a row for each field, in the order of HitField.
inline constexpr auto kHitFields = [] {
  using OfType = ExpressionType;
  using Source = HitFieldSource;
  using Form = HitFieldForm;
  return std::array{
      HitFieldInfo{HitField::pid, "pid", OfType::signed_integer, Source::hit, Form::plain, false,
                   "the process, as the tracer's pid namespace numbers it"},
      HitFieldInfo{HitField::tid, "tid", OfType::signed_integer, Source::hit, Form::plain, false,
                   "the thread, numbered likewise"},
      HitFieldInfo{HitField::comm, "comm", OfType::text, Source::hit, Form::plain, false,
                   "the name of the thread, at most 15 bytes"},
      HitFieldInfo{HitField::cpu, "cpu", OfType::signed_integer, Source::hit, Form::plain, false,
                   "the number of the processor"},
      HitFieldInfo{HitField::uid, "uid", OfType::signed_integer, Source::owner, Form::plain, false,
                   "the real user of the process, as the initial user namespace numbers it"},
      HitFieldInfo{HitField::gid, "gid", OfType::signed_integer, Source::owner, Form::plain, false,
                   "the real group of the process, numbered likewise"},
      HitFieldInfo{HitField::ppid, "ppid", OfType::signed_integer, Source::owner, Form::plain, false,
                   "the parent of the process, as the initial pid namespace numbers it; 0: none"},
      HitFieldInfo{HitField::cgroup, "cgroup", OfType::unsigned_integer, Source::owner, Form::plain, false,
                   "the inode of the process's directory in the unified cgroup hierarchy"},
      HitFieldInfo{HitField::nsecs, "nsecs", OfType::unsigned_integer, Source::clock, Form::plain, false,
                   "the time in ns: CLOCK_MONOTONIC of the initial time namespace"},
      HitFieldInfo{HitField::elapsed, "elapsed", OfType::unsigned_integer, Source::clock, Form::duration, true,
                   "ns since the trace began; in a recording, since that one began"},
      HitFieldInfo{HitField::duration, "duration", OfType::unsigned_integer, Source::clock, Form::duration, false,
                   "how long a call or span took, in ns; other points are refused"},
      HitFieldInfo{
          HitField::provider, "provider", OfType::text, Source::site, Form::plain, true,
          "the provider of the probe; of functions and kernel points what stands before their names (`ucall`)"},
      HitFieldInfo{HitField::name, "name", OfType::text, Source::site, Form::plain, true,
                   "the name of the probe without its provider"},
      HitFieldInfo{HitField::probe, "probe", OfType::text, Source::site, Form::plain, false, "both: `orders:received`"},
      HitFieldInfo{HitField::ip, "ip", OfType::unsigned_integer, Source::site, Form::address, true,
                   "the address of the site in its file, as `usdt-list -v` has it, or of the kernel's function"},
      HitFieldInfo{HitField::ustack, "ustack", OfType::stack, Source::stack, Form::plain, false,
                   "the stack of the process; only a key of a table, or shown"},
      HitFieldInfo{HitField::kstack, "kstack", OfType::stack, Source::stack, Form::plain, false,
                   "the stack of the kernel; only a key of a table, or shown"},
      HitFieldInfo{HitField::trace_id, "trace_id", OfType::text, Source::context, Form::plain, true,
                   "the OpenTelemetry trace that the thread works for; \"\": none"},
      HitFieldInfo{HitField::span_id, "span_id", OfType::text, Source::context, Form::plain, true,
                   "the span of that trace; \"\": none"}};
}();
static_assert(are_in_order(kHitFields), "each row is in the place of its field");

/// Returns the row of a field.
[[nodiscard]] constexpr const HitFieldInfo& info_of(HitField field) noexcept {
  return kHitFields[static_cast<std::size_t>(field)];
}
/// Returns the word that expressions use for the field: "pid", "comm".
[[nodiscard]] constexpr std::string_view to_string(HitField field) noexcept { return info_of(field).word; }
/// Returns the row of a word; null: it is none.
[[nodiscard]] constexpr const HitFieldInfo* find_hit_field(std::string_view word) noexcept {
  for (const HitFieldInfo& each : kHitFields)
    if (each.word == word) return &each;
  return nullptr;
}

}  // namespace v1
}  // namespace usdt
