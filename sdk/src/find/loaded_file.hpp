// SPDX-License-Identifier: BSD-2-Clause
// Finds where a process has the code of files. Private to find/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "elf/elf_impl.hpp"
#include "proc/file_id.hpp"
#include "proc/mapped_code.hpp"
#include "usdt/discover.hpp"

namespace usdt::find {

/// The executable mappings of one process, read once for however many files.
class LoadedCode {
 public:
  /// Nothing: `pid` has no code, or may not be looked at.
  [[nodiscard]] static std::optional<LoadedCode> of(pid_t pid);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Returns the mappings of one file, by address.
  [[nodiscard]] std::vector<proc::Mapping> of_file(proc::FileId file) const;
  /// Returns what is mapped as code at an address; null: nothing.
  [[nodiscard]] const proc::MappedCode* at(ProcessAddr address) const noexcept;

 private:
  pid_t pid_ = 0;
  std::vector<proc::MappedCode> all_;
  std::map<proc::FileId, std::vector<std::size_t>> of_file_;  ///< positions in all_
};

/// Finds where a process has the code of one file. Valid as long as the code it is of.
class LoadedFile {
 public:
  /// Nothing: the process has no code of the file.
  [[nodiscard]] static std::optional<LoadedFile> of(const LoadedCode& code, const TargetFile& file,
                                                    const elf::Image& image);

  [[nodiscard]] ProcessAddr in_process(VirtAddr address) const noexcept { return ProcessAddr(address.value + bias_); }
  [[nodiscard]] VirtAddr in_file(ProcessAddr address) const noexcept { return VirtAddr(address.value - bias_); }
  /// Whether these bytes of the file are mapped as code.
  [[nodiscard]] bool has(FileOffset offset) const noexcept;
  /// The word at an address of the file's data in the process. Nothing: it cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> word_at(VirtAddr address) const;

 private:
  pid_t pid_ = 0;
  bool is64_ = true;
  std::uint64_t bias_ = 0;
  std::vector<proc::Mapping> own_;
};

}  // namespace usdt::find
