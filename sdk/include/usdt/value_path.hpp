// SPDX-License-Identifier: BSD-2-Clause
// Paths to values that arguments lead to: parse_value_path() reads "req->peer.port", ValueOptions::paths (plan.hpp)
// asks for its value at each hit, and expressions are made of such paths.
//     auto path = usdt::parse_value_path("req->peer.port");
//     auto plan = usdt::plan_attach(*selection, kernel, {.values = {.paths = {*path}}});
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Describes one operator on the way from an argument to a value.
struct PathStep {
  /// Tells which operator it is.
  enum class Kind : std::uint8_t {
    member,          ///< ".name": of a struct, union or class
    pointer_member,  ///< "->name": of the one that a pointer points to
    element,         ///< "[index]": of an array, or of what a pointer points to, before it if negative
    dereference,     ///< "*": what a pointer points to
    address_of,      ///< "&": where an object is in memory
    cast,            ///< "(name)": the bits, taken for another type
    size_of,         ///< "sizeof": no value but its bytes; the last step
    /// "buf": the bytes of a struct or array, else those that a pointer points to: as many as the value called `name`
    /// says, or `index`; 0: as many as the object has. Event::text() has them. The last step; paths do not write it.
    bytes,
    /// "ntop": the bytes of a struct in_addr or in6_addr, or of what a pointer to one points to; any other number
    /// itself. The last step; paths do not write it.
    address,
    distance,  ///< "- p": how far behind the address that the path `name` leads to; the last step
  };
  Kind kind = Kind::member;
  std::string name = {};     ///< of the member; of the type; of the value that says how many bytes
  std::uint64_t index = 0;   ///< of an element; of a negative one its two's complement
  std::uint32_t column = 0;  ///< zero-based, where it is in the text
};

/// Names a value by the way to it: "req->peer.port", "*count", "p->a.b[2]", "((struct foo *)arg1)->x",
/// "&((char *)arg1)[24]", "sizeof(struct foo)", "end - p".
struct ValuePath {
  std::string text;             ///< as written, without blanks at the ends
  ArgName root;                 ///< the argument it begins from; of size_of perhaps a type: "struct foo"
  std::vector<PathStep> steps;  ///< in the order they are taken; none: the argument itself
};

/// Reads a path, written as in C with the operators above and parentheses. Casts are to pointers, or name a struct,
/// union or enum by its keyword. A member may be called by a number, which Rust has ("pair.0" is __0). Two paths with a
/// "-" in between are the distance from the second address to the first, in bytes. Errors: syntax with the column;
/// limit (more than 64 operators).
[[nodiscard]] Result<ValuePath> parse_value_path(std::string_view text);

/// Returns the way to the distance from the address that `from` leads to, to the one that `end` leads to: "end - from".
[[nodiscard]] ValuePath distance_between(ValuePath end, const ValuePath& from);

}  // namespace v1
}  // namespace usdt
