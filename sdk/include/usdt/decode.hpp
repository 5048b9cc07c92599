// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/machine.hpp"
#include "usdt/probe.hpp"

namespace usdt {

/// A register operand as its machine sees it.
struct RegInfo {
  std::string name;        ///< as written: "r10d"
  std::string canon;       ///< full register: "r10"; i386 "eax"; arm64 "x3", "v0"
  std::uint16_t bits = 0;  ///< width of the name as written
  std::uint8_t shift = 0;  ///< 8 for ah, bh, ch, dh
  bool floating = false;   ///< a vector or floating-point register
};

/// What a value needs beyond registers and memory: "symbol", "got", "segment-base", "reg-pair".
using Needs = std::vector<std::string>;

/// A name for one value of an enum.
struct Enumerator {
  std::string name;
  std::uint64_t bits = 0;  ///< the low bytes count, as many as the enum has
};

/// One argument with everything known about it before a kernel is involved.
struct Arg {
  ArgSpec spec;
  std::string name;                     ///< where the source knows one (kernel BTF): "skb"; empty in notes
  std::string type;                     ///< the same as C: "struct sk_buff *"
  bool result = false;                  ///< not an argument but the return value of a kernel function
  bool text = false;                    ///< a pointer to characters
  bool boolean = false;                 ///< true or false, where the source knows
  std::vector<Enumerator> enumerators;  ///< of an enum, where the source knows them
  std::uint32_t size = 0;               ///< bytes; the machine's word where the text has none
  /// A value can be fetched at a hit; else `reason` says why not.
  bool readable = false;
  std::string reason;
  std::uint32_t reason_column = 0;  ///< zero-based, in the site's argument text
  RegInfo reg;                      ///< for RegOperand
  std::string pair_high;            ///< i386: register that holds the upper half of an 8-byte value, else empty
  std::string base;                 ///< MemOperand: canonical base register, empty if none
  std::string index;                ///< MemOperand: canonical index register, empty if none
  bool pc_relative = false;         ///< MemOperand: the base is the instruction pointer
  std::uint64_t const_bits = 0;     ///< ConstOperand without symbol: value cut to size, extended by sign
  Needs needs;
};

/// The name of value `bits` of an enum argument; empty: it has none.
[[nodiscard]] std::string_view enumerator_name(const Arg& arg, std::uint64_t bits) noexcept;

/// "i32", "u64", "f64", "u8"; "?128" for sizes no value type has: the signature column of usdt-list.
[[nodiscard]] std::string type_name(const Arg& arg);

/// Decodes the argument text of a file's sites. Symbolic operands are resolved in the file's own tables.
class ArgDecoder {
 public:
  /// Reads symbols of `file` lazily; the file must outlive the decoder.
  explicit ArgDecoder(const ElfFile& file);
  /// Without a file: whatever needs a symbol or the file's compiler is unreadable.
  explicit ArgDecoder(Machine machine);
  ArgDecoder(ArgDecoder&&) noexcept;
  ArgDecoder& operator=(ArgDecoder&&) noexcept;
  ~ArgDecoder();

  /// Every argument of `site`, in order, none lost.
  [[nodiscard]] std::vector<Arg> decode(const Site& site) const;
  /// The same for a bare text with the site at address 0.
  [[nodiscard]] std::vector<Arg> decode(std::string_view args_text) const;

  struct Impl;
  [[nodiscard]] const Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt
