// SPDX-License-Identifier: BSD-2-Clause
// Names for addresses in the running kernel: KernelSymbols::name() for people, KernelSymbols::find() in parts.
//     usdt::KernelSymbols symbols;
//     print(symbols.name(address));   // "vfs_read+0x1a"
// Threads: one at a time. Make one object and keep it: each reads /proc/kallsyms once, which takes a while.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace usdt {
inline namespace v1 {

/// Names a function of the running kernel, or a BPF program in it.
struct KernelSymbol {
  std::string name;
  std::string module;          ///< empty: vmlinux
  std::uint64_t distance = 0;  ///< bytes from its start to the address
};

/// Finds names of addresses in the running kernel, in /proc/kallsyms, which it reads once, at the first question.
/// Symbols of modules that are loaded later are not known.
class KernelSymbols {
 public:
  KernelSymbols();
  KernelSymbols(KernelSymbols&&) noexcept;
  KernelSymbols& operator=(KernelSymbols&&) noexcept;
  ~KernelSymbols();

  /// Returns "vfs_read+0x1a", "nft_do_chain+0x40 [nf_tables]", "bpf_prog_7f7d210790e324e5_hit+0x4a [bpf]"; or the
  /// number in hexadecimal where no symbol is known, or addresses are hidden.
  [[nodiscard]] std::string name(std::uint64_t address);
  /// Returns the symbol at or before `address`. Nothing: none is known within 1 MiB before it.
  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
