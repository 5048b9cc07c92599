// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "usdt/pattern.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kMatched = std::size_t{1} << 20;  // bytes, demangled of one function's symbols

bool in_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

/// `text` without the spaces that separate no two words.
std::string without_needless_spaces(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') {
      const std::size_t next = std::min(text.find_first_not_of(' ', i), text.size());
      const bool separates = !out.empty() && next < text.size() && in_word(out.back()) && in_word(text[next]);
      i = next - 1;
      if (!separates) continue;
    }
    out += text[i];
  }
  return out;
}

constexpr std::string_view kAnonymous = "(anonymous namespace)::";

/// `name` as the source calls it, which cannot name these.
std::string without_anonymous_namespaces(std::string name) {
  for (std::size_t at = name.find(kAnonymous); at != name.npos; at = name.find(kAnonymous, at))
    name.erase(at, kAnonymous.size());
  return name;
}

/// Words that a demangler writes where the symbol has a letter or a number for them.
constexpr std::array kUnmangled = {
    std::string_view(
        "construction vtable for TLS wrapper function virtual covariant return thunk non-transaction clone"),
    std::string_view("anonymous namespace lambda unnamed type auto decltype operator delete new co_await noexcept"),
    std::string_view("unsigned signed char8_t char16_t char32_t wchar_t __int128 short long bool float double void"),
    std::string_view("_Float16 _Float32x _Float64x _Float128x bfloat16_t _BitInt decimal128 std::nullptr_t const "
                     "volatile restrict _Complex _Imaginary __vector static_cast"),
    std::string_view(
        "std allocator basic_string char_traits basic_istream basic_ostream basic_iostream string literal"),
    std::string_view(
        "sizeof alignof typeid throw true false this typeinfo guard variable reference temporary default arg"),
    std::string_view(
        "closure impl shim vtable as dyn mut str usize isize i128 u128 f64 extern unsafe reify f32 i16 u16 i32"),
};

bool is_demanglers(std::string_view word) noexcept {
  return std::ranges::any_of(kUnmangled, [&](std::string_view words) { return words.find(word) != words.npos; });
}

/// The longest run of letters and digits in `glob` that a mangled symbol has in it as it stands, as all identifiers
/// are.
std::string longest_word(std::string_view glob) {
  std::string best;
  std::string run;
  const auto end_run = [&] {
    const bool number = std::ranges::all_of(run, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (run.size() > best.size() && !number && !is_demanglers(run)) best = run;
    run.clear();
  };
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\' && i + 1 < glob.size()) ++i;
    if (in_word(glob[i])) {
      run += glob[i];
      continue;
    }
    end_run();
    // One of these: nothing in them is in every symbol.
    if (glob[i] == '[') i = std::min(glob.find(']', i + 2), glob.size());
  }
  end_run();
  return best;
}

bool is_or_matches(std::string_view glob, std::string_view text) noexcept {
  // Names have '*' and '[' in them too: `operator[]`, `f(char [3])`.
  return glob == text || glob_match(glob, text);
}

}  // namespace

FunctionName::FunctionName(std::string_view text)
    : text_(text),
      symbol_(text.substr(0, text.find('@', 1))),
      version_(text.substr(std::min(text.find_first_not_of('@', symbol_.size()), text.size()))),
      demangled_(without_needless_spaces(text)),
      word_(longest_word(text)),
      // A text with backslashes means itself, too, which has the backslashes.
      word_in_symbols_(text.find('\\') == text.npos ? longest_word(symbol_) : std::string()) {}

bool FunctionName::matches_symbol(std::string_view symbol, std::string_view version) const noexcept {
  return is_or_matches(symbol_, symbol) && (version_.empty() || is_or_matches(version_, version));
}

bool FunctionName::may_match_mangled(std::string_view symbol) const noexcept {
  return version_.empty() && symbol.find(word_) != symbol.npos;
}

bool FunctionName::matches_demangled(const Demangled& names) const {
  if (names.name.empty() || !version_.empty()) return false;
  const auto is_meant = [&](const std::string& name) {
    return is_or_matches(demangled_, name) ||
           (name.find(kAnonymous) != name.npos && is_or_matches(demangled_, without_anonymous_namespaces(name)));
  };
  return is_meant(without_needless_spaces(names.name)) || is_meant(without_needless_spaces(names.without_parameters));
}

bool FunctionName::matches_name(std::string_view name) const {
  return matches_symbol(name, {}) || matches_demangled({name, before_parameters(name)});
}

bool FunctionName::may_match(std::string_view symbol, Demangler& demangler) const {
  if (matches_symbol(symbol, {})) return true;
  if (!may_be_mangled(symbol) || !may_match_mangled(symbol)) return false;
  const Demangled demangled = demangler.demangle(symbol);
  return demangled.name.empty() || matches_demangled(demangled);
}

bool FunctionName::matches(const Function& function) const {
  Demangler demangler(kMatched);
  const auto means = [&](const std::string& symbol) {
    if (matches_symbol(symbol, function.version)) return true;
    return may_match_mangled(symbol) && matches_demangled(demangler.demangle(symbol));
  };
  return means(function.symbol) || std::ranges::any_of(function.aliases, means);
}

}  // namespace usdt::elf
