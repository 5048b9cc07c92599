// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/untyped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "arch/user_values.hpp"

namespace usdt::resolve {
namespace {

/// As many as x86-64 passes in registers.
constexpr std::size_t kStackWords = 6;

arch::UserShape shape_of(const Type& type, const arch::Arch& arch) {
  using arch::Scalar;
  const auto kind = type.is_float() ? Scalar::Kind::floating : Scalar::Kind::integer;
  return {.kind = arch::UserShape::Kind::scalar,
          .size = type.size,
          .alignment = arch.number_alignment(type.size),
          .scalars = {{.kind = kind, .offset = 0, .size = type.size}}};
}

/// The name that parse_types() reads as this type.
std::string hand_type_name(const Type& type) {
  switch (type.kind) {
    case TypeKind::text:
      return "str";
    case TypeKind::pointer:
      return "ptr";
    case TypeKind::boolean:
      return "bool";
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::enumeration:
    case TypeKind::structure:
    case TypeKind::array:
      break;
  }
  return type_name(type);
}

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
               .wraps_at_32_bits = arch.wraps_at_32_bits});
  values.result = untyped_word(arch, {}, Register{.id = arch.user_calls.result});
  values.result->result = true;
  return values;
}

UntypedValues hand_typed_function(Machine machine, std::span<const Type> types) {
  const arch::Arch& arch = arch::for_machine(machine);
  UntypedValues values = untyped_function(machine);
  values.args.clear();
  arch::UserPlaces places(arch, {.kind = arch::UserShape::Kind::nothing, .scalars = {}});
  for (const Type& type : types) {
    arch::UserValue value = arch::value_at(arch, places.next(shape_of(type, arch)), type);
    values.args.push_back({.type = type,
                           .location = std::move(value.location),
                           .source = {},
                           .declaration = std::make_shared<const Declaration>(
                               Declaration{fmt::format("arg{}", values.args.size()), hand_type_name(type), {}})});
  }
  return values;
}

}  // namespace usdt::resolve
