// SPDX-License-Identifier: BSD-2-Clause
// Adds to the arguments of a point what they lead to: members, elements, what pointers point to, texts, as arguments of
// their own. The types may be those of DWARF or of BTF.
//     paths (path_walker) -- steps (path_step) --> Object -- show_object --> ValueList
// Texts, lists, alternatives and interfaces of libraries have a file each (known_*.cpp), which do not know each other,
// and show their parts by a ShowPart.
#pragma once

#include <cstddef>
#include <string>

#include "resolve/path_walker.hpp"
#include "resolve/show_object.hpp"
#include "resolve/value_list.hpp"
#include "usdt/machine.hpp"

namespace usdt::resolve {

/// Appends to a list of arguments what paths from its first ones lead to.
class MemberAdder {
 public:
  /// `types`: of the arguments; null: not known, so that nothing but the arguments themselves is found. All must live
  /// as long.
  MemberAdder(TypedArgs& list, const TypeGraph* types, Machine machine, const Depth& depth);
  MemberAdder(const MemberAdder&) = delete;
  MemberAdder& operator=(const MemberAdder&) = delete;

  /// The value that `path` names, by that name (Arg::name). What cannot be read is unreadable with the reason. A struct
  /// or array is followed by its members (Arg::part_of), a text by its length where it has one (Arg::length). Errors:
  /// not_found (there is no such argument here), invalid_argument (the types do not have what is asked for, with the
  /// column), limit (no room for more arguments).
  [[nodiscard]] Result<void> add(const ValuePath& path);
  /// Members, elements and texts of argument `n` itself, where it is a struct, an array, or a text or list that is
  /// known: the argument's own place in the list shows them from then on. What a reference refers to is shown where it
  /// is a number, a pointer, a text or a list, or was `asked` for: other objects may be large.
  void open(std::size_t n, bool asked);
  /// Why the bytes that `path` points to are no text: they are an object that has one. Empty: nothing is against it.
  [[nodiscard]] std::string why_no_text(const ValuePath& path) const;

 private:
  [[nodiscard]] Result<TypeRef> type_of_size(const ValuePath& path) const;
  [[nodiscard]] Result<void> append_size(const ValuePath& path);

  TypedArgs& list_;
  ObjectTypes types_;
  PathWalker paths_;
  ValueList values_;
  ObjectShower shower_;
};

}  // namespace usdt::resolve
