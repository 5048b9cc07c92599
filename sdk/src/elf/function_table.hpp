// SPDX-License-Identifier: BSD-2-Clause
// The entries of functions in all symbol tables of a file, its debug file's included.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "elf/elf_impl.hpp"
#include "elf/symbol_versions.hpp"
#include "usdt/stop.hpp"

namespace usdt::elf {

/// A function's entry in a symbol table. The strings are the table's.
struct FunctionEntry {
  std::uint64_t address;
  std::uint64_t size;
  std::string_view symbol;
  std::string_view version;
  std::uint8_t binding;  ///< STB_LOCAL, ...
  bool ifunc;
  bool wanted = false;  ///< for whoever looks for some
};

/// Reads, on construction, .symtab and .dynsym; where there is no .symtab also that of the separate debug file, else of
/// .gnu_debugdata, else the table of Go's runtime (go_functions.hpp). One function can have several entries.
class FunctionTable {
 public:
  FunctionTable(const OpenedFile& main, const StopToken& stop);

  std::vector<FunctionEntry> entries;
  /// Parts of functions that are no functions to the symbol table (sections of basic blocks, which Clang makes).
  std::vector<FunctionEntry> blocks;
  /// Whether there was a .symtab or the like, which has the functions that are not exported too.
  bool has_symtab = false;

  /// How much was read at most: what the file and its debug file have stored, in bytes.
  std::uint64_t stored = 0;

  /// Whether the caller, or who opened the file, wants to hear no more.
  [[nodiscard]] bool stopped() const noexcept { return stop_.stop_requested() || main_.options.stop.stop_requested(); }

 private:
  void read(const File& file, const Image& image, std::uint64_t shift);
  void read_go(const OpenedFile& main);
  void read_table(const SymbolTable& table, std::uint32_t number, const SymbolVersions& versions, std::uint64_t shift);

  const OpenedFile& main_;
  StopToken stop_;
  std::vector<std::shared_ptr<const StringTable>> strings_;
  std::shared_ptr<const Bytes> go_names_;
  std::vector<SymbolVersions> versions_;
};

}  // namespace usdt::elf
