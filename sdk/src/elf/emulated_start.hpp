// SPDX-License-Identifier: BSD-2-Clause
// A cheaper place for the breakpoint of a function's entry.
#pragma once

#include <optional>

#include "elf/function_pieces.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/function.hpp"

namespace usdt::elf {

/// An instruction behind the one at `start`, the first of `function`, that the kernel emulates where it would step that
/// one, which takes a second trap; none where it is not certain that it is the same to run a program there: each call
/// comes by once, with the arguments, the stack pointer and the memory as the caller left them. Certain is that of the
/// code of compilers, not of assembler, which may jump into other functions. `pieces`: see flow_of().
[[nodiscard]] std::optional<VirtAddr> emulated_start(const ElfFile& file, const Function& function,
                                                     const FunctionPieces* pieces, VirtAddr start);

}  // namespace usdt::elf
