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

/// Hints for a name that find_functions() did not find.
struct FunctionHints {
  std::vector<std::string> near;  ///< names near to it
  std::string stripped;           ///< where the functions of a stripped file are: a sentence without a full stop
};
[[nodiscard]] FunctionHints hints_for_function(const ElfFile& file, const FunctionName& name,
                                               const StopToken& stop = {});

/// Returns where to put a probe `distance` bytes into `function` of `file`. A breakpoint within an instruction changes
/// what the program does, so instructions are decoded from the function's start on. Errors: invalid_argument (within an
/// instruction: the message has the places around it; beyond the function's end), not_supported (no code of it in this
/// file; what lies before is not all instructions; x86 in a static build, which has no zydis).
[[nodiscard]] Result<FileOffset> place_in_function(const ElfFile& file, const Function& function,
                                                   std::uint64_t distance);

}  // namespace usdt::elf
