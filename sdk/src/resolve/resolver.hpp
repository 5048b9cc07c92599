// SPDX-License-Identifier: BSD-2-Clause
// Resolves the text of a note's argument to {Type, Location}. Private to resolve/ and its tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "arch/arch.hpp"
#include "arch/dialect.hpp"
#include "elf/symbols.hpp"
#include "usdt/arg.hpp"
#include "usdt/operand.hpp"

namespace usdt::resolve {

/// Tells what a relocation operator makes of its symbol.
enum class Reloc : std::uint8_t {
  plain,
  got_pcrel,
  got,
  got_offset,
  lo12,
  got_lo12,
  tp_offset,           ///< x86-64 @tpoff: from the thread pointer
  ntp_offset,          ///< i386 @ntpoff: likewise
  dtp_offset,          ///< @dtpoff: from the start of the module's thread-local block
  other_thread_local,  ///< slots and halves of such offsets
  unknown,
};
[[nodiscard]] Reloc reloc_kind(std::string_view name) noexcept;
[[nodiscard]] constexpr bool is_thread_local(Reloc reloc) noexcept {
  return reloc >= Reloc::tp_offset && reloc <= Reloc::other_thread_local;
}

/// Resolves one argument; `symbols` may be null. The first thing that rules a value out is its reason.
[[nodiscard]] Arg resolve_arg(const ParsedArg& parsed, const arch::Arch& arch, const elf::SymbolIndex* symbols);

/// The working state of resolve_arg().
class Resolver {
 public:
  Resolver(const ParsedArg& parsed, const arch::Arch& arch, const elf::SymbolIndex* symbols)
      : parsed_(parsed), arch_(arch), symbols_(symbols) {}
  [[nodiscard]] Arg run();

 private:
  /// A number looked up in the file, or why there is none.
  using Found = tl::expected<std::uint64_t, Unreadable>;
  using Addressed = tl::expected<Memory, Unreadable>;

  [[nodiscard]] std::optional<Unreadable> bad_size() const;
  [[nodiscard]] Location locate(std::monostate) const;
  [[nodiscard]] Location locate(const ConstOperand& operand) const;
  [[nodiscard]] Location locate(const RegOperand& operand) const;
  [[nodiscard]] Location locate(const MemOperand& operand) const;

  // These are in resolve.cpp: constants and registers.
  [[nodiscard]] Location constant(std::uint64_t bits) const;
  [[nodiscard]] Location symbol_constant(const ConstOperand& operand) const;
  [[nodiscard]] Location general_register(const arch::Register& reg) const;
  [[nodiscard]] Location register_pair(const arch::Register& reg) const;

  // These are in resolve_memory.cpp: operands in memory.
  [[nodiscard]] tl::expected<arch::AddressRegisters, Unreadable> registers_of(const MemOperand& operand) const;
  [[nodiscard]] Addressed symbolic(const MemOperand& operand, arch::AddressRegisters regs, Memory memory) const;
  [[nodiscard]] Addressed thread_local_symbol(const MemOperand& operand, arch::AddressRegisters regs, Reloc reloc,
                                              Memory memory) const;
  [[nodiscard]] Addressed plain_symbol(std::uint64_t address, arch::AddressRegisters regs, Memory memory) const;
  [[nodiscard]] Addressed got_slot(const MemOperand& operand, bool relative_to_base, Memory memory) const;
  [[nodiscard]] Addressed page_offset(const MemOperand& operand, arch::AddressRegisters regs, const Found& address,
                                      Memory memory) const;

  [[nodiscard]] Found symbol_address(const SymbolRef& symbol) const;
  [[nodiscard]] Found slot_address(const SymbolRef& symbol) const;
  [[nodiscard]] Found got_address(const SymbolRef& symbol) const;
  /// Returns the offset of a thread-local symbol: @dtpoff or @tpoff.
  [[nodiscard]] Found thread_offset(const SymbolRef& symbol, bool dynamic) const;
  [[nodiscard]] Found answer(const Result<VirtAddr>& found, const SymbolRef& symbol) const;

  /// Says that the value cannot be had, because of `token` of the argument's text.
  [[nodiscard]] Unreadable because(std::string reason, std::string_view token = {}) const;

  const ParsedArg& parsed_;
  const arch::Arch& arch_;
  const elf::SymbolIndex* symbols_;
  Type type_;
};

}  // namespace usdt::resolve
