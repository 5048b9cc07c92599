// SPDX-License-Identifier: BSD-2-Clause
// Who looks at the return address of a function, in whose place the kernel's return probe puts its own.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "elf/function_flow.hpp"
#include "elf/function_pieces.hpp"
#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/function.hpp"

namespace usdt::elf {

/// The RET instructions of functions that one jumps to instead of returning.
struct OthersReturns {
  std::vector<VirtAddr> returns;
  bool all = true;  ///< each return of the function is one of its own or of these
};

/// Finds the returns of functions that one with `flow` jumps to: a few functions of this file that have few of them.
[[nodiscard]] OthersReturns others_returns(const ElfFile& file, const FunctionFlow& flow, const FunctionPieces& pieces);

/// Looks at the functions of one file, at each once.
class ReturnAddresses {
 public:
  ReturnAddresses(const ElfFile& file, const FunctionPieces& pieces) : file_(file), pieces_(pieces) {}

  /// Whether nobody can look for the caller, and nothing can leave by another way, while the function runs: it and all
  /// that it leads to are a few functions of this file that read no return address, change no stack, and call neither
  /// the kernel nor what a register, memory or another file says. An exception, too, would have to come out of one of
  /// those.
  [[nodiscard]] bool nobody_looks(const Function& function);
  /// Whether the function, or one that it jumps to instead of returning, surely reads its own return address.
  [[nodiscard]] bool is_read(const Function& function);

 private:
  struct Looked {
    bool reads = false;      ///< surely
    bool may_read = false;   ///< or changes stacks
    bool leads_out = false;  ///< to what is not known
    std::vector<VirtAddr> called;
    std::vector<VirtAddr> away;
  };
  static constexpr std::size_t kMost = 16;  ///< functions that are looked at for one

  [[nodiscard]] const Looked& look(const Function& function);
  [[nodiscard]] const Looked* look_at(VirtAddr entry);

  const ElfFile& file_;
  const FunctionPieces& pieces_;
  std::map<VirtAddr, Looked> looked_;
};

}  // namespace usdt::elf
