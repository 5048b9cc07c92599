// SPDX-License-Identifier: BSD-2-Clause
// Registers and memory of a task stopped at a site, and the meaning of an encoded spec as bpf/include/usdt/bpf/spec.h
// states it, so that encodings are judged by the values they yield.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "arch/arch.hpp"
#include "elf/symbols.hpp"
#include "resolve/encode.hpp"

namespace usdt::test {

struct FakeTask {
  explicit FakeTask(Machine machine) : arch(arch::for_machine(machine)) {}

  /// Sets the whole 8-byte word that holds register `name`.
  void set(std::string_view name, std::uint64_t value);
  void set_ip(std::uint64_t value) { words[static_cast<std::size_t>(arch.ip_word)] = value; }
  /// Stores the `size` low bytes of `value` at `address`, and nothing around them.
  void store(std::uint64_t address, std::uint64_t value, unsigned size);

  /// The value `spec` yields; empty where it cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> read(const usdt_arg_spec& spec) const;

  const arch::Arch& arch;
  std::array<std::uint64_t, 34> words{};
  std::map<std::uint64_t, std::uint8_t> memory;
  std::uint64_t thread_pointer = 0;

 private:
  [[nodiscard]] std::uint64_t address(const usdt_arg_spec& spec) const;
  [[nodiscard]] std::optional<std::uint64_t> load(std::uint64_t address, unsigned size) const;
};

/// An argument, and what BPF programs read of it.
struct Resolved {
  Arg arg;
  usdt_arg_spec encoded;
};

/// Resolves the one argument of `text`, for a breakpoint at the site itself, `pc`.
[[nodiscard]] Resolved resolve_text(std::string_view text, Machine machine, const elf::SymbolIndex* symbols = nullptr,
                                    VirtAddr pc = {});

}  // namespace usdt::test
