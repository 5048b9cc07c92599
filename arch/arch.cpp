// SPDX-License-Identifier: BSD-2-Clause
#include "arch/arch.hpp"

#include <algorithm>

#include "arch/instruction_sets.hpp"
#include "arch/register_table.hpp"
#include "arch/riscv64.hpp"
#include "arch/tables.hpp"
#include "arch/x86.hpp"

namespace usdt::arch {

const Register* Arch::find(std::string_view wanted) const noexcept {
  constexpr std::size_t kLongestName = 5;  // "st(7)", "xmm31": longer text cannot match, so it need not be hashed
  if (wanted.size() > kLongestName) return nullptr;
  const std::size_t mask = slots.size() - 1;
  for (std::size_t slot = hash_name(wanted) & mask; slots[slot] != 0; slot = (slot + 1) & mask) {
    const Register& entry = registers[slots[slot] - 1U];
    if (std::ranges::equal(entry.name, wanted, {}, {}, to_lower)) return &entry;
  }
  return nullptr;
}

const Arch& for_machine(Machine machine) noexcept {
  switch (machine) {
    case Machine::x86_64:
      return kX86_64;
    case Machine::i386:
      return kI386;
    case Machine::aarch64:
      return kAarch64;
    case Machine::riscv64:
      break;
  }
  return kRiscv64;
}

std::span<const Arch* const> all() noexcept {
  static constexpr std::array kAll{&kX86_64, &kI386, &kAarch64, &kRiscv64};
  return kAll;
}

const Arch* for_elf_machine(std::uint16_t e_machine) noexcept {
  const auto found = std::ranges::find(all(), e_machine, &Arch::elf_machine);
  return found == all().end() ? nullptr : *found;
}

const Arch* for_name(std::string_view name) noexcept {
  const auto found = std::ranges::find(all(), name, &Arch::name);
  return found == all().end() ? nullptr : *found;
}

SiteClass classify_site(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.empty()) return SiteClass::unknown;
  const auto fits = [bytes](const SitePattern& row) {
    if (bytes.size() < row.size) return false;
    for (std::size_t i = 0; i < row.size; ++i) {
      if ((bytes[i] & row.mask[i]) != row.bytes[i]) return false;
    }
    return true;
  };
  const auto& sites = for_machine(machine).sites;
  const auto row = std::find_if(sites.begin(), sites.end(), fits);
  return row == sites.end() ? SiteClass::single_step : row->site_class;
}

std::uint8_t landing_pad(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < 4) return 0;
  const std::uint32_t word = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | std::uint32_t{bytes[3]} << 24;
  switch (machine) {
    case Machine::x86_64:
      return word == 0xfa1e0ff3 ? 4 : 0;
    case Machine::i386:
      return word == 0xfb1e0ff3 ? 4 : 0;
    case Machine::aarch64:  // bti, bti c, bti j, bti jc
      return (word & ~0xc0U) == 0xd503241f ? 4 : 0;
    case Machine::riscv64:  // lpad (Zicfilp): auipc of the zero register
      return (word & 0xfff) == 0x017 ? 4 : 0;
  }
  return 0;
}

Nop nop_at(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return by_instructions(
      machine, [&](bool) { return x86::nop_at(bytes); }, [] { return Nop{}; }, [] { return Nop{}; });
}

std::string_view uprobe_refusal(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return x86::uprobe_refusal(bytes, is64); },
      [&] { return aarch64_uprobe_refusal(bytes); }, [&] { return riscv64::uprobe_refusal(bytes); });
}

}  // namespace usdt::arch
