// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <string>

#include "plan/resolver.hpp"

namespace usdt::plan {
namespace {

using arch::RegClass;
using arch::Register;

bool is(const Register* reg, RegClass reg_class) { return reg != nullptr && reg->reg_class == reg_class; }
std::uint8_t word(const Register& reg) { return static_cast<std::uint8_t>(reg.pt_regs_word); }

/// The segment register whose base is the thread pointer ("ELF Handling For Thread-Local Storage").
std::string_view thread_segment(Machine machine) { return machine == Machine::i386 ? "gs" : "fs"; }

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

void Resolver::resolve(const MemOperand& operand) {
  const AddressRegisters regs = describe(operand);
  if (!out_.arg.readable) return;
  const bool valid = arch_.machine == Machine::aarch64 ? aarch64_address(operand, regs) : x86_address(operand, regs);
  if (!valid) return;
  address(operand, regs);
}

/// Names, needs, and whether the operand is of a kind that a probe can reach at all.
Resolver::AddressRegisters Resolver::describe(const MemOperand& operand) {
  const auto find = [this](const std::string& name, std::string& canon) -> const Register* {
    if (name.empty()) return nullptr;
    const Register* reg = arch_.find(name);
    canon = reg != nullptr ? reg->canon : name;
    if (reg == nullptr) reject(fmt::format("no register '{}' on {}", name, to_string(arch_.machine)), name);
    return reg;
  };
  const AddressRegisters regs{find(operand.base, out_.arg.base), find(operand.index, out_.arg.index)};
  out_.arg.pc_relative = is(regs.base, RegClass::ip);

  const Reloc reloc = operand.symbol ? reloc_kind(operand.symbol->reloc) : Reloc::plain;
  const bool got =
      reloc == Reloc::got || reloc == Reloc::got_pcrel || reloc == Reloc::got_offset || reloc == Reloc::got_lo12;
  if (operand.symbol) need("symbol");
  if (got) need("got");
  if (!operand.segment.empty() || reloc == Reloc::other_thread_local) need("segment-base");
  if (!operand.segment.empty() && operand.segment != thread_segment(arch_.machine)) {
    reject(fmt::format("in segment %{}, which is not the thread's on {}", operand.segment, to_string(arch_.machine)),
           operand.segment);
  }
  return regs;
}

/// The rules of an x86 address (Intel SDM volume 1, section 3.7.5), and its width.
bool Resolver::x86_address(const MemOperand& operand, AddressRegisters regs) {
  const unsigned widest = 8U * arch_.word_size;
  for (const Register* reg : {regs.base, regs.index}) {
    if (reg == nullptr) continue;
    const bool addressing = reg->reg_class == RegClass::gpr ||
                            (reg == regs.base && arch_.machine == Machine::x86_64 && reg->reg_class == RegClass::ip);
    if (!addressing) return reject(fmt::format("register {} cannot address memory", reg->name), reg->name);
    if (reg->bits != 32 && reg->bits != widest) {
      return reject(fmt::format("{}-bit register {} cannot address memory", reg->bits, reg->name), reg->name);
    }
    if (reg->bits == 32) add_flags(USDT_ARG_ADDR32);
  }
  if (arch_.machine == Machine::x86_64 && !operand.segment.empty() && (out_.encoded.flags & USDT_ARG_ADDR32) != 0) {
    // Their sum would wrap before the base of the segment is added, which ADDR32 does not say.
    return reject(fmt::format("32-bit address register in segment %{}", operand.segment), operand.segment);
  }
  if (arch_.machine == Machine::i386) add_flags(USDT_ARG_ADDR32);
  if (!operand.segment.empty()) add_flags(USDT_ARG_THREAD);
  if (regs.index == nullptr) return true;
  if (regs.index->canon == "rsp" || regs.index->canon == "esp") {
    return reject("the stack pointer cannot be an index", regs.index->name);
  }
  if (is(regs.base, RegClass::ip)) {
    return reject("an address relative to the instruction pointer has no index", regs.index->name);
  }
  if (regs.base != nullptr && regs.base->bits != regs.index->bits) {
    return reject(fmt::format("base {} and index {} differ in width", regs.base->name, regs.index->name),
                  regs.index->name);
  }
  if (!std::has_single_bit(operand.scale) || operand.scale > 8) {
    return reject(fmt::format("scale {} is not 1, 2, 4 or 8", operand.scale));
  }
  return true;
}

/// The rules of an arm64 address (Arm ARM section C1.3.3). An index that is the zero register adds nothing.
bool Resolver::aarch64_address(const MemOperand& operand, AddressRegisters regs) {
  const auto addresses = [](const Register& reg) { return reg.reg_class == RegClass::gpr && reg.bits == 64; };
  if (regs.base != nullptr && !addresses(*regs.base)) {
    return reject(fmt::format("register {} cannot be a base: only x0..x30 and sp can", regs.base->name),
                  regs.base->name);
  }
  if (regs.base != nullptr && operand.symbol && operand.symbol->reloc.empty()) {
    return reject(fmt::format("symbol '{}' beside a base register without :lo12:", operand.symbol->name),
                  operand.symbol->name);
  }
  if (regs.index == nullptr) return true;
  const Register& index = *regs.index;
  if ((index.reg_class != RegClass::gpr && index.reg_class != RegClass::zero) || index.canon == "sp") {
    return reject(fmt::format("register {} cannot be an index", index.name), index.name);
  }
  const bool extends_word = operand.extend == Extend::uxtw || operand.extend == Extend::sxtw;
  if (index.bits == 32 && !extends_word) {
    return reject(fmt::format("32-bit index {} without uxtw or sxtw", index.name), index.name);
  }
  if (index.bits == 64 && extends_word) {
    return reject(fmt::format("64-bit index {} with a 32-bit extension", index.name), index.name);
  }
  if (!std::has_single_bit(operand.scale) || operand.scale > 16) {
    return reject(fmt::format("index shift of {} is more than 4", operand.amount));
  }
  if (operand.extend == Extend::uxtw) add_flags(USDT_ARG_INDEX_U32);
  if (operand.extend == Extend::sxtw) add_flags(USDT_ARG_INDEX_S32);
  return true;
}

void Resolver::address(const MemOperand& operand, AddressRegisters regs) {
  usdt_arg_spec& spec = out_.encoded;
  spec.kind = USDT_ARG_MEM;
  spec.value = static_cast<std::uint64_t>(operand.disp);
  if (is(regs.base, RegClass::gpr)) spec.reg = word(*regs.base);
  if (is(regs.index, RegClass::gpr)) {
    spec.index = word(*regs.index);
    spec.shift = static_cast<std::uint8_t>(std::countr_zero(operand.scale));
  }
  if (operand.symbol) {
    symbolic_address(operand, regs);
  } else if (is(regs.base, RegClass::ip)) {
    // It is relative to the instruction that would have used it; the note does not say which that was.
    reject("relative to the instruction pointer without a symbol", operand.base);
  }
}

void Resolver::symbolic_address(const MemOperand& operand, AddressRegisters regs) {
  const SymbolRef& symbol = *operand.symbol;
  const bool has_base = is(regs.base, RegClass::gpr);
  const bool ip_base = is(regs.base, RegClass::ip);
  const auto misplaced = [&] {
    const std::string base = operand.base.empty() ? "no base register" : "base register " + operand.base;
    reject(fmt::format("relocation '{}' with {}", symbol.reloc, base), symbol.reloc);
  };
  const Reloc reloc = reloc_kind(symbol.reloc);
  if (!operand.segment.empty() && !is_thread_local(reloc)) {
    reject(fmt::format("symbol '{}' in segment %{} without an offset from its base", symbol.name, operand.segment),
           symbol.name);
    return;
  }
  switch (reloc) {
    case Reloc::plain:
      if (const auto at = symbol_address(symbol)) plain_symbol(*at + static_cast<std::uint64_t>(operand.disp), regs);
      return;
    case Reloc::got_pcrel:
      return ip_base ? got_slot(operand, false) : misplaced();
    case Reloc::got:
      return ip_base ? misplaced() : got_slot(operand, has_base);
    case Reloc::got_offset: {
      if (!has_base) return misplaced();
      const auto at = symbol_address(symbol);
      const auto got = at ? got_address(symbol) : std::nullopt;
      if (got) out_.encoded.value += *at - *got;
      return;
    }
    case Reloc::lo12:
      return page_offset(operand, regs, symbol_address(symbol));
    case Reloc::got_lo12:
      return page_offset(operand, regs, slot_address(symbol));
    case Reloc::tp_offset:
    case Reloc::ntp_offset:
    case Reloc::dtp_offset:
      return thread_local_address(operand, regs, reloc);
    case Reloc::other_thread_local:
      reject(fmt::format("thread-local: relocation '{}' of symbol '{}' is not supported", symbol.reloc, symbol.name),
             symbol.reloc);
      return;
    case Reloc::unknown:
      reject(fmt::format("relocation '{}' of symbol '{}' is not supported", symbol.reloc, symbol.name), symbol.reloc);
  }
}

/// The instruction pointer makes the address good wherever the file is loaded. Beside two registers it would be a third
/// one to add up, which specs of libbpf's have no place for; code with such an operand cannot be moved anyway.
void Resolver::plain_symbol(std::uint64_t address, AddressRegisters regs) {
  const bool crowded = is(regs.base, RegClass::gpr) && is(regs.index, RegClass::gpr);
  if (crowded && symbols_ != nullptr && symbols_->is_loaded_as_linked()) {
    out_.encoded.value = address;
  } else {
    relative_to_ip(address);
  }
}

/// `%fs:sym@tpoff`, or `sym@tpoff(%rax)` with the thread pointer in the register; `sym@dtpoff(%rax)` with the start of
/// the module's block in it.
void Resolver::thread_local_address(const MemOperand& operand, AddressRegisters regs, Reloc reloc) {
  const SymbolRef& symbol = *operand.symbol;
  const bool dynamic = reloc == Reloc::dtp_offset;
  if (!dynamic && reloc != (arch_.machine == Machine::i386 ? Reloc::ntp_offset : Reloc::tp_offset)) {
    reject(fmt::format("thread-local: relocation '{}' is not supported on {}", symbol.reloc, to_string(arch_.machine)),
           symbol.reloc);
    return;
  }
  const bool has_base = is(regs.base, RegClass::gpr);
  const bool in_segment = !operand.segment.empty();
  if (is(regs.base, RegClass::ip) || (dynamic ? in_segment || !has_base : !in_segment && !has_base)) {
    const std::string beside = in_segment             ? "segment %" + operand.segment
                               : operand.base.empty() ? "no base register"
                                                      : "base register " + operand.base;
    reject(fmt::format("thread-local: relocation '{}' with {}", symbol.reloc, beside), symbol.reloc);
    return;
  }
  if (const auto offset = thread_offset(symbol, dynamic)) out_.encoded.value += *offset;
}

/// `sym@GOTPCREL(%rip)`, `sym@GOT(%ebx)`: the word in the slot is the symbol's address. A linker that knew the
/// address has turned the instruction into one without a slot; then the value is the address itself.
void Resolver::got_slot(const MemOperand& operand, bool relative_to_base) {
  const SymbolRef& symbol = *operand.symbol;
  usdt_arg_spec& spec = out_.encoded;
  if (symbols_ != nullptr && !symbols_->got_slot(symbol.name)) {
    const auto at = symbol_address(symbol);
    if (!at) return;
    if (operand.disp != 0 || spec.index != USDT_REG_NONE) {
      reject(fmt::format("symbol '{}' has no slot in the global offset table", symbol.name), symbol.name);
      return;
    }
    spec.kind = USDT_ARG_ADDR;
    spec.reg = USDT_REG_NONE;
    relative_to_ip(*at);
    return;
  }
  const auto slot = slot_address(symbol);
  if (!slot) return;
  if (!relative_to_base) {
    relative_to_ip(*slot + spec.value);
  } else if (const auto got = got_address(symbol)) {
    spec.value += *slot - *got;
  }
}

/// `[x0, #:lo12:sym]`: the base holds the 4096-byte page of the address, the operand its low 12 bits.
void Resolver::page_offset(const MemOperand& operand, AddressRegisters regs, std::optional<std::uint64_t> address) {
  if (!is(regs.base, RegClass::gpr)) {
    reject(fmt::format("relocation '{}' without a base register", operand.symbol->reloc), operand.symbol->reloc);
  } else if (address) {
    out_.encoded.value = (*address + static_cast<std::uint64_t>(operand.disp)) & 0xfff;
  }
}

}  // namespace usdt::plan
