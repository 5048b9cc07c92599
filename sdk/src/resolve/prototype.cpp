// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/prototype.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arch/kernel_calls.hpp"
#include "btf/names.hpp"
#include "btf/type_graph.hpp"
#include "resolve/untyped.hpp"
#include "resolve/value_size.hpp"
#include "usdt/bpf/spec.h"

namespace usdt::resolve {
namespace {

using btf::ValueClass;

/// MAX_BPF_FUNC_ARGS, include/linux/bpf.h.
constexpr std::uint32_t kMostArguments = USDT_SLOTS;

std::string argument_name(std::string_view name, std::size_t number) {
  return name.empty() ? fmt::format("arg{}", number) : std::string(name);
}

/// As the kernel's own machine has it: BTF says 8 bytes of every pointer's size.
std::uint32_t size_of(const btf::ValueType& type, const arch::Arch& arch) {
  return type.value_class == ValueClass::pointer ? arch.word_size : type.size;
}

TypeKind kind_of(const btf::ValueType& type) {
  switch (type.value_class) {
    case ValueClass::boolean:
      return type.size == 1 ? TypeKind::boolean : TypeKind::integer;
    case ValueClass::enumeration:
      return TypeKind::enumeration;
    case ValueClass::pointer:
      return type.text ? TypeKind::text : TypeKind::pointer;
    case ValueClass::other:
      return type.size != 0 ? TypeKind::floating : TypeKind::integer;
    case ValueClass::none:
    case ValueClass::integer:
    case ValueClass::character:
    case ValueClass::structure:
      break;
  }
  return TypeKind::integer;
}

arch::Shape shape_of(const btf::Types& types, const btf::ValueType& type, const arch::Arch& arch) {
  using Kind = arch::Shape::Kind;
  arch::Shape shape{.kind = Kind::word, .size = size_of(type, arch)};
  // BTF_KIND_FLOAT: what else is `other` has no size.
  if (type.value_class == ValueClass::other) shape.kind = type.size != 0 ? Kind::floating : Kind::unknown;
  if (type.value_class == ValueClass::none) shape.kind = Kind::unknown;
  if (type.value_class != ValueClass::structure) return shape;
  const btf::Layout layout = types.layout(type.type_id);
  shape.kind = Kind::structure;
  shape.alignment = layout.alignment;
  shape.packed = layout.packed;
  shape.floats = layout.floats;
  shape.blocks = layout.blocks;
  return shape;
}

/// Why values of this type cannot be read wherever they are; empty: they can.
std::string unreadable_type(const btf::ValueType& type, std::uint32_t size) {
  if (type.value_class == ValueClass::structure) return fmt::format("struct by value ({} bytes)", size);
  if (type.value_class == ValueClass::other && size != 0)
    return "floating point, which the kernel does not hand to probes";
  if (type.value_class == ValueClass::other || type.value_class == ValueClass::none)
    return "of a type that is not passed by value";
  if (!is_value_size(size)) return fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", size);
  return {};
}

/// Returns the location of a value of `size` bytes that begins in the register `low`; `high` is the next one.
Location in_registers(RegisterId low, RegisterId high, std::uint32_t size, const arch::Arch& arch) {
  return Register{.id = low, .high = size > arch.word_size ? high : RegisterId::none};
}

/// Returns the location of a value of `size` bytes that a convention has put at `place`.
Location location_of(const arch::Place& place, std::uint32_t size, const arch::Arch& arch) {
  const auto registers = arch.kernel_calls.arguments;
  switch (place.where) {
    case arch::Place::Where::registers:
      return in_registers(registers[place.at],
                          place.at + 1 < registers.size() ? registers[place.at + 1] : RegisterId::none, size, arch);
    case arch::Place::Where::stack:
      return Memory{.displacement = place.at, .base = arch.stack_pointer, .wraps_at_32_bits = arch.wraps_at_32_bits};
    case arch::Place::Where::elsewhere:
    case arch::Place::Where::unknown:
      break;
  }
  return Unreadable{.reason = "behind an argument whose place type information does not tell"};
}

/// The working state of kernel_signature().
class Signer {
 public:
  Signer(const btf::Types& types, const btf::Prototype& prototype, Convention convention, Machine machine)
      : types_(types),
        convention_(convention),
        arch_(arch::for_machine(machine)),
        places_(arch_, shape_of(types, prototype.result, arch_), prototype.varargs) {}

  [[nodiscard]] Arg argument(const btf::Parameter& parameter, std::size_t number) {
    const std::uint32_t size = size_of(parameter.type, arch_);
    Location location = convention_ == Convention::registers
                            ? location_of(places_.next(shape_of(types_, parameter.type, arch_)), size, arch_)
                            : next_slot(size);
    return make(argument_name(parameter.name, number), parameter.type, std::move(location));
  }

  /// How many the arguments so far take.
  [[nodiscard]] std::uint32_t slots() const { return slot_; }

  [[nodiscard]] std::optional<Arg> result(const btf::ValueType& type) const {
    if (type.value_class == ValueClass::none || convention_ == Convention::tracepoint) return std::nullopt;
    const arch::CallRegisters& calls = arch_.kernel_calls;
    Arg made = make({}, type,
                    convention_ == Convention::registers
                        ? in_registers(calls.result, calls.result_high, size_of(type, arch_), arch_)
                        : Location(Slot{USDT_SLOT_RESULT}));
    made.result = true;
    return made;
  }

