// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "usdt/address.hpp"
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

/// A function of an ELF file, as its symbol tables name it. Owns its strings.
struct Function {
  /// As in the table, without the version: "_ZN2ns6Server6handleEi".
  std::string symbol;
  /// As its programmer wrote it, with the parameter list and without the type of the result: "ns::Server::handle(int)".
  /// The symbol itself where that is not mangled, or is too long or too intricate to be demangled.
  std::string name;
  /// Other symbols of the same address, at most 8, those that were asked for first.
  std::vector<std::string> aliases;
  /// Its first instruction; of an indirect function the resolver's.
  VirtAddr address;
  std::uint64_t size = 0;  ///< bytes; 0 where the table does not say
  /// File offset of the first instruction; absent where the file has no code there (separate debug files).
  std::optional<FileOffset> offset;
  bool local = false;  ///< seen only in its own object file: static, or hidden by the linker
  /// An indirect function (STT_GNU_IFUNC): what is at the address is not the function but its resolver, which runs once
  /// in a process and returns the address of the one that callers reach. Those have symbols of their own, in files that
  /// are not stripped.
  bool ifunc = false;
  std::string version;  ///< of the symbol, "GLIBC_2.14"; empty where it has none
  /// Bytes of the instruction that allows indirect jumps here (endbr64, endbr32, bti), where the function begins with
  /// one; 0 where not.
  std::uint8_t landing_pad = 0;
  SiteBytes bytes;
  SiteClass site_class = SiteClass::unknown;  ///< of the first instruction
};

}  // namespace v1
}  // namespace usdt
