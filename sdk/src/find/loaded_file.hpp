// SPDX-License-Identifier: BSD-2-Clause
// Where a process has a file's code. Private to find/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/elf_impl.hpp"
#include "proc/mapped_code.hpp"
#include "usdt/discover.hpp"

namespace usdt::find {

/// The executable mappings of one process, with respect to one file.
class LoadedFile {
 public:
  /// Nothing: `pid` has no code of the file, or may not be looked at.
  [[nodiscard]] static std::optional<LoadedFile> of(pid_t pid, const TargetFile& file, const elf::Image& image);

  [[nodiscard]] ProcessAddr in_process(VirtAddr address) const noexcept { return ProcessAddr(address.value + bias_); }
  [[nodiscard]] VirtAddr in_file(ProcessAddr address) const noexcept { return VirtAddr(address.value - bias_); }
  /// Whether these bytes of the file are mapped as code.
  [[nodiscard]] bool has(FileOffset offset) const noexcept;
  /// What is mapped as code at an address; null: nothing.
  [[nodiscard]] const proc::MappedCode* at(ProcessAddr address) const noexcept;
  /// The word at an address of the file's data in the process. Nothing: it cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> word_at(VirtAddr address) const;

 private:
  pid_t pid_ = 0;
  bool is64_ = true;
  std::uint64_t bias_ = 0;
  std::vector<proc::MappedCode> all_;
  std::vector<proc::Mapping> own_;
};

}  // namespace usdt::find
