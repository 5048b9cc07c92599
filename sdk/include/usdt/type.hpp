// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace usdt {
inline namespace v1 {

/// What the bytes of a value mean, as far as its source says: a note knows numbers only.
enum class TypeKind : std::uint8_t {
  integer,
  floating,     ///< IEEE 754: _Float16, float, double
  boolean,      ///< true or false
  enumeration,  ///< Declaration::enumerators has its names
  pointer,
  text,       ///< a pointer to characters
  structure,  ///< a struct, union or class itself, which is no number: its members are
  array,      ///< the elements themselves, likewise
};

/// The type of a value: the same for every source of one.
struct Type {
  std::uint32_t size = 0;  ///< bytes; any number, of which only 1, 2, 4 and 8 (floating: 2, 4 and 8) can be read
  bool is_signed = false;  ///< of numbers that are not floating
  TypeKind kind = TypeKind::integer;

  /// Of kind floating.
  [[nodiscard]] bool is_float() const noexcept { return kind == TypeKind::floating; }
  friend bool operator==(const Type&, const Type&) = default;
};

/// "i32", "u64", "f64", "u8"; "?128" for sizes no value type has: the signature column of usdt-list.
[[nodiscard]] std::string type_name(const Type& type);

/// Which values of a discriminant stand for one of several alternatives: a variant of a Rust enum, what a std::variant
/// holds.
struct AlternativeValues {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges = {};  ///< the first and the last one of each
  bool others = false;                                               ///< all but those

  /// Whether `bits`, extended by zeros, is one of them.
  [[nodiscard]] bool has(std::uint64_t bits) const noexcept {
    for (const auto& [first, last] : ranges)
      if (first <= bits && bits <= last) return !others;
    return others;
  }
  friend bool operator==(const AlternativeValues&, const AlternativeValues&) = default;
};

/// A name for one value of an enum.
struct Enumerator {
  std::string name;
  std::uint64_t bits = 0;  ///< the low bytes count, as many as the enum has

  friend bool operator==(const Enumerator&, const Enumerator&) = default;
};

/// How an argument was declared, where its source knows (kernel BTF, DWARF, a provider's note).
struct Declaration {
  std::string name;                          ///< "skb"; empty: a return value
  std::string type;                          ///< as C: "struct sk_buff *"
  std::vector<Enumerator> enumerators = {};  ///< of an enum
  std::string meaning = {};                  ///< what its number stands for, as docs/provider-note.md has it: "errno"
  std::string unit = {};                     ///< of what its number counts: "us"

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

}  // namespace v1
}  // namespace usdt
