// SPDX-License-Identifier: BSD-2-Clause
// What leads to a place in a file's code.
#pragma once

#include <vector>

#include "elf/function_pieces.hpp"
#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::elf {

/// Whether nothing in the file leads to `target` but jumps that are in `parts`: no call at all, and no jump of other
/// code. All bytes that could be such an instruction are taken for one, so that true is certain. What takes the address
/// as a value is not seen.
[[nodiscard]] bool is_led_to_by(const ElfFile& file, VirtAddr target, const std::vector<CodePart>& parts);

}  // namespace usdt::elf
