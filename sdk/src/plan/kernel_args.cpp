// SPDX-License-Identifier: BSD-2-Clause
#include "plan/kernel_args.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arch/arch.hpp"
#include "plan/kernel_places.hpp"

namespace usdt::plan {
namespace {

using btf::ValueClass;

/// MAX_BPF_FUNC_ARGS, include/linux/bpf.h.
constexpr std::uint32_t most_arguments = USDT_SLOTS;

std::uint8_t word_of(const arch::Arch& arch, std::string_view name) {
  return static_cast<std::uint8_t>(arch.find(name)->pt_regs_word);
}

bool is_value_size(std::uint32_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

std::string argument_name(std::string_view name, std::size_t number) {
  return name.empty() ? fmt::format("arg{}", number) : std::string(name);
}

/// Why values of this type cannot be read wherever they are; empty: they can.
std::string unreadable_type(const Shape& shape) {
  if (shape.value_class == ValueClass::structure) return fmt::format("struct by value ({} bytes)", shape.size);
  if (shape.value_class == ValueClass::other && shape.size != 0)
    return "floating point, which the kernel does not hand to probes";
  if (shape.value_class == ValueClass::other || shape.value_class == ValueClass::none)
    return "of a type that is not passed by value";
  if (!is_value_size(shape.size))
    return fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", shape.size);
  return {};
}

/// Makes one argument, or the result, in both forms.
class Writer {
 public:
  Writer(std::string name, std::string type, const Shape& shape, bool is_signed, const arch::Arch& arch) : arch_(arch) {
    out_.arg.name = std::move(name);
    out_.arg.type = std::move(type);
    out_.arg.size = shape.size;
    out_.arg.readable = true;
    out_.arg.spec.size = shape.size;
    out_.arg.spec.is_signed = is_signed;
    out_.encoded = {.value = 0,
                    .kind = USDT_ARG_UNREADABLE,
                    .flags = static_cast<std::uint8_t>(is_signed ? USDT_ARG_SIGNED : 0),
                    .size = static_cast<std::uint8_t>(is_value_size(shape.size) ? shape.size : 0),
                    .reg = USDT_REG_NONE,
                    .index = USDT_REG_NONE,
                    .shift = 0,
                    .capture = 0,
                    .window = 0};
    if (std::string reason = unreadable_type(shape); !reason.empty()) reject(std::move(reason));
  }

  /// In the register `canon`, and where the value is longer in `high` too.
  void in_register(std::string_view canon, std::string_view high) {
    name_register(canon, canon, static_cast<std::uint16_t>(8 * arch_.word_size));
    if (!out_.arg.readable) return;
    out_.encoded.kind = USDT_ARG_REG;
    out_.encoded.reg = word_of(arch_, canon);
    if (out_.arg.size <= arch_.word_size) return;
    out_.arg.pair_high = high;
    out_.arg.needs.emplace_back("reg-pair");
    out_.encoded.index = word_of(arch_, high);
    out_.encoded.flags |= USDT_ARG_PAIR;
  }

  void in_slot(std::uint32_t slot, std::string_view text) {
    name_register(fmt::format("slot{}", slot), text, 64);
    if (!out_.arg.readable) return;
    out_.encoded.kind = USDT_ARG_REG;
    out_.encoded.reg = static_cast<std::uint8_t>(slot);
  }

  void on_stack(std::uint32_t offset) {
    const std::string_view stack = stack_register(arch_.machine);
    out_.arg.spec.text = arch_.machine == Machine::aarch64 ? fmt::format("[{}, {}]", stack, offset)
                                                           : fmt::format("{}(%{})", offset, stack);
    if (!out_.arg.readable) return;
    MemOperand operand;
    operand.base = stack;
    operand.disp = offset;
    out_.arg.spec.operand = std::move(operand);
    out_.arg.base = stack;
    out_.encoded.kind = USDT_ARG_MEM;
    out_.encoded.reg = word_of(arch_, stack);
    out_.encoded.value = offset;
    if (arch_.machine == Machine::i386) out_.encoded.flags |= USDT_ARG_ADDR32;
  }

  /// What its values mean.
  void name_values(const btf::Types& types, const btf::ValueType& type) {
    out_.arg.text = type.text;
    out_.arg.boolean = type.value_class == ValueClass::boolean && type.size == 1;
    if (type.value_class != ValueClass::enumeration) return;
    for (const auto& [name, bits] : types.enumerators(type.type_id))
      out_.arg.enumerators.push_back({std::string(name), bits});
  }

  /// The first reason given stays.
  void reject(std::string reason) {
    if (!out_.arg.readable) return;
    out_.arg.readable = false;
    out_.arg.spec.unreadable = Unreadable{.reason = reason};
    out_.arg.reason = std::move(reason);
    out_.encoded.flags = 0;
  }

  [[nodiscard]] ResolvedArg done() && { return std::move(out_); }

 private:
  void name_register(std::string_view canon, std::string_view text, std::uint16_t bits) {
    out_.arg.spec.text = text;
    if (!out_.arg.readable) return;
    out_.arg.spec.operand = RegOperand{.name = std::string(canon)};
    out_.arg.reg.name = out_.arg.reg.canon = canon;
    out_.arg.reg.bits = bits;
  }

  const arch::Arch& arch_;
  ResolvedArg out_;
};

/// The working state of kernel_signature().
class Signer {
 public:
  Signer(const btf::Types& types, const btf::Prototype& prototype, Convention convention, Machine machine)
      : types_(types),
        convention_(convention),
        arch_(arch::for_machine(machine)),
        result_(shape_of(types, prototype.result, machine)),
        places_(machine, result_, prototype.varargs) {}

  [[nodiscard]] ResolvedArg argument(const btf::Parameter& parameter, std::size_t number) {
    const Shape shape = shape_of(types_, parameter.type, arch_.machine);
    Writer writer(argument_name(parameter.name, number), types_.type_name(parameter.type.type_id), shape,
                  parameter.type.is_signed, arch_);
    writer.name_values(types_, parameter.type);
    if (convention_ == Convention::registers) {
      put(writer, places_.next(shape));
    } else {
      put(writer, shape);
    }
    return std::move(writer).done();
  }

  /// How many the arguments so far take.
  [[nodiscard]] std::uint32_t slots() const { return slot_; }

  [[nodiscard]] std::optional<ResolvedArg> result(const btf::ValueType& type) {
    if (result_.value_class == ValueClass::none || convention_ == Convention::tracepoint) return std::nullopt;
    Writer writer({}, types_.type_name(type.type_id), result_, type.is_signed, arch_);
    writer.name_values(types_, type);
    if (convention_ == Convention::registers) {
      writer.in_register(result_register(arch_.machine), "edx");
    } else {
      writer.in_slot(USDT_SLOT_RESULT, "result");
    }
    return std::move(writer).done();
  }

 private:
  void put(Writer& writer, Place place) const {
    const auto registers = argument_registers(arch_.machine);
    switch (place.where) {
      case Place::Where::registers:
        writer.in_register(registers[place.at], place.at + 1 < registers.size() ? registers[place.at + 1] : "");
        break;
      case Place::Where::stack:
        writer.on_stack(place.at);
        break;
      case Place::Where::elsewhere:
      case Place::Where::unknown:
        writer.reject("behind an argument whose place type information does not tell");
        break;
    }
  }

  void put(Writer& writer, const Shape& shape) {
    writer.in_slot(slot_, fmt::format("slot {}", slot_));
    // bpf_get_func_arg() counts registers: a value of 16 bytes has two. Tracepoints cast each argument to u64
    // (CAST_TO_U64, include/trace/bpf_probe.h).
    slot_ += convention_ == Convention::tracepoint ? 1 : shape.size / 8 + (shape.size % 8 != 0);
    if (slot_ > USDT_SLOTS) writer.reject(fmt::format("behind the {} slots the kernel hands over", USDT_SLOTS));
  }

  const btf::Types& types_;
  Convention convention_;
  const arch::Arch& arch_;
  Shape result_;
  Places places_;
  std::uint32_t slot_ = 0;
};

/// What btf_distill_func_proto() (kernel/bpf/btf.c) refuses, as far as all kernels do: before 720e6a435194 (6.1) they
/// refuse every struct by value, and many do unions. More than 12 slots are refused by the machine's trampolines.
std::string trampoline_refusal(const btf::Types& types, const btf::Prototype& prototype) {
  const std::size_t count = prototype.parameters.size() + (prototype.varargs ? 1 : 0);
  if (count > most_arguments) return fmt::format("{} parameters, more than {}", count, most_arguments);
  const ValueClass result = prototype.result.value_class;
  if (result == ValueClass::structure || result == ValueClass::other)
    return fmt::format("it returns {}", types.type_name(prototype.result.type_id));
  if (prototype.varargs) return "variable arguments";
  std::uint32_t slots = 0;
  for (std::size_t i = 0; i < prototype.parameters.size(); ++i) {
    const auto& [name, type] = prototype.parameters[i];
    if (type.value_class == ValueClass::other || type.size > 16 || type.size == 0)
      return fmt::format("{} is of type {} ({} bytes)", argument_name(name, i), types.type_name(type.type_id),
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
  for (const btf::Parameter& parameter : parameters)
    signature.args.push_back(signer.argument(parameter, signature.args.size()));
  signature.slots = signer.slots();
  signature.result = signer.result(prototype.result);
  if (convention != Convention::tracepoint) signature.no_trampoline = trampoline_refusal(types, prototype);
  return signature;
}

KernelSignature untyped_signature(Convention convention, Machine machine) {
  KernelSignature signature;
  signature.no_trampoline = "no type information";
  if (convention != Convention::registers) return signature;
  const arch::Arch& arch = arch::for_machine(machine);
  const auto in_register = [&](std::string name, std::string_view canon) {
    Writer writer(std::move(name), {}, {.value_class = ValueClass::integer, .size = arch.word_size, .layout = {}},
                  false, arch);
    writer.in_register(canon, {});
    return std::move(writer).done();
  };
  for (const std::string_view canon : argument_registers(machine))
    signature.args.push_back(in_register(fmt::format("arg{}", signature.args.size()), canon));
  signature.result = in_register({}, result_register(machine));
  return signature;
}

}  // namespace usdt::plan
