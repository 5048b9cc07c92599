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

/// Bytes that look like an instruction that leads into the midst of a function from elsewhere.
struct Lead {
  VirtAddr from;
  VirtAddr to;
};

/// Returns the leads into `parts`, which are sorted by address: all bytes that could be such an instruction, as above;
/// flow_of() says whether they are one. None of files with more than 64 MB of code.
[[nodiscard]] std::vector<Lead> leads_into(const ElfFile& file, const std::vector<CodePart>& parts);

}  // namespace usdt::elf
