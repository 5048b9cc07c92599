// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/location.hpp"
#include "usdt/type.hpp"

namespace usdt {
inline namespace v1 {

/// What was needed to find a value, beyond the text of its note.
enum class Need : std::uint8_t {
  symbol = 1,        ///< the address of a symbol of the file
  got = 2,           ///< its global offset table
  segment_base = 4,  ///< the thread's segment
  reg_pair = 8,      ///< the compiler's order of registers
};
/// A set of them.
class Needs {
 public:
  constexpr Needs() = default;
  /// Those of the list.
  constexpr Needs(std::initializer_list<Need> needs) noexcept {
    for (const Need need : needs) add(need);
  }
  /// Adds one; that it is there already does not matter.
  constexpr void add(Need need) noexcept { bits_ = static_cast<std::uint8_t>(bits_ | static_cast<std::uint8_t>(need)); }
  /// Whether it is one of them.
  [[nodiscard]] constexpr bool has(Need need) const noexcept { return (bits_ & static_cast<std::uint8_t>(need)) != 0; }
  /// Whether there are none.
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  friend constexpr bool operator==(Needs, Needs) = default;

 private:
  std::uint8_t bits_ = 0;
};

/// Says of an argument that it is the number of elements of a list, such as std::vector, which keeps its elements
/// elsewhere.
struct ElementCount {
  std::uint64_t most = 0;  ///< more do not fit into memory: then it is no list, or not yet one
  std::uint32_t size = 0;  ///< bytes of an element
  /// Of lists that keep two addresses: the position of that of the first element. What is read is the address behind
  /// the last one, and the number is how many elements are in between.
  std::optional<std::uint8_t> first = {};
  friend bool operator==(const ElementCount&, const ElementCount&) = default;
};

/// Says of an argument that it is an element of a list, which is there only while the list is long enough.
struct ElementOf {
  std::uint8_t length = 0;  ///< the position of the list's ElementCount
  std::uint64_t index = 0;
  friend bool operator==(const ElementOf&, const ElementOf&) = default;
};

/// Says of an argument that it is there only while a discriminant has certain values.
struct AlternativeOf {
  std::uint8_t discriminant = 0;  ///< its position
  AlternativeValues values = {};  ///< with which the argument is there
  std::string reason = {};        ///< what to say where it is not there: "shape is no Circle"
  friend bool operator==(const AlternativeOf&, const AlternativeOf&) = default;
};

/// One argument, or the return value, of an attach point, with everything known about it before it is hit: its type,
/// and where its value is. Whatever it was read from, a note, debug information or a prototype of the kernel, every
/// later stage knows only this.
struct Arg {
  Type type;
  Location location;  ///< with `steps`: of the word they begin from
  /// The text it was read from, "-4@-20(%rbp)"; empty where its source is a declaration.
  std::string source;
  std::shared_ptr<const Declaration> declaration = {};  ///< null: its source knows none
  Needs needs = {};
  bool result = false;  ///< not an argument but the return value, or what it leads to
  /// Not passed itself, but what an argument leads to (ValueOptions).
  bool derived = false;
  /// The steps that lead from `location` to the value; at most USDT_MAX_STEPS.
  std::vector<Step> steps = {};
  /// Of a member: the position in its list of the argument it is a part of, which shows its members.
  std::optional<std::uint8_t> part_of = {};
  /// Of a text that has one: the position in its list of its length in bytes. Of a list (is_list()): of its
  /// ElementCount.
  std::optional<std::uint8_t> length = {};
  std::optional<ElementCount> counts = {};  ///< it is the length of a list
  /// It is an element of a list, or a part of one. Event has no value of what is behind the last element, and questions
  /// no answer; own programs read it all the same, and have to ask for the length themselves.
  std::optional<ElementOf> element = {};
  /// It is a part of one of several alternatives, as variants of Rust's enums are. Event has no value of those that are
  /// not there, and questions no answer. Null: it is always there. (Few are such parts, and others keep no room for
  /// it.)
  std::shared_ptr<const AlternativeOf> alternative = {};
  bool hidden = false;  ///< read for another one's sake, such as a length that nobody asked for
  bool of_end = false;  ///< of a span: of the hit that ends it, and named "end.NAME"

  /// A value can be fetched at a hit; else why_unreadable() says why not.
  [[nodiscard]] bool readable() const noexcept { return !std::holds_alternative<Unreadable>(location); }
  /// Its elements are elsewhere, as many as `length` says; the first ones are among the arguments, with it as their
  /// `part_of`.
  [[nodiscard]] bool is_list() const noexcept { return length && type.kind == TypeKind::array; }
  /// Empty: it is readable.
  [[nodiscard]] std::string_view why_unreadable() const noexcept {
    const auto* unreadable = std::get_if<Unreadable>(&location);
    return unreadable ? std::string_view(unreadable->reason) : std::string_view();
  }
  /// As declared, "skb" and "struct sk_buff *"; empty where that is not known.
  [[nodiscard]] std::string_view name() const noexcept { return declaration ? declaration->name : std::string_view(); }
  /// The same of its type.
  [[nodiscard]] std::string_view c_type() const noexcept {
    return declaration ? declaration->type : std::string_view();
  }
};

/// An argument by its number, or by its name (Arg::name; "retval": the return value of a function).
using ArgName = std::variant<std::uint8_t, std::string>;

/// How a member is called within what shows it (Arg::part_of): "port", "[0]"; of any other argument its name.
[[nodiscard]] std::string_view label_of(const std::vector<Arg>& args, std::size_t n) noexcept;

/// The name of value `bits` of an enum argument; empty: it has none.
[[nodiscard]] std::string_view enumerator_name(const Arg& arg, std::uint64_t bits) noexcept;

}  // namespace v1
}  // namespace usdt
