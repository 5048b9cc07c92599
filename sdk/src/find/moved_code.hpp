// SPDX-License-Identifier: BSD-2-Clause
// Code that processes no longer run from their files. Private to find/.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "find/loaded_file.hpp"
#include "usdt/select.hpp"

namespace usdt::find {

/// Names the place where a probe is, or would be.
struct CodePlace {
  FileOffset offset = {};
  VirtAddr pc = {};
  std::string name = {};
};

/// Says which of `places` of a file the process runs from other memory than the file's. Empty: none.
[[nodiscard]] std::string moved_text(const LoadedCode& code, const TargetFile& target, const ElfFile& elf,
                                     const std::vector<CodePlace>& places);

/// Adds a warning to each file of `selection` some of whose points `pids` run from other memory than the file's, as
/// where text was moved to huge pages: a breakpoint in the file is not in that memory.
void warn_of_moved_code(const std::vector<pid_t>& pids, const StopToken& stop, Selection& selection);

}  // namespace usdt::find
