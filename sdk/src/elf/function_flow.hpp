// SPDX-License-Identifier: BSD-2-Clause
// How a function's code is entered and left, by its instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/function_pieces.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/function.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

struct FunctionFlow {
  std::vector<VirtAddr> returns;   ///< its RET instructions
  std::vector<VirtAddr> targets;   ///< of its jumps and branches, inside and away
  std::vector<VirtAddr> away;      ///< those of `targets` that are code of others
  std::vector<VirtAddr> called;    ///< by its calls that say where they lead
  std::size_t jumps_away = 0;      ///< jumps and branches to code of others: what they lead to returns to the caller
  std::size_t jumps_by_value = 0;  ///< jumps to where a register or memory says: within the function, or away
  std::size_t jumps_by_table = 0;  ///< the same where it is known to be within: a switch
  bool calls_by_value = false;     ///< it calls what a register or memory says
  bool calls_kernel = false;       ///< it has a system call
  /// Go: the instruction behind the check for room on the stack. Where there is too little the function begins anew on
  /// a larger one, so that this is the first place that each call comes by once. Nothing: it has no such check.
  std::optional<VirtAddr> checked;

  /// Each of its returns is one of `returns`.
  [[nodiscard]] bool returns_itself() const noexcept {
    return !returns.empty() && jumps_away == 0 && jumps_by_value == 0;
  }
};

/// Tells apart the instructions of `function`, from its first to its last byte, and those of its other parts: what
/// `pieces` has, which may be null, and `others`. Jumps among them do not lead away; nor does one to a copy
/// (is_clone()) that nothing else in the file leads to. What is an instruction is told by the ways from the first one;
/// where some lead nobody knows where, or handlers of exceptions may be in the function, by all bytes of it: else what
/// no way leads to may be a table. A RET behind which a call of the function itself goes on is none. Errors:
/// not_supported (its size is not known; the code is not in this file; x86 in a static build), malformed (what is there
/// is not all instructions).
[[nodiscard]] Result<FunctionFlow> flow_of(const ElfFile& file, const Function& function, const FunctionPieces* pieces,
                                           const std::vector<CodePart>& others = {});

/// Whether some bytes of `function` could be a jump to `first` or one of the bytes from there to `last`. False is
/// certain, and quickly told; whether instructions are there says flow_of().
[[nodiscard]] bool may_jump_to(const ElfFile& file, const Function& function, VirtAddr first, VirtAddr last);

}  // namespace usdt::elf
