// SPDX-License-Identifier: BSD-2-Clause
// What the planner asks an ELF file about symbols. libelf stays behind this header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

/// Answers by name, built lazily from .symtab, .dynsym and the separate debug file's .symtab, in one index.
/// Holds what it needs by value: it may outlive the ElfFile.
class SymbolIndex {
 public:
  /// Never fails: a file without symbols answers "not found" to everything.
  explicit SymbolIndex(const ElfFile& file);
  SymbolIndex(SymbolIndex&&) noexcept;
  SymbolIndex& operator=(SymbolIndex&&) noexcept;
  ~SymbolIndex();

  /// The one defined address of `name`. Several table entries with the same address (aliases, .symtab and
  /// .dynsym, symbol versions "name@@V") are one answer. Errors: not_found ("symbol 'x' is in neither
  /// .symtab nor .dynsym nor a debug file"), invalid_argument (two addresses: "symbol 'x' has 2 addresses:
  /// 0x.., 0x..": which one is meant cannot be told), not_supported (a thread-local or ifunc symbol, or
  /// one that is undefined here and so lives in another file).
  [[nodiscard]] Result<VirtAddr> address(std::string_view name) const;

  /// Whether any table names it, so that address() has to be asked for it or for the reason why it has none. That a
  /// name is nowhere is known at once here; address() then looks for the package that would have it, which takes long.
  [[nodiscard]] bool has(std::string_view name) const;

  /// True for a program, false for a library: what a process is started from, not what it loads.
  [[nodiscard]] bool is_program() const noexcept;
  /// True where addresses in processes are those of the file: ET_EXEC.
  [[nodiscard]] bool is_loaded_as_linked() const noexcept;

  /// Address of the GOT slot that holds the address of `name`: from GLOB_DAT relocations of .rel(a).dyn, else a
  /// RELATIVE one or static .got word equal to the symbol's address. not_found where there is none.
  [[nodiscard]] Result<VirtAddr> got_slot(std::string_view name) const;

  /// _GLOBAL_OFFSET_TABLE_: what i386 @GOTOFF and @GOT are relative to (the symbol, else DT_PLTGOT, else
  /// .got.plt, else .got).
  [[nodiscard]] Result<VirtAddr> global_offset_table() const;

  /// Which compilers' and linkers' marks .comment carries.
  struct Compilers {
    bool gcc = false;
    bool clang = false;
    bool other_linker = false;  ///< neither GNU ld nor gold, which leave no mark, nor LLD
  };
  [[nodiscard]] Compilers compilers() const noexcept;

 private:
  friend class ThreadOffsets;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Offsets of thread-local variables, in bytes; they are no addresses.
class ThreadOffsets {
 public:
  /// `symbols` outlives this.
  explicit ThreadOffsets(const SymbolIndex& symbols) noexcept : symbols_(symbols) {}

  /// Offset of the thread-local variable `name` in its module's block. Errors: those of SymbolIndex::address(), and
  /// not_supported for a symbol that is no such variable.
  [[nodiscard]] Result<std::uint64_t> in_block(std::string_view name) const;
  /// Its offset from the thread pointer, modulo 2^64: `name`@tpoff, `name`@ntpoff on i386; negative where the block is
  /// before the thread pointer (x86). Errors: those of in_block(), not_supported in a library, whose block is placed at
  /// run time.
  [[nodiscard]] Result<std::uint64_t> from_pointer(std::string_view name) const;
  /// `name`@dtpoff: what the linked code adds to the base it has in a register. That is the start of the block in a
  /// library, the thread pointer in a program. Errors: those of both.
  [[nodiscard]] Result<std::uint64_t> from_base(std::string_view name) const;

 private:
  const SymbolIndex& symbols_;
};

}  // namespace usdt::elf
