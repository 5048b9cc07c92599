// SPDX-License-Identifier: BSD-2-Clause
// Finds where the values of a function are: its parameters, its result, its local variables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "usdt/arg.hpp"
#include "usdt/result.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::locate {

struct State;

/// The parameters and the result of a function, as far as they are known at one of its instances.
struct Signature {
  /// {Type, Location} at the very pc of the instance. What cannot be read is unreadable with the reason and keeps its
  /// place. A value that is no number (TypeKind::structure, or wider than 8 bytes) is unreadable itself.
  std::vector<Arg> args;
  /// As long as `args`: where the bytes of each are, as far as that is known, whatever their number; a step to a member
  /// begins there. Empty for one that is not known, and for one in a single place that its Arg names.
  std::vector<std::vector<Piece>> pieces;
  std::vector<TypeId> types;  ///< of DebugInfo::types(); as long as `args`
  /// After the return instruction. Absent: void, noreturn, or an inlined instance, which does not return.
  std::optional<Arg> result;
  std::vector<Piece> result_pieces;  ///< as `pieces`
  TypeId result_type = TypeId::none;
  bool varargs = false;  ///< more arguments follow, of which nothing is known
};

/// Finds signatures of functions of one file. Move-only. All functions may be called from several threads, with others
/// that take its DebugInfo; one works at a time.
class Signatures {
 public:
  /// `info` may be gone afterwards.
  explicit Signatures(const dwarf::DebugInfo& info);
  Signatures(Signatures&&) noexcept;
  Signatures& operator=(Signatures&&) noexcept;
  ~Signatures();

  /// Parameters and result of `function` at `instance`, which is one of its own; its `pc` may be another address of the
  /// same code, such as body_of(). Errors: not_found (it is written in assembler), invalid_argument, stopped, limit.
  [[nodiscard]] Result<Signature> of(const dwarf::FunctionInfo& function, const dwarf::Instance& instance) const;

  /// As of(), without the result, and with the local variables that are in scope at the instance's `pc` and declared
  /// before line `line`: those behind it have no value yet.
  [[nodiscard]] Result<Signature> with_variables(const dwarf::FunctionInfo& function, const dwarf::Instance& instance,
                                                 std::uint32_t line) const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace usdt::locate
