// SPDX-License-Identifier: BSD-2-Clause
// From the argument text of a note to Args: ArgDecoder::decode() finds where each argument of a site is, describe()
// adds the names and types that the provider tells, location_text() and register_info() show locations to people.
//     usdt::ArgDecoder decoder(file);                       // the file has to outlive it
//     for (const usdt::Site& site : scan.sites) std::vector<usdt::Arg> args = decoder.decode(site);
// Threads: any; several threads may use one decoder at once.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/machine.hpp"
#include "usdt/operand.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Describes a register under one of its names. The texts live as long as the program.
struct RegisterInfo {
  std::string_view name;   ///< "r10d"
  std::string_view canon;  ///< full register: "r10"; i386 "eax"; arm64 "x3", "v0"; riscv64 "a0"
  std::uint16_t bits = 0;  ///< width of the name
  std::uint8_t shift = 0;  ///< 8 for ah, bh, ch, dh
  bool floating = false;   ///< a vector or floating-point register
  bool instruction_pointer = false;
  /// i386: the full register where GCC keeps the upper half of an 8-byte value whose lower half is here; else empty.
  std::string_view pair_high;
};
/// Finds the register that notes of `machine` call `name`, in upper or lower case; nothing: it has none of that name.
[[nodiscard]] std::optional<RegisterInfo> find_register(Machine machine, std::string_view name) noexcept;
/// Returns the description of a Location's register; that of RegisterId::none is empty.
[[nodiscard]] RegisterInfo register_info(Machine machine, RegisterId id) noexcept;

/// Returns a location as the machine's assembler would write it: "rdi", "8(%rsp)", "[sp, 8]", "$5"; "slot 0"; empty: it
/// is unreadable.
[[nodiscard]] std::string location_text(const Location& location, Machine machine);

/// Gives the arguments of a site the names, types and meanings that its provider describes, as far as they fit the
/// sizes in the stapsdt note. A description of another number of arguments gives none.
void describe(std::vector<Arg>& args, const SiteDescription& description);

/// Says whether a text declares arguments as docs/provider-note.md has it ("took:duration[us], state:{0=idle,
/// 1=busy}"), all of which describe() takes. Errors: invalid_argument and limit, with the item that is wrong, and why.
[[nodiscard]] Result<void> check_declaration(std::string_view declared);

/// Decodes the argument texts of a file's sites. Symbolic operands are resolved in the file's own tables.
class ArgDecoder {
 public:
  /// Makes a decoder that reads symbols of `file` when it needs them.
  explicit ArgDecoder(const ElfFile& file);
  /// Makes a decoder without a file: arguments that need a symbol, or the file's compiler, are unreadable.
  explicit ArgDecoder(Machine machine);
  ArgDecoder(ArgDecoder&&) noexcept;
  ArgDecoder& operator=(ArgDecoder&&) noexcept;
  ~ArgDecoder();

  /// Returns the machine whose registers the texts name.
  [[nodiscard]] Machine machine() const noexcept;

  /// Returns every argument of `args_text`, in order. An argument that cannot be parsed or read keeps its place and
  /// says why (Arg::why_unreadable()).
  [[nodiscard]] std::vector<Arg> decode(std::string_view args_text) const;
  /// Returns the arguments of a site, by its `args_text` and its description.
  [[nodiscard]] std::vector<Arg> decode(const Site& site) const;
  /// Returns the arguments as they are written: the first step of decode(). They view `args_text`, which has to outlive
  /// them.
  [[nodiscard]] std::vector<ParsedArg> parse(std::string_view args_text) const;
  /// Refuses a temporary, since the arguments would view a text that is gone.
  template <class Text>
  requires std::same_as<std::remove_const_t<Text>, std::string> std::vector<ParsedArg> parse(Text&& text)
  const = delete;
  /// Returns what parsed arguments mean: the second step of decode().
  [[nodiscard]] std::vector<Arg> decode(std::span<const ParsedArg> parsed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
