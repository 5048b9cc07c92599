// SPDX-License-Identifier: BSD-2-Clause
// Values of functions without known types, by the calling conventions alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/arch.hpp"
#include "usdt/arg.hpp"
#include "usdt/machine.hpp"
#include "usdt/type.hpp"

namespace usdt::resolve {

/// Unsigned words, the arguments named arg0, arg1...: what is there, whether or not the function has so many.
struct UntypedValues {
  std::vector<Arg> args;
  std::optional<Arg> result;
};

/// One of these words.
[[nodiscard]] Arg untyped_word(const arch::Arch& arch, std::string name, Location location);
/// Returns the values of a function of a program: its argument registers; on i386 the first words of its stack.
[[nodiscard]] UntypedValues untyped_function(Machine machine);

/// Returns the values of a function with types that a person says, where the calling convention passes such values; the
/// result stays a word.
[[nodiscard]] UntypedValues hand_typed_function(Machine machine, std::span<const Type> types);

}  // namespace usdt::resolve
