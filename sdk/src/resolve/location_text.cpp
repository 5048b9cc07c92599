// SPDX-License-Identifier: BSD-2-Clause
// Locations for people, in the dialect of their machine.
#include <fmt/format.h>

#include <string>

#include "arch/arch.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"

namespace usdt {
inline namespace v1 {
namespace {

class Writer {
 public:
  explicit Writer(Machine machine) : machine_(machine), arch_(arch::for_machine(machine)) {}

  std::string operator()(const Unreadable&) const { return {}; }
  std::string operator()(const Constant& constant) const {
    return fmt::format("{}{}", machine_ == Machine::aarch64 ? "" : "$", constant.bits);
  }
  std::string operator()(const Register& reg) const { return std::string(name(reg.id)); }
  std::string operator()(const Slot& slot) const {
    return slot.number == USDT_SLOT_RESULT ? "result" : fmt::format("slot {}", slot.number);
  }
  std::string operator()(const Memory& memory) const {
    const auto displacement = static_cast<std::int64_t>(memory.displacement);
    return machine_ == Machine::aarch64 ? aarch64(memory, displacement) : x86(memory, displacement);
  }

 private:
  [[nodiscard]] std::string_view name(RegisterId id) const {
    return id == RegisterId::none ? std::string_view() : arch_.reg(id).name;
  }

  [[nodiscard]] std::string x86(const Memory& memory, std::int64_t displacement) const {
    std::string text = memory.origin == Origin::thread ? fmt::format("%{}:", arch_.thread_segment) : "";
    text += fmt::format("{}", displacement);
    const bool file = memory.origin == Origin::file || memory.origin == Origin::site;
    if (memory.base == RegisterId::none && memory.index == RegisterId::none) return text + (file ? "(%rip)" : "");
    text += memory.base == RegisterId::none ? "(" : fmt::format("(%{}", name(memory.base));
    if (memory.index != RegisterId::none) text += fmt::format(",%{},{}", name(memory.index), 1U << memory.shift);
    return text + ")";
  }

  [[nodiscard]] std::string aarch64(const Memory& memory, std::int64_t displacement) const {
    if (memory.index == RegisterId::none) return fmt::format("[{}, {}]", name(memory.base), displacement);
    static constexpr std::string_view kExtends[] = {"lsl", "uxtw", "sxtw"};
    return fmt::format("[{}, {}, {} {}]", name(memory.base), name(memory.index),
                       kExtends[static_cast<std::size_t>(memory.index_width)], memory.shift);
  }

  Machine machine_;
  const arch::Arch& arch_;
};

RegisterInfo info_of(const arch::Arch& arch, const arch::Register& reg) {
  const RegisterId high = arch::pair_high(arch, reg);
  return {.name = reg.name,
          .canon = reg.canon,
          .bits = reg.bits,
          .shift = reg.shift,
          .floating = reg.reg_class == arch::RegClass::fp,
          .instruction_pointer = reg.reg_class == arch::RegClass::ip,
          .pair_high = high == RegisterId::none ? std::string_view() : arch.reg(high).canon};
}

}  // namespace

std::optional<RegisterInfo> find_register(Machine machine, std::string_view name) noexcept {
  const arch::Arch& arch = arch::for_machine(machine);
  const arch::Register* reg = arch.find(name);
  if (reg == nullptr) return std::nullopt;
  return info_of(arch, *reg);
}

RegisterInfo register_info(Machine machine, RegisterId id) noexcept {
  const arch::Arch& arch = arch::for_machine(machine);
  return id == RegisterId::none ? RegisterInfo{} : info_of(arch, arch.reg(id));
}

std::string location_text(const Location& location, Machine machine) { return std::visit(Writer(machine), location); }

}  // namespace v1
}  // namespace usdt
