// SPDX-License-Identifier: BSD-2-Clause
// What the dynamic loader reads of an ELF file: which libraries it wants and where it says to look for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "usdt/machine.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

struct DynamicInfo {
  Machine machine{};
  bool is64 = false;
  std::string interpreter;          ///< PT_INTERP: the dynamic loader's path; empty for libraries and static programs
  std::vector<std::string> needed;  ///< DT_NEEDED, in file order
  std::string rpath;                ///< DT_RPATH: directories joined by ':', as written
  std::string runpath;              ///< DT_RUNPATH, likewise; the loader ignores DT_RPATH where it is present
};

/// Reads the program headers and the dynamic segment of `path`, never its section headers: so stripped files answer
/// too. A file without a dynamic segment answers with empty fields. Errors: those of ElfFile::open.
[[nodiscard]] Result<DynamicInfo> read_dynamic(const std::filesystem::path& path);

}  // namespace usdt::elf
