// SPDX-License-Identifier: BSD-2-Clause
// Compilers, binutils and a temporary directory for tests on files that real tools made.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "usdt/elf_file.hpp"

namespace usdt::test {

/// A directory of its own, removed with everything in it at the end.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  /// Writes `text` to file `name` and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

/// What a shell command printed, and how it ended.
struct CommandResult {
  int status = -1;
  std::string output;  ///< stdout and stderr
};
/// Runs `command` in `dir`.
[[nodiscard]] CommandResult run_in(const TempDir& dir, const std::string& command);
/// The C compiler as a shell command, with sys/sdt.h in reach for -m32 too: it is installed for the host's machine.
inline constexpr std::string_view kCc = "cc -idirafter /usr/include/$(cc -print-multiarch)";
/// True when a C program for `flags` ("-m32") that includes sys/sdt.h can be built here.
[[nodiscard]] bool can_compile(const std::string& flags);
/// True when a C program for `flags` can be run here, too: not every x86-64 kernel starts programs of i386.
[[nodiscard]] bool can_run(const std::string& flags);

/// Opens and scans; a failure is an empty result and a failed test.
[[nodiscard]] ScanResult scan_file(const std::filesystem::path& path, const OpenOptions& options = {});
/// The error of an open that has to fail.
[[nodiscard]] Error open_error(const std::filesystem::path& path);

/// The whole of a file, and a file from bytes.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace usdt::test
