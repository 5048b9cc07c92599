// SPDX-License-Identifier: BSD-2-Clause
// Mangled names of C++ (Itanium ABI) and Rust (both schemes) as their programmers wrote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace usdt::elf {

/// Whether `symbol` looks mangled: whether it is worth a Demangler's time.
[[nodiscard]] bool may_be_mangled(std::string_view symbol) noexcept;

/// A name as its programmer wrote it.
struct Demangled {
  std::string_view name;                ///< "ns::Server::handle(int) const"; empty where the symbol is not demangled
  std::string_view without_parameters;  ///< "ns::Server::handle"; Rust names have no list of parameters
};

/// Returns the part of a demangled name before its parameters; the name itself where it has none.
[[nodiscard]] std::string_view before_parameters(std::string_view name) noexcept;

/// How many parameters a list of them has, "(int, ns::pair<a, b>) const": without "..."; nothing where it is no list.
[[nodiscard]] std::optional<std::size_t> count_parameters(std::string_view list) noexcept;

/// libiberty's demanglers within bounds. A name of a hundred bytes can demangle to terabytes, by substitutions of
/// substitutions; here a name has a limit, and so have all names of one file together.
class Demangler {
 public:
  /// `budget`: bytes that all results may have together.
  explicit Demangler(std::size_t budget) noexcept : budget_(budget) {}

  /// The name of `symbol`, without the type of its result and, in Rust, without the hash. Empty where it is not
  /// mangled, or beyond the limits. Good until the next call.
  [[nodiscard]] Demangled demangle(std::string_view symbol);

 private:
  [[nodiscard]] bool may_search_packs(std::string_view symbol) noexcept;

  std::size_t budget_;
  std::uint64_t pack_steps_ = 0;
  std::string symbol_;
  std::string text_;
};

}  // namespace usdt::elf
