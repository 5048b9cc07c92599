// SPDX-License-Identifier: BSD-2-Clause
// What values are: their size and kind, and their type as people write it. Private to dwarf/ and locate/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "dwarf/base_types.hpp"
#include "dwarf/die.hpp"
#include "dwarf/names.hpp"

namespace usdt::dwarf {

/// DIEs looked at in one type, and enumerators believed of one enum.
constexpr std::uint64_t kMostOfType = 16384;
/// How deep types are followed, and declarations spelt; hand-written ones have a handful of stars and parentheses.
constexpr unsigned kDeepestType = 24;

/// The language of a unit, as far as it matters here.
enum class Language : std::uint8_t {
  c,      ///< names of structs want their keyword
  cpp,    ///< and what is called as C: classes may be passed by reference
  go,     ///< of its own compiler
  other,  ///< has a calling convention of its own
};
[[nodiscard]] Language language_of(Dwarf_Die die);

/// Describes types by their DIEs alone: a struct that is only declared stays so. `dimension` is how many of an array's
/// first dimensions are left out.
class Types {
 public:
  /// `has_quads` as of base_type().
  Types(ScopeNames& names, const arch::Arch& arch, std::function<bool()> has_quads)
      : names_(names), arch_(arch), has_quads_(std::move(has_quads)) {}

  /// Size, sign and kind; a type that is not known has size 0.
  [[nodiscard]] Type type(const std::optional<Dwarf_Die>& die, unsigned dimension = 0) const;
  /// The same, and what else is to be known of a number to read it.
  [[nodiscard]] BaseType number_of(const std::optional<Dwarf_Die>& die, unsigned dimension = 0) const;
  /// "const struct sockaddr *", "int (*)(void *)", "net::Server &"; "void" for none.
  [[nodiscard]] std::string text(const std::optional<Dwarf_Die>& die, unsigned dimension = 0) const;
  /// The names of an enum's values.
  [[nodiscard]] std::vector<Enumerator> enumerators(const std::optional<Dwarf_Die>& die) const;
  /// The bytes of a type without typedefs and qualifiers. `depth`: how many others it is in.
  [[nodiscard]] std::optional<std::uint64_t> size_of(Dwarf_Die resolved, unsigned depth = 0,
                                                     unsigned dimension = 0) const;
  /// A character, or an element that text is made of.
  [[nodiscard]] bool is_char(const std::optional<Dwarf_Die>& die) const;

 private:
  [[nodiscard]] std::string spell(const std::optional<Dwarf_Die>& die, std::string inner, unsigned depth) const;
  [[nodiscard]] std::string spell_named(Dwarf_Die die) const;
  [[nodiscard]] std::string spell_parameters(Dwarf_Die function, unsigned depth) const;

  ScopeNames& names_;
  const arch::Arch& arch_;
  std::function<bool()> has_quads_;
};

/// A result of a Go function, which may have several.
struct GoResult {
  Dwarf_Die die;
  std::string name;          ///< "err"; "r0" where the source has none
  std::uint64_t offset = 0;  ///< in a struct that had them as members
};
[[nodiscard]] std::vector<GoResult> go_results(Dwarf_Die function, const Types& types);
/// "(int, error)".
[[nodiscard]] std::string go_results_text(const std::vector<GoResult>& results, const Types& types);
/// Whether `parameter` of a Go function is one of its results.
[[nodiscard]] bool is_go_result(Dwarf_Die parameter);

/// Whether a tag is that of a struct, a union or a class.
[[nodiscard]] bool is_structure(int tag);
/// Whether a tag is that of a pointer or a reference.
[[nodiscard]] bool is_pointer(int tag);
/// How many elements an array has in each dimension; nothing for one that is not declared.
[[nodiscard]] std::vector<std::optional<std::uint64_t>> dimensions(Dwarf_Die array);
/// How many elements an array has behind its first `dimension` dimensions; nothing where one has no bound.
[[nodiscard]] std::optional<std::uint64_t> array_count(Dwarf_Die array, unsigned dimension = 0);

/// Why nothing is read of an array: something at run time decides where its elements are. Empty: nothing does.
[[nodiscard]] std::string why_no_array(Dwarf_Die array);

/// `die` without typedefs and qualifiers, and of one whose body is in a type unit that; nothing: void, or a chain
/// without end.
[[nodiscard]] std::optional<Dwarf_Die> resolved(std::optional<Dwarf_Die> die);

}  // namespace usdt::dwarf
