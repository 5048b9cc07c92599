// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace usdt {
inline namespace v1 {

/// A function of the running kernel, or a BPF program in it.
struct KernelSymbol {
  std::string name;
  std::string module;          ///< empty: vmlinux
  std::uint64_t distance = 0;  ///< bytes from its start to the address
};

/// Names of addresses in the running kernel, from /proc/kallsyms, which is read at the first question.
class KernelSymbols {
 public:
  KernelSymbols();
  KernelSymbols(KernelSymbols&&) noexcept;
  KernelSymbols& operator=(KernelSymbols&&) noexcept;
  ~KernelSymbols();

  /// "vfs_read+0x1a", "nft_do_chain+0x40 [nf_tables]", "bpf_prog_7f7d210790e324e5_hit+0x4a [bpf]"; the number where no
  /// symbol is known, or addresses are hidden.
  [[nodiscard]] std::string name(std::uint64_t address);
  /// The same in parts; nothing where no symbol is known.
  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
