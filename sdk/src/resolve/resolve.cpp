// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "resolve/resolver.hpp"
#include "resolve/value_size.hpp"
#include "usdt/bits.hpp"

namespace usdt::resolve {
namespace {

/// Without `N@`, which STAP_PROBE_ASM() leaves to who writes it, a register has the width of its name; all else is a
/// word.
std::uint32_t unwritten_size(const ParsedArg& parsed, const arch::Arch& arch) {
  const auto* operand = std::get_if<RegOperand>(&parsed.operand);
  const arch::Register* reg = operand != nullptr ? arch.find(operand->name) : nullptr;
  const bool fixed = reg == nullptr || reg->reg_class == arch::RegClass::fp;
  return fixed ? arch.word_size : std::min<std::uint32_t>(arch.word_size, reg->bits / 8U);
}

Type type_of(const ParsedArg& parsed, const arch::Arch& arch) {
  return {.size = parsed.size ? *parsed.size : unwritten_size(parsed, arch),
          .is_signed = parsed.is_signed,
          .kind = parsed.is_float ? TypeKind::floating : TypeKind::integer};
}

/// GCC prints only the lower register of an 8-byte value on i386.
bool is_pair(const arch::Register& reg, const Type& type, const arch::Arch& arch) {
  return type.size == 8 && arch::pair_high(arch, reg) != RegisterId::none;
}

/// Finds the needs that the operand's text alone shows.
struct NeedsOf {
  const Type& type;
  const arch::Arch& arch;

