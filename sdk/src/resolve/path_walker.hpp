// SPDX-License-Identifier: BSD-2-Clause
// Paths, from an argument of a point to the object that their steps lead to. Private to the library.
#pragma once

#include <cstddef>
#include <vector>

#include "resolve/object.hpp"
#include "usdt/arg.hpp"
#include "usdt/result.hpp"
#include "usdt/type_graph.hpp"
#include "usdt/value_path.hpp"

namespace usdt::resolve {

/// The arguments of a point with what is known of their types.
struct TypedArgs {
  std::vector<Arg> args;
  std::vector<TypeId> types = {};               ///< as long as `args`, or empty
  std::vector<std::vector<Piece>> pieces = {};  ///< as long as `args`, or empty: FunctionSignature::pieces
};

/// Walks paths from the arguments of a point.
class PathWalker {
 public:
  /// Remembers the arguments as they are: what is shown of one may take its place in the list. `types` lives as long.
  PathWalker(const TypedArgs& list, const ObjectTypes& types) : roots_(list), types_(types) {}

  /// The object that argument `n` is.
  [[nodiscard]] Object object_of(std::size_t n) const;
  /// Whether argument `n`, if there is such an argument, is the one that `path` begins from.
  [[nodiscard]] bool is_root(const ValuePath& path, std::size_t n) const;
  /// The type of the argument that `path` begins from, as its site has it.
  [[nodiscard]] Type root_type(const ValuePath& path) const;
  /// The object that `path` begins from. Errors: not_found.
  [[nodiscard]] Result<Object> root_of(const ValuePath& path) const;
  /// The object that all steps of `path` lead to. Errors: those of root_of() and take_step().
  [[nodiscard]] Result<Object> end_of(const ValuePath& path) const { return walk(path, path.steps.size()); }
  /// The object, no reference, that the last step of `path` is about.
  [[nodiscard]] Result<Object> before_last_step(const ValuePath& path) const;

 private:
  [[nodiscard]] Result<Object> walk(const ValuePath& path, std::size_t steps) const;

  TypedArgs roots_;
  const ObjectTypes& types_;
};

}  // namespace usdt::resolve
