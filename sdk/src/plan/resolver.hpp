// SPDX-License-Identifier: BSD-2-Clause
// The working state of resolve_arg(). Private to plan/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/encode.hpp"

namespace usdt::plan {

/// What a relocation operator makes of its symbol.
enum class Reloc : std::uint8_t {
  plain,
  got_pcrel,
  got,
  got_offset,
  lo12,
  got_lo12,
  tp_offset,           ///< x86-64 @tpoff: from the thread pointer
  ntp_offset,          ///< i386 @ntpoff: the same
  dtp_offset,          ///< @dtpoff: from the start of the module's thread-local block
  other_thread_local,  ///< slots and halves of such offsets
  unknown,
};
[[nodiscard]] Reloc reloc_kind(std::string_view name) noexcept;
[[nodiscard]] constexpr bool is_thread_local(Reloc reloc) noexcept {
  return reloc >= Reloc::tp_offset && reloc <= Reloc::other_thread_local;
}

/// Resolves one argument. What the text says is always described in Arg; the first thing that rules a value out
/// becomes its reason.
class Resolver {
 public:
  Resolver(ArgSpec spec, const arch::Arch& arch, const elf::SymbolIndex* symbols, VirtAddr pc);
  [[nodiscard]] ResolvedArg run() &&;

 private:
  struct AddressRegisters {
    const arch::Register* base = nullptr;   ///< null: none written
    const arch::Register* index = nullptr;  ///< null: none written
  };

  void resolve(std::monostate) {}
  void resolve(const ConstOperand& operand);
  void resolve(const RegOperand& operand);
  void resolve(const MemOperand& operand);

  // resolve.cpp: sizes, constants, registers.
  void check_size();
  void symbol_constant(const ConstOperand& operand);
  void general_register(const arch::Register& reg);
  void register_pair(const arch::Register& reg);
  void constant(std::uint64_t bits);

  // resolve_memory.cpp
  [[nodiscard]] AddressRegisters describe(const MemOperand& operand);
  [[nodiscard]] bool x86_address(const MemOperand& operand, AddressRegisters regs);
  [[nodiscard]] bool aarch64_address(const MemOperand& operand, AddressRegisters regs);
  void address(const MemOperand& operand, AddressRegisters regs);
  void symbolic_address(const MemOperand& operand, AddressRegisters regs);
  void thread_local_address(const MemOperand& operand, AddressRegisters regs, Reloc reloc);
  void plain_symbol(std::uint64_t address, AddressRegisters regs);
  void got_slot(const MemOperand& operand, bool relative_to_base);
  void page_offset(const MemOperand& operand, AddressRegisters regs, std::optional<std::uint64_t> address);

  /// Looked up in the file; an empty answer has been rejected with its reason.
  [[nodiscard]] std::optional<std::uint64_t> symbol_address(const SymbolRef& symbol);
  [[nodiscard]] std::optional<std::uint64_t> slot_address(const SymbolRef& symbol);
  [[nodiscard]] std::optional<std::uint64_t> got_address(const SymbolRef& symbol);
  /// Of a thread-local symbol: @dtpoff or @tpoff.
  [[nodiscard]] std::optional<std::uint64_t> thread_offset(const SymbolRef& symbol, bool dynamic);
  [[nodiscard]] std::optional<std::uint64_t> answer(const Result<VirtAddr>& found, const SymbolRef& symbol);

  /// Makes `address` (as linked) a location relative to the instruction pointer at the hit, whatever the load bias.
  void relative_to_ip(std::uint64_t address);
  void add_flags(unsigned flags) { out_.encoded.flags = static_cast<std::uint8_t>(out_.encoded.flags | flags); }
  void need(std::string_view what);
  /// The value cannot be had, because of `token` of the argument's text. The first reason given stays. Returns false.
  bool reject(std::string reason, std::string_view token = {});

  const arch::Arch& arch_;
  const elf::SymbolIndex* symbols_;
  VirtAddr pc_;
  ResolvedArg out_;
};

}  // namespace usdt::plan
