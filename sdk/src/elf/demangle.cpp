// SPDX-License-Identifier: BSD-2-Clause
#include "elf/demangle.hpp"

// The C library declares it, in C++ with an exception specification that libiberty's declaration lacks.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>

#include "elf/other_names.hpp"

namespace usdt::elf {
namespace {

// libiberty itself refuses C++ names of more than 1024 bytes; for Rust it has no limit.
constexpr std::size_t kLongestSymbol = 8192;
// The longest of the 67,000 names in Debian's libLLVM and libclang-cpp has 3,900.
constexpr std::size_t kLongestName = 1 << 14;
// libiberty expands a pack by a search of the pattern's tree without output and without a limit, each substitution
// anew: n of them can make 2^n nodes. One of those 67,000 names has more than 24 and a pack expansion, three others
// have more than 16.
constexpr std::size_t kPackSubstitutions = 24;
constexpr std::uint64_t kPackSteps = std::uint64_t{1} << 27;  // half a second

/// Takes what libiberty writes, until it is too much.
struct Sink {
  std::string& text;
  std::size_t room;
  bool rust;
  bool cut = false;
  std::jmp_buf enough = {};
};

/// The only way to end libiberty early is to leave it. It has then nothing to give back: it works on the stack, except
/// for an identifier of Rust with letters beyond ASCII, which it writes in one piece and frees behind that.
void write(const char* piece, std::size_t size, void* opaque) {
  Sink& sink = *static_cast<Sink*>(opaque);
  if (!sink.cut && size <= sink.room) {
    sink.text.append(piece, size);
    sink.room -= size;
    return;
  }
  sink.cut = true;
  const bool held = sink.rust && std::any_of(piece, piece + size, [](char c) { return (c & 0x80) != 0; });
  if (!held) std::longjmp(sink.enough, 1);
}

/// Whether all of `symbol` was demangled within the sink's room.
bool demangle_into(Sink& sink, const char* symbol) {
  if (setjmp(sink.enough) != 0) return false;
  const int done = sink.rust
                       ? rust_demangle_callback(symbol, DMGL_PARAMS, write, &sink)
                       : cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, write, &sink);
  return done != 0 && !sink.cut;
}

bool has_pack_expansion(std::string_view symbol) noexcept {
  static constexpr std::string_view kMarks[] = {"Dp", "sp", "sZ", "fl", "fr", "fL", "fR"};
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return symbol.find(mark) != symbol.npos; });
}

/// References to what stands before in the name: S_, S0_, S1_, ...
std::size_t substitutions_in(std::string_view symbol) noexcept {
  std::size_t count = 0;
  for (std::size_t at = symbol.find('S'); at != symbol.npos; at = symbol.find('S', at + 1)) {
    const std::size_t end = symbol.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", at + 1);
    if (end != symbol.npos && symbol[end] == '_') ++count;
  }
  return count;
}

/// The hash that ends a name of Rust's first scheme: what comes before is a C++ name too.
bool may_be_rust(std::string_view symbol) noexcept {
  return symbol.starts_with("_R") || (symbol.starts_with("_ZN") && symbol.find("17h") != symbol.npos);
}

}  // namespace

std::string_view before_parameters(std::string_view name) noexcept {
  const std::size_t close = name.rfind(')');
  if (close == name.npos) return name;
  // " const", " &&", " [clone .part.0]": nothing else may follow them.
  const std::string_view behind = name.substr(close + 1);
  if (!behind.empty() && behind.front() != ' ') return name;
  std::size_t depth = 0;
  for (std::size_t at = close + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return name.substr(0, at);
  }
  return name;
}

std::optional<std::size_t> count_parameters(std::string_view list) noexcept {
  if (!list.starts_with('(')) return std::nullopt;
  std::size_t commas = 0;
  std::size_t depth = 0;
  std::size_t last = 1;  // where the last one begins
  for (std::size_t at = 0; at < list.size(); ++at) {
    const char c = list[at];
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    const bool arrow = c == '>' && list[at - 1] == '-';
    if (c == ')' || c == ']' || c == '}' || (c == '>' && !arrow)) --depth;
    if (depth == 1 && c == ',') {
      ++commas;
      last = at + 1;
    }
    if (depth > 0) continue;
    if (c != ')') return std::nullopt;
    const std::string_view text = list.substr(last, at - last);
    const bool none = text.empty() || text.ends_with("...");
    return commas + (none ? 0 : 1);
  }
  return std::nullopt;
}

bool may_be_mangled(std::string_view symbol) noexcept {
  if (symbol.size() < 4 || symbol.size() > kLongestSymbol) return false;
  if (may_be_other_name(symbol)) return true;
  if (symbol[0] != '_') return false;
  if (symbol[1] == 'Z') return true;
  // After _R comes a path, and each kind of path has its letter (RFC 2603).
  return symbol[1] == 'R' && std::string_view("CMXYNI").find(symbol[2]) != std::string_view::npos;
}

/// Whether the packs of `symbol` take no longer than is left for all.
bool Demangler::may_search_packs(std::string_view symbol) noexcept {
  if (!has_pack_expansion(symbol)) return true;
  const std::size_t substitutions = substitutions_in(symbol);
  if (substitutions > kPackSubstitutions || pack_steps_ > kPackSteps) return false;
  pack_steps_ += std::uint64_t{1} << substitutions;
  return true;
}

Demangled Demangler::demangle(std::string_view symbol) {
  if (!may_be_mangled(symbol)) return {};
  if (may_be_other_name(symbol)) {
    text_ = other_name(symbol, std::min(kLongestName, budget_));
    budget_ -= std::min(budget_, text_.size());
    return {text_, text_};
  }
  symbol_ = symbol;
  for (const bool rust : {true, false}) {
    if (rust ? !may_be_rust(symbol) : symbol[1] != 'Z') continue;
    if (!rust && !may_search_packs(symbol)) continue;
    text_.clear();
    Sink sink{.text = text_, .room = std::min(kLongestName, budget_), .rust = rust};
    const bool done = demangle_into(sink, symbol_.c_str());
    budget_ -= text_.size();
    if (done && !text_.empty()) return {text_, rust ? text_ : before_parameters(text_)};
  }
  return {};
}

}  // namespace usdt::elf
