// SPDX-License-Identifier: BSD-2-Clause
// Locations for people, in the dialect of their machine.
#include <fmt/format.h>

#include <string>

#include "arch/arch.hpp"
#include "arch/dialect.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"

namespace usdt {
inline namespace v1 {
namespace {

class Writer {
 public:
  explicit Writer(const arch::Arch& arch) : arch_(arch) {}

  std::string operator()(const Unreadable&) const { return {}; }
  std::string operator()(const Constant& constant) const {
    return fmt::format("{}{}", arch_.dialect->constant_prefix, constant.bits);
  }
  std::string operator()(const Register& reg) const {
    return reg.id == RegisterId::none ? std::string() : std::string(arch_.reg(reg.id).name);
  }
  std::string operator()(const Slot& slot) const {
    return slot.number == USDT_SLOT_RESULT ? "result" : fmt::format("slot {}", slot.number);
  }
  std::string operator()(const Memory& memory) const { return arch_.dialect->memory_text(arch_, memory); }

 private:
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

std::string location_text(const Location& location, Machine machine) {
  return std::visit(Writer(arch::for_machine(machine)), location);
}

}  // namespace v1
}  // namespace usdt
