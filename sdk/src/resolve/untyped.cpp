// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/untyped.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace usdt::resolve {
namespace {

/// As many as x86-64 passes in registers.
constexpr std::size_t kStackWords = 6;

}  // namespace

Arg untyped_word(const arch::Arch& arch, std::string name, Location location) {
  return Arg{.type = {.size = arch.word_size},
             .location = std::move(location),
             .source = {},
             .declaration = std::make_shared<const Declaration>(Declaration{std::move(name), {}, {}})};
}

UntypedValues untyped_function(Machine machine) {
  const arch::Arch& arch = arch::for_machine(machine);
  UntypedValues values;
  const auto add = [&](Location location) {
    values.args.push_back(untyped_word(arch, fmt::format("arg{}", values.args.size()), std::move(location)));
  };
  for (const RegisterId id : arch.user_calls.arguments) add(Register{.id = id});
  // i386 passes them on the stack, behind the return address.
  for (std::size_t i = 0; arch.user_calls.arguments.empty() && i < kStackWords; ++i)
    add(Memory{.displacement = arch.entry_frame + i * arch.word_size,
               .base = arch.stack_pointer,
               .wraps_at_32_bits = machine == Machine::i386});
  values.result = untyped_word(arch, {}, Register{.id = arch.user_calls.result});
  values.result->result = true;
  return values;
}

}  // namespace usdt::resolve
