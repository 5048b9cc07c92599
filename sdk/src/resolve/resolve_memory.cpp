// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <string>
#include <utility>

#include "resolve/resolver.hpp"

namespace usdt::resolve {
namespace {

using arch::AddressRegisters;
using arch::RegClass;
using arch::Register;

bool is(const Register* reg, RegClass reg_class) { return reg != nullptr && reg->reg_class == reg_class; }

}  // namespace

/// GNU as takes operators in either case. x86: gas/config/tc-i386.c lex_got(); arm64: AArch64 ELF ABI section 5.7.
Reloc reloc_kind(std::string_view name) noexcept {
  struct Row {
    std::string_view name;
    Reloc kind;
  };
  static constexpr std::array kRows = {
      Row{"", Reloc::plain},
      Row{"gotpcrel", Reloc::got_pcrel},
      Row{"got", Reloc::got},
      Row{"gotoff", Reloc::got_offset},
      Row{"lo12", Reloc::lo12},
      Row{"got_lo12", Reloc::got_lo12},
      Row{"tpoff", Reloc::tp_offset},
      Row{"ntpoff", Reloc::ntp_offset},
      Row{"dtpoff", Reloc::dtp_offset},
  };
  static constexpr std::array<std::string_view, 7> kThreadLocal = {"gottpoff", "gotntpoff", "indntpoff", "tprel",
                                                                   "dtprel",   "gottprel",  "tls"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Row& row : kRows) {
    if (row.name == lower) return row.kind;
  }
  const bool local = std::any_of(kThreadLocal.begin(), kThreadLocal.end(),
                                 [&lower](std::string_view prefix) { return lower.starts_with(prefix); });
  return local ? Reloc::other_thread_local : Reloc::unknown;
}

Location Resolver::locate(const MemOperand& operand) const {
  const auto regs = registers_of(operand);
  if (!regs) return regs.error();
  Memory memory{.displacement = static_cast<std::uint64_t>(operand.disp)};
  if (auto refusal = arch_.dialect->check_address(arch_, operand, *regs, memory))
    return because(std::move(refusal->reason), refusal->token);
  if (is(regs->base, RegClass::gpr)) memory.base = arch_.id(*regs->base);
  if (is(regs->index, RegClass::gpr)) {
    memory.index = arch_.id(*regs->index);
    memory.shift = static_cast<std::uint8_t>(std::countr_zero(operand.scale));
  }
  if (operand.symbol) {
    Addressed addressed = symbolic(operand, *regs, memory);
    return addressed ? Location(*addressed) : Location(std::move(addressed.error()));
  }
  // It is relative to the instruction that would have used it; the note does not say which that was.
  if (is(regs->base, RegClass::ip))
    return because("relative to the instruction pointer without a symbol", operand.base);
  return memory;
}

tl::expected<AddressRegisters, Unreadable> Resolver::registers_of(const MemOperand& operand) const {
  AddressRegisters regs;
  for (const auto& [name, reg] : {std::pair{operand.base, &regs.base}, std::pair{operand.index, &regs.index}}) {
    if (name.empty()) continue;
    *reg = arch_.find(name);
    if (*reg == nullptr)
      return tl::unexpected(because(fmt::format("no register '{}' on {}", name, to_string(arch_.machine)), name));
  }
  if (!operand.segment.empty() && operand.segment != arch_.thread_segment)
    return tl::unexpected(because(
        fmt::format("in segment %{}, which is not the thread's on {}", operand.segment, to_string(arch_.machine)),
        operand.segment));
  return regs;
}

Resolver::Addressed Resolver::symbolic(const MemOperand& operand, AddressRegisters regs, Memory memory) const {
  const SymbolRef& symbol = *operand.symbol;
  const bool has_base = is(regs.base, RegClass::gpr);
  const bool ip_base = is(regs.base, RegClass::ip);
  const auto misplaced = [&] {
    const std::string base = operand.base.empty() ? "no base register" : fmt::format("base register {}", operand.base);
    return tl::unexpected(because(fmt::format("relocation '{}' with {}", symbol.reloc, base), symbol.reloc));
  };
  const Reloc reloc = reloc_kind(symbol.reloc);
  if (!operand.segment.empty() && !is_thread_local(reloc))
    return tl::unexpected(
        because(fmt::format("symbol '{}' in segment %{} without an offset from its base", symbol.name, operand.segment),
                symbol.name));
  switch (reloc) {
    case Reloc::plain: {
      const Found at = symbol_address(symbol);
      if (!at) return tl::unexpected(at.error());
      return plain_symbol(*at + static_cast<std::uint64_t>(operand.disp), regs, memory);
    }
    case Reloc::got_pcrel:
      return ip_base ? got_slot(operand, false, memory) : Addressed(misplaced());
    case Reloc::got:
      return ip_base ? Addressed(misplaced()) : got_slot(operand, has_base, memory);
    case Reloc::got_offset: {
      if (!has_base) return misplaced();
      const Found at = symbol_address(symbol);
      if (!at) return tl::unexpected(at.error());
      const Found got = got_address(symbol);
      if (!got) return tl::unexpected(got.error());
      memory.displacement += *at - *got;
      return memory;
    }
    case Reloc::lo12:
      return page_offset(operand, regs, symbol_address(symbol), memory);
    case Reloc::got_lo12:
      return page_offset(operand, regs, slot_address(symbol), memory);
    case Reloc::tp_offset:
    case Reloc::ntp_offset:
    case Reloc::dtp_offset:
      return thread_local_symbol(operand, regs, reloc, memory);
    case Reloc::other_thread_local:
      return tl::unexpected(because(
          fmt::format("thread-local: relocation '{}' of symbol '{}' is not supported", symbol.reloc, symbol.name),
          symbol.reloc));
    case Reloc::unknown:
      break;
  }
  return tl::unexpected(
      because(fmt::format("relocation '{}' of symbol '{}' is not supported", symbol.reloc, symbol.name), symbol.reloc));
}

/// The instruction pointer makes the address good wherever the file is loaded. Beside two registers it would be a third
/// one to add up, which specs of libbpf's have no place for; code with such an operand cannot be moved anyway.
Resolver::Addressed Resolver::plain_symbol(std::uint64_t address, AddressRegisters regs, Memory memory) const {
  const bool crowded = is(regs.base, RegClass::gpr) && is(regs.index, RegClass::gpr);
  const bool fixed = crowded && symbols_ != nullptr && symbols_->is_loaded_as_linked();
  memory.displacement = address;
  memory.origin = fixed ? Origin::zero : Origin::file;
  return memory;
}

/// `%fs:sym@tpoff`, or `sym@tpoff(%rax)` with the thread pointer in the register; `sym@dtpoff(%rax)` with the start of
/// the module's block in it.
Resolver::Addressed Resolver::thread_local_symbol(const MemOperand& operand, AddressRegisters regs, Reloc reloc,
                                                  Memory memory) const {
  const SymbolRef& symbol = *operand.symbol;
  const bool dynamic = reloc == Reloc::dtp_offset;
  if (!dynamic && reloc != reloc_kind(arch_.thread_offset))
    return tl::unexpected(because(
        fmt::format("thread-local: relocation '{}' is not supported on {}", symbol.reloc, to_string(arch_.machine)),
        symbol.reloc));
  const bool has_base = is(regs.base, RegClass::gpr);
  const bool in_segment = !operand.segment.empty();
  if (is(regs.base, RegClass::ip) || (dynamic ? in_segment || !has_base : !in_segment && !has_base)) {
    const std::string beside = in_segment             ? fmt::format("segment %{}", operand.segment)
                               : operand.base.empty() ? "no base register"
                                                      : fmt::format("base register {}", operand.base);
    return tl::unexpected(
        because(fmt::format("thread-local: relocation '{}' with {}", symbol.reloc, beside), symbol.reloc));
  }
  const Found offset = thread_offset(symbol, dynamic);
  if (!offset) return tl::unexpected(offset.error());
  memory.displacement += *offset;
  return memory;
}

/// `sym@GOTPCREL(%rip)`, `sym@GOT(%ebx)`: the word in the slot is the symbol's address. A linker that knew the
/// address has turned the instruction into one without a slot; then the value is the address itself.
Resolver::Addressed Resolver::got_slot(const MemOperand& operand, bool relative_to_base, Memory memory) const {
  const SymbolRef& symbol = *operand.symbol;
  if (symbols_ != nullptr && !symbols_->got_slot(symbol.name)) {
    const Found at = symbol_address(symbol);
    if (!at) return tl::unexpected(at.error());
    if (operand.disp != 0 || memory.index != RegisterId::none)
      return tl::unexpected(
          because(fmt::format("symbol '{}' has no slot in the global offset table", symbol.name), symbol.name));
    memory.is_value = true;
    memory.base = RegisterId::none;
    memory.displacement = *at;
    memory.origin = Origin::file;
    return memory;
  }
  const Found slot = slot_address(symbol);
  if (!slot) return tl::unexpected(slot.error());
  if (!relative_to_base) {
    memory.displacement += *slot;
    memory.origin = Origin::file;
    return memory;
  }
  const Found got = got_address(symbol);
  if (!got) return tl::unexpected(got.error());
  memory.displacement += *slot - *got;
  return memory;
}

/// `[x0, #:lo12:sym]`: the base holds the 4096-byte page of the address, the operand its low 12 bits.
Resolver::Addressed Resolver::page_offset(const MemOperand& operand, AddressRegisters regs, const Found& address,
                                          Memory memory) const {
  if (!is(regs.base, RegClass::gpr))
    return tl::unexpected(
        because(fmt::format("relocation '{}' without a base register", operand.symbol->reloc), operand.symbol->reloc));
  if (!address) return tl::unexpected(address.error());
  memory.displacement = (*address + static_cast<std::uint64_t>(operand.disp)) & 0xfff;
  return memory;
}

}  // namespace usdt::resolve
