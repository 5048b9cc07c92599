// SPDX-License-Identifier: BSD-2-Clause
// The types of a file or a kernel as a graph: TypeGraph::find() looks a type up by name, TypeGraph::info() says what it
// is, TypeGraph::members() what it is made of. file_types() (probe_file.hpp) and kernel_types() (kernel.hpp) return
// one.
//     auto types = usdt::kernel_types();
//     auto members = (*types)->members(*(*types)->find("struct file"));
// Threads: all functions are const, and several threads may call them at once. A TypeId belongs to its graph alone.
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

/// Names a type of one TypeGraph; it means nothing to another graph. `none`: void, or a type that is not known.
enum class TypeId : std::uint32_t { none = 0xffffffff };

/// Describes a part of a number that is read in several parts.
struct NumberPart {
  std::string name;          ///< "low", "high"; "real", "imaginary"
  std::uint64_t offset = 0;  ///< bytes from the number's start
  Type type;                 ///< of a size that can be read
};

/// Describes a type, behind its typedefs and qualifiers.
struct TypeInfo {
  Type type;                     ///< size 0: not known, or only declared
  std::string text;              ///< as people write it: "const struct sockaddr *", "net::Server"
  TypeId target = TypeId::none;  ///< the type that a pointer or reference leads to; the type of an array's elements
  std::optional<std::uint64_t> count;  ///< of arrays: elements; none: not declared ("char name[]")
  bool reference = false;              ///< a pointer in memory, which source text means as what it refers to
  bool is_union = false;               ///< of kind structure
  bool is_char = false;                ///< a character, or an element that text is made of
  bool swapped = false;                ///< a number whose byte order in memory is not the machine's
  /// The parts that a number of 10 to 16 bytes, or a complex one, is read by; empty: it is read as a whole.
  std::vector<NumberPart> parts = {};
  std::string no_number = {};  ///< why values of it are not shown: "a decimal number"; empty: nothing is against it
};

/// Says of a member of a variant record that it is there only while another member, the discriminant, has certain
/// values. The discriminant need not be among the members.
struct MemberVariant {
  TypeId type = TypeId::none;  ///< of the discriminant
  std::uint64_t offset = 0;    ///< its place in the struct
  AlternativeValues values;    ///< the values of the discriminant while the member is there
  friend bool operator==(const MemberVariant&, const MemberVariant&) = default;
};

/// Describes a member of a struct, union or class. A member without a name is a base class, or a struct or union whose
/// members count as the outer one's own.
struct MemberInfo {
  std::string name;
  TypeId type = TypeId::none;
  std::uint64_t offset = 0;  ///< bytes from the start of the outer one
  std::uint8_t bits = 0;     ///< width of a bit-field; 0: none
  /// How many bits of the (little-endian) number at `offset` are below the bit-field; in a big-endian number
  /// (TypeInfo::swapped) how many are above it. The number has the size of the type, holds the whole bit-field and is
  /// within the struct; only in packed structs may it reach behind either.
  std::uint8_t shift = 0;
  bool is_base = false;                       ///< a base class
  bool is_virtual = false;                    ///< a virtual base class: its offset is known only at run time
  std::optional<MemberVariant> variant = {};  ///< it is there only at times
};

/// Describes a type that the value of an interface may have (Go).
struct DynamicType {
  std::string name;  ///< "*errors.errorString"
  TypeId type = TypeId::none;
  std::uint64_t address = 0;  ///< the address that stands for it in an interface

  friend bool operator==(const DynamicType&, const DynamicType&) = default;
};

/// Holds the types of one source, the debug information of a file or the BTF of a kernel, as a graph that steps to
/// members can follow. It bounds what others wrote: lists end, sizes are those declared. All functions are const, and
/// several threads may call them at once.
class TypeGraph {
 public:
  TypeGraph() = default;
  TypeGraph(const TypeGraph&) = delete;
  TypeGraph& operator=(const TypeGraph&) = delete;
  virtual ~TypeGraph() = default;

  /// Returns what a type is, behind its typedefs and qualifiers. Errors: malformed (typedefs without end ...).
  [[nodiscard]] virtual Result<TypeInfo> info(TypeId type) const = 0;
  /// Returns the members of a struct, union or class in the order of their declaration, static ones left out; none for
  /// other types. Errors: malformed, limit.
  [[nodiscard]] virtual Result<std::vector<MemberInfo>> members(TypeId type) const = 0;
  /// Returns the names of an enum's values.
  [[nodiscard]] virtual std::vector<Enumerator> enumerators(TypeId type) const = 0;
  /// Returns the types that a class template was given, in order, those of a pack among them. Empty: there are none, or
  /// the source does not tell.
  [[nodiscard]] virtual std::vector<TypeId> template_types(TypeId) const { return {}; }
  /// Returns the types of a Go program that interfaces may have, the best known first and a few hundred at most.
  /// `errors`: only types with a method Error. Errors: not_supported (with what is missing), stopped.
  [[nodiscard]] virtual Result<std::vector<DynamicType>> dynamic_types(bool errors) const {
    static_cast<void>(errors);
    return std::vector<DynamicType>();
  }
  /// Finds the complete types of that name, with or without its keyword: "struct file", "file", "net::Server", "u32",
  /// "unsigned int"; without its scopes ("Server") if none has it with them. Returns several types if they differ; what
  /// a bare name means in C, a typedef, comes first. The first call reads all of the source. Errors: not_found (the
  /// message names near ones), malformed, limit, stopped.
  [[nodiscard]] virtual Result<std::vector<TypeId>> find_all(std::string_view name) const = 0;
  /// Returns the first type of find_all(); errors as there.
  [[nodiscard]] Result<TypeId> find(std::string_view name) const {
    return find_all(name).map([](const std::vector<TypeId>& all) { return all.front(); });
  }
  /// Returns the type that the unit of source which uses `beside` means by `name`: its own type of that name, or else
  /// the one of all other units if they do not differ. `beside` none: the unit is not known. Errors: those of
  /// find_all(), and not_supported (they differ).
  [[nodiscard]] virtual Result<TypeId> find_beside(std::string_view name, TypeId beside) const {
    static_cast<void>(beside);
    return find(name);
  }
};

}  // namespace v1
}  // namespace usdt
