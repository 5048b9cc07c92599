// SPDX-License-Identifier: BSD-2-Clause
// The first bytes of a file: enough to tell an ELF file, an ar archive and a "#!" script apart without opening more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "usdt/machine.hpp"

namespace usdt::proc {

enum class FileFormat : std::uint8_t { other, elf, archive, script };

/// The fields that the loader compares before it maps a library.
struct ElfIdent {
  std::uint8_t elf_class = 0;  ///< EI_CLASS: 1 is 32-bit, 2 is 64-bit
  std::uint8_t data = 0;       ///< EI_DATA: 1 is little-endian
  std::uint16_t machine = 0;   ///< e_machine

  friend bool operator==(const ElfIdent&, const ElfIdent&) = default;
};

/// The ident of programs of this host's own (widest) ABI.
[[nodiscard]] ElfIdent host_ident() noexcept;
/// The ident of programs of `machine`.
[[nodiscard]] ElfIdent ident_of(Machine machine) noexcept;

struct FileHead {
  FileFormat format = FileFormat::other;
  ElfIdent ident;           ///< for FileFormat::elf with a whole header
  std::string script_line;  ///< for FileFormat::script: what follows "#!", up to the line's end
};

/// Reads the head of the regular file `path` (relative to the directory descriptor `dir`, AT_FDCWD by default).
/// Absent, with errno set, if it cannot be opened or is not a regular file. Never blocks on a FIFO or a device.
[[nodiscard]] std::optional<FileHead> read_head(const char* path);
[[nodiscard]] std::optional<FileHead> read_head_at(int dir, const char* path);

}  // namespace usdt::proc
