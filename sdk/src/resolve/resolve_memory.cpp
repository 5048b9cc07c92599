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
  const bool arm = arch_.machine == Machine::aarch64;
  if (auto broken = arm ? aarch64_address(operand, *regs, memory) : x86_address(operand, *regs, memory))
    return std::move(*broken);
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

tl::expected<Resolver::AddressRegisters, Unreadable> Resolver::registers_of(const MemOperand& operand) const {
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

/// The rules of an x86 address (Intel SDM volume 1, section 3.7.5), and its width.
std::optional<Unreadable> Resolver::x86_address(const MemOperand& operand, AddressRegisters regs,
                                                Memory& memory) const {
  const unsigned widest = 8U * arch_.word_size;
  for (const Register* reg : {regs.base, regs.index}) {
    if (reg == nullptr) continue;
    const bool addressing = reg->reg_class == RegClass::gpr ||
                            (reg == regs.base && arch_.machine == Machine::x86_64 && reg->reg_class == RegClass::ip);
    if (!addressing) return because(fmt::format("register {} cannot address memory", reg->name), reg->name);
    if (reg->bits != 32 && reg->bits != widest)
      return because(fmt::format("{}-bit register {} cannot address memory", reg->bits, reg->name), reg->name);
    memory.wraps_at_32_bits |= reg->bits == 32;
  }
  // Their sum would wrap before the base of the segment is added, which wraps_at_32_bits does not say.
  if (!arch_.wraps_at_32_bits && !operand.segment.empty() && memory.wraps_at_32_bits)
    return because(fmt::format("32-bit address register in segment %{}", operand.segment), operand.segment);
  if (arch_.wraps_at_32_bits) memory.wraps_at_32_bits = true;
  if (!operand.segment.empty()) memory.origin = Origin::thread;
  if (regs.index == nullptr) return std::nullopt;
  if (regs.index->canon == "rsp" || regs.index->canon == "esp")
    return because("the stack pointer cannot be an index", regs.index->name);
  if (is(regs.base, RegClass::ip))
    return because("an address relative to the instruction pointer has no index", regs.index->name);
  if (regs.base != nullptr && regs.base->bits != regs.index->bits)
    return because(fmt::format("base {} and index {} differ in width", regs.base->name, regs.index->name),
                   regs.index->name);
  if (!std::has_single_bit(operand.scale) || operand.scale > 8)
    return because(fmt::format("scale {} is not 1, 2, 4 or 8", operand.scale));
  return std::nullopt;
}

/// The rules of an arm64 address (Arm ARM section C1.3.3). An index that is the zero register adds nothing.
std::optional<Unreadable> Resolver::aarch64_address(const MemOperand& operand, AddressRegisters regs,
                                                    Memory& memory) const {
  const auto addresses = [](const Register& reg) { return reg.reg_class == RegClass::gpr && reg.bits == 64; };
  if (regs.base != nullptr && !addresses(*regs.base))
    return because(fmt::format("register {} cannot be a base: only x0..x30 and sp can", regs.base->name),
                   regs.base->name);
  if (regs.base != nullptr && operand.symbol && operand.symbol->reloc.empty())
    return because(fmt::format("symbol '{}' beside a base register without :lo12:", operand.symbol->name),
                   operand.symbol->name);
  if (regs.index == nullptr) return std::nullopt;
  const Register& index = *regs.index;
  if ((index.reg_class != RegClass::gpr && index.reg_class != RegClass::zero) || index.canon == "sp")
    return because(fmt::format("register {} cannot be an index", index.name), index.name);
  const bool extends_word = operand.extend == Extend::uxtw || operand.extend == Extend::sxtw;
  if (index.bits == 32 && !extends_word)
    return because(fmt::format("32-bit index {} without uxtw or sxtw", index.name), index.name);
  if (index.bits == 64 && extends_word)
    return because(fmt::format("64-bit index {} with a 32-bit extension", index.name), index.name);
  if (!std::has_single_bit(operand.scale) || operand.scale > 16)
    return because(fmt::format("index shift of {} is more than 4", operand.amount));
  if (operand.extend == Extend::uxtw) memory.index_width = IndexWidth::low32;
  if (operand.extend == Extend::sxtw) memory.index_width = IndexWidth::low32_signed;
  return std::nullopt;
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
  if (!dynamic && reloc != (arch_.machine == Machine::i386 ? Reloc::ntp_offset : Reloc::tp_offset))
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
