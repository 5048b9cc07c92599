// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "plan/resolver.hpp"

namespace usdt::plan {
namespace {

bool is_value_size(std::uint32_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

/// `bits` cut to `size` bytes and extended to 64 bits, by sign or by zeros.
std::uint64_t cut(std::uint64_t bits, std::uint32_t size, bool is_signed) {
  const unsigned unused = 64 - 8 * size;
  const std::uint64_t top = bits << unused;
  return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused) : top >> unused;
}

/// Without `N@`, which STAP_PROBE_ASM() leaves to who writes it, a register has the width of its name; all else is a
/// word.
std::uint32_t unwritten_size(const ArgSpec& spec, const arch::Arch& arch) {
  const auto* operand = std::get_if<RegOperand>(&spec.operand);
  const arch::Register* reg = operand != nullptr ? arch.find(operand->name) : nullptr;
  const bool fixed = reg == nullptr || reg->reg_class == arch::RegClass::fp;
  return fixed ? arch.word_size : std::min<std::uint32_t>(arch.word_size, reg->bits / 8U);
}

}  // namespace

Resolver::Resolver(ArgSpec spec, const arch::Arch& arch, const elf::SymbolIndex* symbols, VirtAddr pc)
    : arch_(arch), symbols_(symbols), pc_(pc) {
  out_.arg.size = spec.size.value_or(unwritten_size(spec, arch));
  out_.arg.readable = true;
  out_.arg.spec = std::move(spec);
  out_.encoded.size = is_value_size(out_.arg.size) ? static_cast<std::uint8_t>(out_.arg.size) : std::uint8_t{0};
  out_.encoded.reg = USDT_REG_NONE;
  out_.encoded.index = USDT_REG_NONE;
  // The bits of a float are not a number to extend by sign.
  if (out_.arg.spec.is_float) {
    add_flags(USDT_ARG_FLOAT);
  } else if (out_.arg.spec.is_signed) {
    add_flags(USDT_ARG_SIGNED);
  }
}

ResolvedArg Resolver::run() && {
  const ArgSpec& spec = out_.arg.spec;
  if (spec.unreadable) {
    reject(spec.unreadable->reason);
    out_.arg.reason_column = spec.unreadable->column;
  } else if (std::holds_alternative<std::monostate>(spec.operand)) {
    reject("operand not understood");
  } else {
    check_size();
  }
  std::visit([this](const auto& operand) { resolve(operand); }, spec.operand);
  if (!out_.arg.readable) {
    out_.encoded = {.value = 0,
                    .kind = USDT_ARG_UNREADABLE,
                    .flags = 0,
                    .size = out_.encoded.size,
                    .reg = USDT_REG_NONE,
                    .index = USDT_REG_NONE,
                    .shift = 0,
                    .capture = 0,
                    .window = 0};
  }
  return std::move(out_);
}

void Resolver::check_size() {
  const Arg& arg = out_.arg;
  if (arg.spec.is_float && arg.size != 4 && arg.size != 8) {
    reject(fmt::format("{}-byte float: only float and double, 4 and 8 bytes, can be read", arg.size));
  } else if (!is_value_size(arg.size)) {
    reject(fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", arg.size));
  }
}

void Resolver::constant(std::uint64_t bits) {
  if (!out_.arg.readable) return;
  out_.encoded.kind = USDT_ARG_CONST;
  out_.encoded.value = cut(bits, out_.arg.size, (out_.encoded.flags & USDT_ARG_SIGNED) != 0);
}

void Resolver::resolve(const ConstOperand& operand) {
  if (operand.symbol) {
    symbol_constant(operand);
    return;
  }
  const std::uint32_t bytes = std::clamp<std::uint32_t>(out_.arg.size, 1, 8);
  out_.arg.const_bits = cut(operand.bits(), bytes, out_.arg.spec.is_signed);
  constant(operand.bits());
}

/// `$sym+4`: the address itself, wherever the file is loaded; `$sym@GOTOFF`: a distance, known from the file alone.
void Resolver::symbol_constant(const ConstOperand& operand) {
  const SymbolRef& symbol = *operand.symbol;
  const Reloc reloc = reloc_kind(symbol.reloc);
  need("symbol");
  if (reloc == Reloc::got_offset) need("got");
  if (is_thread_local(reloc)) need("segment-base");
  if (!out_.arg.readable) return;
  if (reloc != Reloc::plain && reloc != Reloc::got_offset) {
    reject(fmt::format("constant of symbol '{}' with relocation '{}' is not supported", symbol.name, symbol.reloc),
           symbol.reloc);
    return;
  }
  const auto address = symbol_address(symbol);
  if (!address) return;
  if (reloc == Reloc::got_offset) {
    if (const auto got = got_address(symbol)) constant(*address - *got + operand.bits());
    return;
  }
  out_.encoded.kind = USDT_ARG_ADDR;
  if (arch_.machine == Machine::i386) add_flags(USDT_ARG_ADDR32);
  relative_to_ip(*address + operand.bits());
}

void Resolver::resolve(const RegOperand& operand) {
  RegInfo& info = out_.arg.reg;
  info.name = info.canon = operand.name;
  const arch::Register* reg = arch_.find(operand.name);
  if (reg == nullptr) {
    reject(fmt::format("no register '{}' on {}", operand.name, to_string(arch_.machine)), operand.name);
    return;
  }
  info.canon = reg->canon;
  info.bits = reg->bits;
  info.shift = reg->shift;
  info.floating = reg->reg_class == arch::RegClass::fp;
  switch (reg->reg_class) {
    case arch::RegClass::gpr:
    case arch::RegClass::ip:
      general_register(*reg);
      break;
    case arch::RegClass::zero:
      constant(0);
      break;
    case arch::RegClass::fp:
      reject(fmt::format("in vector register {}, which the kernel does not hand to probes", reg->name), reg->name);
      break;
    case arch::RegClass::segment:
      reject(fmt::format("in segment register {}, which the kernel does not hand to probes", reg->name), reg->name);
      break;
  }
}

void Resolver::general_register(const arch::Register& reg) {
  const std::uint32_t size = out_.arg.size;
  if (arch_.machine == Machine::i386 && size == 8 && reg.bits == 32 && !arch::i386_pair_high(reg.canon).empty()) {
    register_pair(reg);
    return;
  }
  if (8 * static_cast<std::uint64_t>(size) > reg.bits) {
    reject(fmt::format("{} bytes do not fit the {}-bit register {}", size, reg.bits, reg.name), reg.name);
  }
  if (!out_.arg.readable) return;
  if (reg.reg_class == arch::RegClass::ip) {
    // As an address, so that a breakpoint put behind the site's first byte is corrected like any other.
    out_.encoded.kind = USDT_ARG_ADDR;
    if (arch_.machine == Machine::i386) add_flags(USDT_ARG_ADDR32);
    relative_to_ip(pc_.value);
    return;
  }
  out_.encoded.kind = USDT_ARG_REG;
  out_.encoded.reg = static_cast<std::uint8_t>(reg.pt_regs_word);
  out_.encoded.shift = reg.shift;
}

/// GCC prints only the lower register of a pair; the upper one follows from GCC's register order. Other compilers
/// order theirs otherwise, so that the file has to show that GCC alone made it.
void Resolver::register_pair(const arch::Register& reg) {
  out_.arg.pair_high = arch::i386_pair_high(reg.canon);
  need("reg-pair");
  if (!out_.arg.readable) return;
  const auto compilers = symbols_ != nullptr ? symbols_->compilers() : elf::SymbolIndex::Compilers{};
  if (!compilers.gcc || compilers.clang) {
    reject(fmt::format("8 bytes in the 32-bit register {}: its other half is in {} if GCC made this code, which the "
                       "file does not show",
                       reg.name, out_.arg.pair_high),
           reg.name);
    return;
  }
  out_.encoded.kind = USDT_ARG_REG;
  add_flags(USDT_ARG_PAIR);
  out_.encoded.reg = static_cast<std::uint8_t>(reg.pt_regs_word);
  out_.encoded.index = static_cast<std::uint8_t>(arch_.find(out_.arg.pair_high)->pt_regs_word);
}

std::optional<std::uint64_t> Resolver::answer(const Result<VirtAddr>& found, const SymbolRef& symbol) {
  if (found) return found->value;
  reject(found.error().message, symbol.name);
  return std::nullopt;
}

std::optional<std::uint64_t> Resolver::symbol_address(const SymbolRef& symbol) {
  if (symbols_ != nullptr) return answer(symbols_->address(symbol.name), symbol);
  reject(fmt::format("symbol '{}' has an address only in a linked file", symbol.name), symbol.name);
  return std::nullopt;
}

std::optional<std::uint64_t> Resolver::slot_address(const SymbolRef& symbol) {
  if (symbols_ == nullptr) return symbol_address(symbol);
  return answer(symbols_->got_slot(symbol.name), symbol);
}

std::optional<std::uint64_t> Resolver::got_address(const SymbolRef& symbol) {
  if (symbols_ == nullptr) return symbol_address(symbol);
  return answer(symbols_->global_offset_table(), symbol);
}

std::optional<std::uint64_t> Resolver::thread_offset(const SymbolRef& symbol, bool dynamic) {
  if (symbols_ == nullptr) return symbol_address(symbol);
  const auto found = dynamic ? symbols_->thread_base_offset(symbol.name) : symbols_->thread_pointer_offset(symbol.name);
  if (found) return *found;
  reject(found.error().message, symbol.name);
  return std::nullopt;
}

void Resolver::relative_to_ip(std::uint64_t address) {
  add_flags(USDT_ARG_IP);
  out_.encoded.value = address - pc_.value;
}

void Resolver::need(std::string_view what) { out_.arg.needs.emplace_back(what); }

bool Resolver::reject(std::string reason, std::string_view token) {
  Arg& arg = out_.arg;
  if (!arg.readable) return false;
  arg.readable = false;
  arg.reason = std::move(reason);
  // Not std::string::find(): its time is the product of both lengths, glibc's memmem(3) takes their sum.
  const std::string& text = arg.spec.text;
  arg.reason_column = arg.spec.column;
  if (token.empty()) return false;
  const void* at = ::memmem(text.data(), text.size(), token.data(), token.size());
  if (at != nullptr) arg.reason_column += static_cast<std::uint32_t>(static_cast<const char*>(at) - text.data());
  return false;
}

ResolvedArg resolve_arg(ArgSpec spec, const arch::Arch& arch, const elf::SymbolIndex* symbols, VirtAddr pc) {
  return Resolver(std::move(spec), arch, symbols, pc).run();
}

}  // namespace usdt::plan
