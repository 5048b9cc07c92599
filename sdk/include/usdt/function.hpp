// SPDX-License-Identifier: BSD-2-Clause
// Function, one function of an ELF file as its symbol tables name it. find_probes() (probe_file.hpp) makes
// FunctionPoints of functions that patterns mean. Threads: a plain value that owns its strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "usdt/address.hpp"
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

/// Describes a function of an ELF file, as its symbol tables name it. Owns its strings.
struct Function {
  /// The symbol as the table has it, without the version: "_ZN2ns6Server6handleEi".
  std::string symbol;
  /// The name as its programmer wrote it, with the parameter list and without the type of the result:
  /// "ns::Server::handle(int)". The symbol itself if that is not mangled, or is too long or too intricate to be
  /// demangled.
  std::string name;
  /// Other symbols at this address, at most 8; symbols that were asked for come first.
  std::vector<std::string> aliases;
  /// The address of its first instruction; for an indirect function that of the resolver.
  VirtAddr address;
  std::uint64_t size = 0;  ///< bytes; 0 where the table does not say
  /// The file offset of the first instruction; absent: the file has no code there (separate debug files).
  std::optional<FileOffset> offset;
  bool local = false;  ///< seen only in its own object file: static, or hidden by the linker
  /// Whether it is an indirect function (STT_GNU_IFUNC): at the address is not the function but its resolver, which
  /// runs once in a process and returns the address of the function that callers reach. The functions have symbols of
  /// their own, in files that are not stripped.
  bool ifunc = false;
  std::string version;  ///< of the symbol, "GLIBC_2.14"; empty where it has none
  /// The size in bytes of the instruction that allows indirect jumps here (endbr64, endbr32, bti), if the function
  /// begins with one; else 0.
  std::uint8_t landing_pad = 0;
  SiteBytes bytes;
  SiteClass site_class = SiteClass::unknown;  ///< of the first instruction
};

}  // namespace v1
}  // namespace usdt
