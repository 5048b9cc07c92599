// SPDX-License-Identifier: BSD-2-Clause
// The functions of an ELF file by name.
#pragma once

#include <span>
#include <vector>

#include "elf/function_name.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/function.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::elf {

/// The functions that one of `names` means: those of .symtab and .dynsym, and of a stripped file also those of the
/// separate debug file's .symtab, else of .gnu_debugdata. Sorted by address, one for each address; overloads and static
/// functions of one name are several. What is undefined here, such as an entry of the PLT, is not among them. Errors:
/// not_supported (relocatable objects and archives, whose functions have no addresses), stopped (`stop`, or that of
/// OpenOptions, was requested).
[[nodiscard]] Result<std::vector<Function>> find_functions(const ElfFile& file, std::span<const FunctionName> names,
                                                           const StopToken& stop = {});

}  // namespace usdt::elf
