// SPDX-License-Identifier: BSD-2-Clause
// Arg, the one description of an argument or return value that every reader makes and every later stage takes: a Type,
// a Location, and the names and relations that the source knows. Arg::readable(), Arg::why_unreadable() and Arg::name()
// tell what can be had of it.
//     for (const usdt::Arg& arg : decoder.decode(site))
//       print(arg.name(), usdt::type_name(arg.type), arg.readable() ? "" : arg.why_unreadable());
// Threads: plain values that own or share their strings; the shared ones never change.
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

/// Names what was needed to find a value, beyond the text of its note.
enum class Need : std::uint8_t {
  symbol = 1,        ///< the address of a symbol of the file
  got = 2,           ///< its global offset table
  segment_base = 4,  ///< the thread's segment
  reg_pair = 8,      ///< the compiler's order of registers
};
/// Holds a set of Need.
class Needs {
 public:
  constexpr Needs() = default;
  /// Makes the set of the needs in the list.
  constexpr Needs(std::initializer_list<Need> needs) noexcept {
    for (const Need need : needs) add(need);
  }
  /// Adds `need`, which may be there already.
  constexpr void add(Need need) noexcept { bits_ = static_cast<std::uint8_t>(bits_ | static_cast<std::uint8_t>(need)); }
  /// Returns whether `need` is in the set.
  [[nodiscard]] constexpr bool has(Need need) const noexcept { return (bits_ & static_cast<std::uint8_t>(need)) != 0; }
  /// Returns whether the set has no need.
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
  /// The position of the argument that is the first element's address, in lists that keep two addresses. The argument
  /// that counts is then the address behind the last element, and the number is how many elements are in between.
  std::optional<std::uint8_t> first = {};
  friend bool operator==(const ElementCount&, const ElementCount&) = default;
};

/// Says of an argument that it is an element of a list, which is there only while the list is long enough.
struct ElementOf {
  std::uint8_t length = 0;  ///< the position of the list's ElementCount
  std::uint64_t index = 0;  ///< of the element, from 0
  friend bool operator==(const ElementOf&, const ElementOf&) = default;
};

/// Says of an argument that it is there only while a discriminant has certain values.
struct AlternativeOf {
  std::uint8_t discriminant = 0;  ///< its position
  AlternativeValues values = {};  ///< the values of the discriminant while the argument is there
  std::string reason = {};        ///< a text for when it is not there: "shape is no Circle"
  friend bool operator==(const AlternativeOf&, const AlternativeOf&) = default;
};

/// Describes one argument, or the return value, of an attach point, with everything known about it before it is hit:
/// its type, and where its value is. Whatever it was read from, a note, debug information or a prototype of the kernel,
/// every later stage knows only this.
struct Arg {
  Type type;
  Location location;  ///< of the value, or of the word that `steps` begin from
  /// The text it was read from, "-4@-20(%rbp)"; empty where its source is a declaration.
  std::string source;
  std::shared_ptr<const Declaration> declaration = {};  ///< null: its source knows none
  Needs needs = {};
  bool result = false;  ///< it is not an argument but the return value, or what that leads to
  /// It is not passed itself: an argument leads to it (ValueOptions).
  bool derived = false;
  /// The steps that lead from `location` to the value; at most USDT_MAX_STEPS.
  std::vector<Step> steps = {};
  /// The position of the argument that this one is a member of, and that shows its members; nothing: it is no member.
  std::optional<std::uint8_t> part_of = {};
  /// The position of the argument that is the length in bytes of a text, or that has the ElementCount of a list
  /// (is_list()); nothing: a text ends at its NUL.
  std::optional<std::uint8_t> length = {};
  std::optional<ElementCount> counts = {};  ///< it is the length of a list
  /// It is an element of a list, or a part of one. Event has no value of what is behind the last element, and questions
  /// no answer. BPF programs of your own read it regardless, and have to ask for the length themselves.
  std::optional<ElementOf> element = {};
  /// It is a part of one of several alternatives, as variants of Rust's enums are. Event has no value of those that are
  /// not there, and questions no answer. Null: it is always there. (Few are such parts, and others keep no room for
  /// it.)
  std::shared_ptr<const AlternativeOf> alternative = {};
  bool hidden = false;  ///< read for another one's sake, such as a length that nobody asked for
  bool of_end = false;  ///< in a span: it belongs to the hit that ends it, and is named "end.NAME"

  /// Returns whether a value can be fetched at a hit; if not, why_unreadable() says why.
  [[nodiscard]] bool readable() const noexcept { return !std::holds_alternative<Unreadable>(location); }
  /// Returns whether it is a list, whose elements are elsewhere, as many as `length` says. The first elements are among
  /// the arguments, with this one as their `part_of`.
  [[nodiscard]] bool is_list() const noexcept { return length && type.kind == TypeKind::array; }
  /// Returns the reason why no value can be fetched; valid as long as this Arg. Empty: it is readable.
  [[nodiscard]] std::string_view why_unreadable() const noexcept {
    const auto* unreadable = std::get_if<Unreadable>(&location);
    return unreadable ? std::string_view(unreadable->reason) : std::string_view();
  }
  /// Returns the declared name, "skb"; empty: it is not known.
  [[nodiscard]] std::string_view name() const noexcept { return declaration ? declaration->name : std::string_view(); }
  /// Returns the declared type as C writes it, "struct sk_buff *"; empty: it is not known.
  [[nodiscard]] std::string_view c_type() const noexcept {
    return declaration ? declaration->type : std::string_view();
  }
};

/// Names an argument by its number, or by its name (Arg::name; "retval": the return value of a function).
using ArgName = std::variant<std::uint8_t, std::string>;

/// Returns how member `n` of `args` is called within the argument that shows it (Arg::part_of): "port", "[0]". For any
/// other argument returns its name. `n` is below args.size(); the result is valid as long as `args`.
[[nodiscard]] std::string_view label_of(const std::vector<Arg>& args, std::size_t n) noexcept;

/// Returns the name of value `bits` of an enum argument, "BUSY"; empty: the value has none.
[[nodiscard]] std::string_view enumerator_name(const Arg& arg, std::uint64_t bits) noexcept;

}  // namespace v1
}  // namespace usdt
