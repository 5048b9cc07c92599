// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"
#include "usdt/type.hpp"

namespace usdt {
inline namespace v1 {

/// A type of one TypeGraph; means nothing to another one. `none`: void, or a type that is not known.
enum class TypeId : std::uint32_t { none = 0xffffffff };

/// A part of a number that is read in several parts.
struct NumberPart {
  std::string name;          ///< "low", "high"; "real", "imaginary"
  std::uint64_t offset = 0;  ///< bytes from the number's start
  Type type;                 ///< of a size that can be read
};

/// What a type is, behind its typedefs and qualifiers.
struct TypeInfo {
  Type type;                           ///< size 0: not known, or only declared
  std::string text;                    ///< as people write it: "const struct sockaddr *", "net::Server"
  TypeId target = TypeId::none;        ///< of pointers and references: of what; of arrays: of their elements
  std::optional<std::uint64_t> count;  ///< of arrays: elements; none: not declared ("char name[]")
  bool reference = false;              ///< a pointer in memory, which source text means as what it refers to
  bool is_union = false;               ///< of kind structure
  bool is_char = false;                ///< a character, or an element that text is made of
  bool swapped = false;                ///< a number whose byte order in memory is not the machine's
  /// Of a number of 10 to 16 bytes, or a complex one: what it is read by.
  std::vector<NumberPart> parts = {};
  std::string no_number = {};  ///< why values of it are not shown: "a decimal number"; empty: nothing is against it
};

/// That a member is there only while another one, which need not be told of, has certain values: of a variant record.
struct MemberVariant {
  TypeId type = TypeId::none;  ///< of the discriminant
  std::uint64_t offset = 0;    ///< its place in the struct
  AlternativeValues values;    ///< with which the member is there
  friend bool operator==(const MemberVariant&, const MemberVariant&) = default;
};

/// A member of a struct, union or class. One that has no name is a struct or union whose members count as the outer
/// one's own, or a base class.
struct MemberInfo {
  std::string name;
  TypeId type = TypeId::none;
  std::uint64_t offset = 0;  ///< bytes from the start of the outer one
  std::uint8_t bits = 0;     ///< width of a bit-field; 0: none
  /// Bits of the (little-endian) number at `offset` that are below the bit-field's; of a big-endian one
  /// (TypeInfo::swapped) those above it. That number is of the size of the type, in which the bit-field is whole, and
  /// within the struct; only in packed structs may it reach behind either.
  std::uint8_t shift = 0;
  bool is_base = false;                       ///< a base class
  bool is_virtual = false;                    ///< a virtual base class: its offset is known only at run time
  std::optional<MemberVariant> variant = {};  ///< it is there only at times
};

/// A type that the value of an interface may have (Go).
struct DynamicType {
  std::string name;  ///< "*errors.errorString"
  TypeId type = TypeId::none;
  std::uint64_t address = 0;  ///< the address that stands for it in an interface

  friend bool operator==(const DynamicType&, const DynamicType&) = default;
};

/// The types of one source, the debug information of a file or the BTF of a kernel, as a graph that steps to members
/// can follow. What others wrote is bounded here: lists end, sizes are those declared. All functions are const and may
/// be called from several threads.
class TypeGraph {
 public:
  TypeGraph() = default;
  TypeGraph(const TypeGraph&) = delete;
  TypeGraph& operator=(const TypeGraph&) = delete;
  virtual ~TypeGraph() = default;

  /// Errors: malformed (typedefs without end ...).
  [[nodiscard]] virtual Result<TypeInfo> info(TypeId type) const = 0;
  /// In the order of their declaration; none of what is no struct, union or class. Static members are none. Errors:
  /// malformed, limit.
  [[nodiscard]] virtual Result<std::vector<MemberInfo>> members(TypeId type) const = 0;
  /// The names of an enum's values.
  [[nodiscard]] virtual std::vector<Enumerator> enumerators(TypeId type) const = 0;
  /// The types that a class template was given, in order, those of a pack among them. Empty: none, or it is not told.
  [[nodiscard]] virtual std::vector<TypeId> template_types(TypeId) const { return {}; }
  /// Go: the types of the program that interfaces may have, the best known first and a few hundred at most; `errors`:
  /// those with a method Error. Errors: not_supported (with what is missing), stopped.
  [[nodiscard]] virtual Result<std::vector<DynamicType>> dynamic_types(bool errors) const {
    static_cast<void>(errors);
    return std::vector<DynamicType>();
  }
  /// The complete types of that name, with or without its keyword: "struct file", "file", "net::Server", "u32",
  /// "unsigned int"; without its scopes ("Server") where none has it with them. Several: they differ; what a bare name
  /// means in C, a typedef, comes first. Reads all of the source at first. Errors: not_found (the message names near
  /// ones), malformed, limit, stopped.
  [[nodiscard]] virtual Result<std::vector<TypeId>> find_all(std::string_view name) const = 0;
  /// The first of these.
  [[nodiscard]] Result<TypeId> find(std::string_view name) const {
    return find_all(name).map([](const std::vector<TypeId>& all) { return all.front(); });
  }
  /// What the source that uses `beside` means by `name`: the type of its own unit, or else the one of all others if
  /// they do not differ. `none`: it is not known which unit. Errors: of find_all(), and not_supported (they differ).
  [[nodiscard]] virtual Result<TypeId> find_beside(std::string_view name, TypeId beside) const {
    static_cast<void>(beside);
    return find(name);
  }
};

}  // namespace v1
}  // namespace usdt