  Needs operator()(std::monostate) const { return {}; }
  Needs operator()(const ConstOperand& operand) const {
    if (!operand.symbol) return {};
    const Reloc reloc = reloc_kind(operand.symbol->reloc);
    Needs needs{Need::symbol};
    if (reloc == Reloc::got_offset) needs.add(Need::got);
    if (is_thread_local(reloc)) needs.add(Need::segment_base);
    return needs;
  }
  Needs operator()(const RegOperand& operand) const {
    const arch::Register* reg = arch.find(operand.name);
    return reg != nullptr && is_pair(*reg, type, arch) ? Needs{Need::reg_pair} : Needs{};
  }
  Needs operator()(const MemOperand& operand) const {
    Needs needs;
    const Reloc reloc = operand.symbol ? reloc_kind(operand.symbol->reloc) : Reloc::plain;
    const bool got =
        reloc == Reloc::got || reloc == Reloc::got_pcrel || reloc == Reloc::got_offset || reloc == Reloc::got_lo12;
    if (operand.symbol) needs.add(Need::symbol);
    if (got) needs.add(Need::got);
    if (!operand.segment.empty() || reloc == Reloc::other_thread_local) needs.add(Need::segment_base);
    return needs;
  }
};

}  // namespace

Arg resolve_arg(const ParsedArg& parsed, const arch::Arch& arch, const elf::SymbolIndex* symbols) {
  return Resolver(parsed, arch, symbols).run();
}

Arg Resolver::run() {
  type_ = type_of(parsed_, arch_);
  Arg arg{.type = type_, .location = {}, .source = std::string(parsed_.text)};
  arg.needs = std::visit(NeedsOf{type_, arch_}, parsed_.operand);
  if (parsed_.unreadable) {
    arg.location = *parsed_.unreadable;
  } else if (auto bad = bad_size()) {
    arg.location = std::move(*bad);
  } else {
    arg.location = std::visit([this](const auto& operand) { return locate(operand); }, parsed_.operand);
  }
  return arg;
}

std::optional<Unreadable> Resolver::bad_size() const {
  if (type_.is_float() && type_.size != 4 && type_.size != 8)
    return because(fmt::format("{}-byte float: only float and double, 4 and 8 bytes, can be read", type_.size));
  if (!is_value_size(type_.size))
    return because(fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", type_.size));
  return std::nullopt;
}

Location Resolver::locate(std::monostate) const { return because("operand not understood"); }

Location Resolver::constant(std::uint64_t bits) const {
  return Constant{cut(bits, type_.size, type_.is_signed && !type_.is_float())};
}

Location Resolver::locate(const ConstOperand& operand) const {
  return operand.symbol ? symbol_constant(operand) : constant(operand.bits());
}

/// `$sym+4`: the address itself, wherever the file is loaded; `$sym@GOTOFF`: a distance, known from the file alone.
Location Resolver::symbol_constant(const ConstOperand& operand) const {
  const SymbolRef& symbol = *operand.symbol;
  const Reloc reloc = reloc_kind(symbol.reloc);
  if (reloc != Reloc::plain && reloc != Reloc::got_offset)
    return because(
        fmt::format("constant of symbol '{}' with relocation '{}' is not supported", symbol.name, symbol.reloc),
        symbol.reloc);
  const Found address = symbol_address(symbol);
  if (!address) return address.error();
  if (reloc == Reloc::got_offset) {
    const Found got = got_address(symbol);
    return got ? constant(*address - *got + operand.bits()) : Location(got.error());
  }
  return Memory{.displacement = *address + operand.bits(),
                .origin = Origin::file,
                .wraps_at_32_bits = arch_.wraps_at_32_bits,
                .is_value = true};
}

Location Resolver::locate(const RegOperand& operand) const {
  const arch::Register* reg = arch_.find(operand.name);
  if (reg == nullptr)
    return because(fmt::format("no register '{}' on {}", operand.name, to_string(arch_.machine)), operand.name);
  switch (reg->reg_class) {
    case arch::RegClass::gpr:
    case arch::RegClass::ip:
      return general_register(*reg);
    case arch::RegClass::zero:
      return constant(0);
    case arch::RegClass::fp:
      return because(fmt::format("in vector register {}, which the kernel does not hand to probes", reg->name),
                     reg->name);
    case arch::RegClass::segment:
      break;
  }
  return because(fmt::format("in segment register {}, which the kernel does not hand to probes", reg->name), reg->name);
}

Location Resolver::general_register(const arch::Register& reg) const {
  if (is_pair(reg, type_, arch_)) return register_pair(reg);
  if (8 * type_.size > reg.bits)
    return because(fmt::format("{} bytes do not fit the {}-bit register {}", type_.size, reg.bits, reg.name), reg.name);
  // As an address, so that a breakpoint put behind the site's first byte is corrected like any other.
  if (reg.reg_class == arch::RegClass::ip)
    return Memory{.origin = Origin::site, .wraps_at_32_bits = arch_.wraps_at_32_bits, .is_value = true};
  return Register{.id = arch_.id(reg)};
}

/// The upper register follows from GCC's register order. Other compilers order theirs otherwise, so that the file has
/// to show that GCC alone made it.
Location Resolver::register_pair(const arch::Register& reg) const {
  const RegisterId high = arch::pair_high(arch_, reg);
  const auto compilers = symbols_ != nullptr ? symbols_->compilers() : elf::SymbolIndex::Compilers{};
  if (!compilers.gcc || compilers.clang)
    return because(fmt::format("8 bytes in the 32-bit register {}: its other half is in {} if GCC made this code, "
                               "which the file does not show",
                               reg.name, arch_.reg(high).canon),
                   reg.name);
  return Register{.id = arch_.id(reg), .high = high};
}

Resolver::Found Resolver::answer(const Result<VirtAddr>& found, const SymbolRef& symbol) const {
  if (found) return found->value;
  return tl::unexpected(because(found.error().message, symbol.name));
}

Resolver::Found Resolver::symbol_address(const SymbolRef& symbol) const {
  if (symbols_ != nullptr) return answer(symbols_->address(symbol.name), symbol);
  return tl::unexpected(
      because(fmt::format("symbol '{}' has an address only in a linked file", symbol.name), symbol.name));
}

Resolver::Found Resolver::slot_address(const SymbolRef& symbol) const {
  return symbols_ == nullptr ? symbol_address(symbol) : answer(symbols_->got_slot(symbol.name), symbol);
}

Resolver::Found Resolver::got_address(const SymbolRef& symbol) const {
  return symbols_ == nullptr ? symbol_address(symbol) : answer(symbols_->global_offset_table(), symbol);
}

Resolver::Found Resolver::thread_offset(const SymbolRef& symbol, bool dynamic) const {
  if (symbols_ == nullptr) return symbol_address(symbol);
  const elf::ThreadOffsets offsets(*symbols_);
  const auto found = dynamic ? offsets.from_base(symbol.name) : offsets.from_pointer(symbol.name);
  if (found) return *found;
  return tl::unexpected(because(found.error().message, symbol.name));
}

Unreadable Resolver::because(std::string reason, std::string_view token) const {
  Unreadable unreadable{.reason = std::move(reason), .column = parsed_.column};
  const std::string_view text = parsed_.text;
  if (token.empty() || text.empty()) return unreadable;
  // Not std::string::find(): its time is the product of both lengths, glibc's memmem(3) takes their sum.
  const void* at = ::memmem(text.data(), text.size(), token.data(), token.size());
  if (at != nullptr) unreadable.column += static_cast<std::uint32_t>(static_cast<const char*>(at) - text.data());
  return unreadable;
}

}  // namespace usdt::resolve
