// SPDX-License-Identifier: BSD-2-Clause
// Which functions of a file are meant.
#pragma once

#include <string>
#include <string_view>

#include "elf/demangle.hpp"
#include "usdt/function.hpp"

namespace usdt::elf {

/// One name or glob of functions. It means a function where it is or matches one of its symbols, its demangled name, or
/// that name without the parameter list. Template arguments and ABI tags are part of a name; anonymous namespaces and
/// spaces that separate no two words need not be said: `f(int,char**)` is `(anonymous namespace)::f(int, char **)`.
/// "SYMBOL@VERSION" and "SYMBOL@@VERSION" mean that version.
class FunctionName {
 public:
  explicit FunctionName(std::string_view text);

  [[nodiscard]] bool matches_symbol(std::string_view symbol, std::string_view version) const noexcept;
  /// Whether matches_demangled() can be true of what `symbol` is demangled to. False for nearly all symbols where it is
  /// not: demangling takes longer than everything else together.
  [[nodiscard]] bool may_match_mangled(std::string_view symbol) const noexcept;
  [[nodiscard]] bool matches_demangled(const Demangled& names) const;
  /// The same where only the name is left, demangled or not.
  [[nodiscard]] bool matches_name(std::string_view name) const;
  /// Whether matches() may be true of a function that has this one symbol, without a version: it is, unless
  /// `demangler` cannot demangle it.
  [[nodiscard]] bool may_match(std::string_view symbol, Demangler& demangler) const;
  /// Is in each symbol that matches, mangled or not, as it stands; empty: nothing is known to be.
  [[nodiscard]] const std::string& word_in_symbols() const noexcept { return word_in_symbols_; }
  /// Whether find_functions() would find `function` for this name.
  [[nodiscard]] bool matches(const Function& function) const;

  /// The pattern as it was given.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::string symbol_;     ///< the text, without its version
  std::string version_;    ///< a glob; empty: any
  std::string demangled_;  ///< the text without needless spaces
  std::string word_;       ///< is in each mangled symbol that can match
  std::string word_in_symbols_;
};

}  // namespace usdt::elf
