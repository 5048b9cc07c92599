// SPDX-License-Identifier: BSD-2-Clause
// A small linked ELF file of any machine, made in the test, with symbols at addresses the test chooses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "usdt/elf_file.hpp"
#include "usdt/machine.hpp"

namespace usdt::test {

struct TinySymbol {
  std::string name;
  std::uint64_t value = 0;
  std::uint8_t type = 1;  ///< STT_OBJECT
  bool defined = true;
};

/// A slot of the global offset table that the dynamic linker fills with the address of `name`.
struct TinySlot {
  std::string name;
  std::uint64_t address = 0;
};

/// Code at kText (file offset kTextOffset), data and GOT from kData on.
struct TinyElf {
  static constexpr std::uint64_t kText = 0x11000;
  static constexpr std::uint64_t kTextOffset = 0x1000;
  static constexpr std::uint64_t kData = 0x14000;
  static constexpr std::uint64_t kGot = 0x14800;

  Machine machine = Machine::x86_64;
  std::string comment = "GCC: (Debian 12.2.0-14) 12.2.0";
  std::vector<TinySymbol> symbols = {};
  std::vector<TinySlot> slots = {};
  std::string text = {};  ///< the first bytes of the code
  bool program = false;   ///< ET_EXEC; else a shared library
  /// Bytes and alignment of the thread-local segment.
  std::uint64_t tls_size = 0x29;
  std::uint64_t tls_align = 0x10;

  /// Writes the file and opens it.
  [[nodiscard]] std::shared_ptr<const ElfFile> open() const;
};

/// The symbols and slots the tests of this directory use, for `machine`.
[[nodiscard]] TinyElf sample_elf(Machine machine);

}  // namespace usdt::test