 private:
  /// A value that no program can read is nowhere, whatever its place.
  [[nodiscard]] Arg make(std::string name, const btf::ValueType& type, Location location) const {
    Declaration declaration{.name = std::move(name), .type = btf::type_name(types_, type.type_id), .enumerators = {}};
    if (type.value_class == ValueClass::enumeration) {
      for (const auto& [enumerator, bits] : types_.enumerators(type.type_id))
        declaration.enumerators.push_back({std::string(enumerator), bits});
    }
    const std::uint32_t size = size_of(type, arch_);
    std::string reason = unreadable_type(type, size);
    Arg arg{.type = {.size = size, .is_signed = type.is_signed, .kind = kind_of(type)},
            .location = reason.empty() ? std::move(location) : Unreadable{.reason = std::move(reason)},
            .source = {},
            .declaration = std::make_shared<const Declaration>(std::move(declaration))};
    const auto* reg = std::get_if<Register>(&arg.location);
    if (reg != nullptr && reg->high != RegisterId::none) arg.needs.add(Need::reg_pair);
    return arg;
  }

  [[nodiscard]] Location next_slot(std::uint32_t size) {
    const std::uint32_t slot = slot_;
    // bpf_get_func_arg() counts registers: a value of 16 bytes has two. Tracepoints cast each argument to u64
    // (CAST_TO_U64, include/trace/bpf_probe.h).
    slot_ += convention_ == Convention::tracepoint ? 1 : size / 8 + (size % 8 != 0);
    if (slot_ > USDT_SLOTS)
      return Unreadable{.reason = fmt::format("behind the {} slots the kernel hands over", USDT_SLOTS)};
    return Slot{static_cast<std::uint8_t>(slot)};
  }

  const btf::Types& types_;
  Convention convention_;
  const arch::Arch& arch_;
  arch::Places places_;
  std::uint32_t slot_ = 0;
};

/// Says why btf_distill_func_proto() (kernel/bpf/btf.c) refuses it, as far as all kernels do: before 720e6a435194 (6.1)
/// they refuse every struct by value, and many do unions. More than 12 slots are refused by the machine's trampolines.
std::string trampoline_refusal(const btf::Types& types, const btf::Prototype& prototype) {
  const std::size_t count = prototype.parameters.size() + (prototype.varargs ? 1 : 0);
  if (count > kMostArguments) return fmt::format("{} parameters, more than {}", count, kMostArguments);
  const ValueClass result = prototype.result.value_class;
  if (result == ValueClass::structure || result == ValueClass::other)
    return fmt::format("it returns {}", btf::type_name(types, prototype.result.type_id));
  if (prototype.varargs) return "variable arguments";
  std::uint32_t slots = 0;
  for (std::size_t i = 0; i < prototype.parameters.size(); ++i) {
    const auto& [name, type] = prototype.parameters[i];
    if (type.value_class == ValueClass::other || type.size > 16 || type.size == 0)
      return fmt::format("{} is of type {} ({} bytes)", argument_name(name, i), btf::type_name(types, type.type_id),
                         type.size);
    slots += type.size > 8 ? 2 : 1;
  }
  return slots > USDT_SLOTS ? fmt::format("arguments in {} slots, more than {}", slots, USDT_SLOTS) : std::string();
}

}  // namespace

KernelSignature kernel_signature(const btf::Types& types, const btf::Prototype& prototype, Convention convention,
                                 Machine machine) {
  KernelSignature signature;
  signature.varargs = prototype.varargs;
  Signer signer(types, prototype, convention, machine);
  std::span parameters(prototype.parameters);
  if (convention == Convention::tracepoint && !parameters.empty()) parameters = parameters.subspan(1);
  signature.args.reserve(parameters.size() + 1);  // the result may become one
  for (const btf::Parameter& parameter : parameters) {
    signature.args.push_back(signer.argument(parameter, signature.args.size()));
    signature.arg_types.push_back(btf::Graph::id_of(parameter.type.type_id));
  }
  signature.result_type = btf::Graph::id_of(prototype.result.type_id);
  signature.slots = signer.slots();
  signature.result = signer.result(prototype.result);
  if (convention != Convention::tracepoint) signature.no_trampoline = trampoline_refusal(types, prototype);
  return signature;
}

KernelSignature untyped_signature(Convention convention, Machine machine) {
  // i386 has three registers for arguments: the words on the stack make up for the others.
  constexpr std::size_t fewest = 6;
  KernelSignature signature;
  signature.no_trampoline = "no type information";
  if (convention != Convention::registers) return signature;
  const arch::Arch& arch = arch::for_machine(machine);
  const arch::Shape word{.kind = arch::Shape::Kind::word, .size = arch.word_size};
  arch::Places places(arch, word, false);
  const std::size_t count = std::max(fewest, arch.kernel_calls.arguments.size());
  for (std::size_t n = 0; n < count; ++n)
    signature.args.push_back(
        untyped_word(arch, fmt::format("arg{}", n), location_of(places.next(word), arch.word_size, arch)));
  signature.result = untyped_word(arch, {}, Register{.id = arch.kernel_calls.result});
  signature.result->result = true;
  return signature;
}

}  // namespace usdt::resolve
