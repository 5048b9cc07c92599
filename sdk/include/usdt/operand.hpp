// SPDX-License-Identifier: BSD-2-Clause
// Arguments of notes as they are written: what the grammars of parsers/ make of "-4@-20(%rbp)". ArgDecoder::parse()
// (decode.hpp) returns ParsedArgs; their meaning is an Arg (arg.hpp), which ArgDecoder::decode() returns.
// Threads: plain values. They view the text they were parsed from, which has to live as long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "usdt/location.hpp"

namespace usdt {
inline namespace v1 {

/// Names a symbol that an operand refers to, with the relocation operator written behind or before it.
struct SymbolRef {
  std::string name;
  /// "" (plain), "GOTPCREL", "GOT", "GOTOFF", "PLT", "tpoff", "ntpoff", "gottpoff", "lo12" ...: as written,
  /// without '@' or ':'.
  std::string_view reloc;

  friend bool operator==(const SymbolRef&, const SymbolRef&) = default;
};

/// Holds a constant: `$5`, `$-1`, `$0x10`, `$sym`, `$sym+4`; arm64 `5`, `#5`. The value is the symbol's address plus
/// the number; without a symbol it is the number, exact over -2^63 .. 2^64-1.
struct ConstOperand {
  bool negative = false;
  std::uint64_t magnitude = 0;
  std::optional<SymbolRef> symbol;

  /// Returns the low 64 bits in two's complement.
  [[nodiscard]] std::uint64_t bits() const noexcept { return negative ? 0 - magnitude : magnitude; }
  friend bool operator==(const ConstOperand&, const ConstOperand&) = default;
};

/// Names a register as the note does, without '%': "eax", "r10d", "ah", "x21", "wzr", "d0".
struct RegOperand {
  std::string_view name;

  friend bool operator==(const RegOperand&, const RegOperand&) = default;
};

/// Tells how arm64 widens or shifts an index register: `lsl 3`, `sxtw 2`, `uxtw`.
enum class Extend : std::uint8_t { none, lsl, uxtw, sxtw, uxtx, sxtx };
/// Tells arm64's write-back forms apart: `[sp, 16]!` (pre) and `[sp], 16` (post). A post-index amount is not part of
/// the address, so `disp` is 0 there.
enum class Writeback : std::uint8_t { none, pre, post };

/// Describes a value in memory at base + index * scale + disp (+ symbol). Names are as written, empty when absent.
struct MemOperand {
  std::string_view base;
  std::string_view index;
  std::uint32_t scale = 1;  ///< 1, 2, 4, 8; arm64: 1 << amount
  std::int64_t disp = 0;
  std::optional<SymbolRef> symbol;
  std::string_view segment;  ///< "fs", "gs" or empty
  Extend extend = Extend::none;
  std::uint8_t amount = 0;  ///< the arm64 shift as written
  Writeback writeback = Writeback::none;

  friend bool operator==(const MemOperand&, const MemOperand&) = default;
};

/// Holds one argument of a site as its note writes it. Views the text it was parsed from, which has to outlive it.
struct ParsedArg {
  std::string_view text;              ///< the argument as it stands: "-4@-20(%rbp)"
  std::optional<std::uint32_t> size;  ///< bytes; absent if the text has no "N@"
  bool is_signed = false;             ///< "-N@"
  bool is_float = false;              ///< "Nf@"
  /// monostate: the operand did not parse, and `unreadable` says where and why.
  std::variant<std::monostate, ConstOperand, RegOperand, MemOperand> operand;
  /// Set when the text alone already rules a value out (syntax). Questions that need the machine or the file are
  /// decided when the argument is resolved.
  std::optional<Unreadable> unreadable;
  std::uint32_t column = 0;  ///< offset of `text` in the site's argument text

  friend bool operator==(const ParsedArg&, const ParsedArg&) = default;
};

}  // namespace v1
}  // namespace usdt
