// SPDX-License-Identifier: BSD-2-Clause
// The type of a value, from whatever source: Type is its size, sign and kind, Declaration has the names that the source
// gives, type_name() prints a type in short form ("i32"). TypeGraph (type_graph.hpp) tells what types are made of.
// Threads: plain values that own their strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace usdt {
inline namespace v1 {

/// Tells what the bytes of a value mean, as far as its source says: a note knows numbers only.
enum class TypeKind : std::uint8_t {
  integer,
  floating,     ///< IEEE 754: _Float16, float, double
  boolean,      ///< true or false
  enumeration,  ///< Declaration::enumerators has its names
  pointer,
  text,       ///< a pointer to characters
  structure,  ///< a struct, union or class itself, which is no number: its members are
  array,      ///< the elements themselves, which are no number either
};

/// Describes the type of a value in one way, whatever source it comes from.
struct Type {
  std::uint32_t size = 0;  ///< bytes; any number, of which only 1, 2, 4 and 8 (floating: 2, 4 and 8) can be read
  bool is_signed = false;  ///< of numbers that are not floating
  TypeKind kind = TypeKind::integer;

  /// Returns whether the kind is TypeKind::floating.
  [[nodiscard]] bool is_float() const noexcept { return kind == TypeKind::floating; }
  friend bool operator==(const Type&, const Type&) = default;
};

/// Returns "i32", "u64", "f64", "u8", as in the signature column of usdt-list; "?128" for sizes in bits that no value
/// type has.
[[nodiscard]] std::string type_name(const Type& type);

/// Lists the values of a discriminant that stand for one of several alternatives: for a variant of a Rust enum, or for
/// what a std::variant holds.
struct AlternativeValues {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges = {};  ///< the first and the last one of each
  bool others = false;                                               ///< all but those

  /// Returns whether `bits`, a value of the discriminant extended by zeros, stands for this alternative.
  [[nodiscard]] bool has(std::uint64_t bits) const noexcept {
    for (const auto& [first, last] : ranges)
      if (first <= bits && bits <= last) return !others;
    return others;
  }
  friend bool operator==(const AlternativeValues&, const AlternativeValues&) = default;
};

/// Names one value of an enum.
struct Enumerator {
  std::string name;
  std::uint64_t bits = 0;  ///< the low bytes count, as many as the enum has

  friend bool operator==(const Enumerator&, const Enumerator&) = default;
};

/// Holds how an argument was declared, where its source knows (kernel BTF, DWARF, a provider's note).
struct Declaration {
  std::string name;                          ///< "skb"; empty: a return value
  std::string type;                          ///< as C: "struct sk_buff *"
  std::vector<Enumerator> enumerators = {};  ///< of an enum
  std::string meaning = {};                  ///< the meaning of its number, as docs/provider-note.md has it: "errno"
  std::string unit = {};                     ///< the unit of its number: "us"

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

}  // namespace v1
}  // namespace usdt
