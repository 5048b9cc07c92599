// SPDX-License-Identifier: BSD-2-Clause
#include "elf/unwinding.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "arch/stack_switch.hpp"
#include "elf/symbol_tables.hpp"

namespace usdt::elf {
namespace {

/// The routine that unwinders ask what a frame does with an exception, as languages name it: __gxx_personality_v0
/// (C++), rust_eh_personality, __gnat_personality_v0 (Ada), __gnu_objc_personality_v0, __gdc_personality_v0 and
/// _d_eh_personality (D), __gcc_personality_v0 (C, where threads may be cancelled and -fexceptions lets others' pass).
bool is_personality(std::string_view name) noexcept { return name.find("_personality") != name.npos; }

/// Whether some frame names such a routine, whichever it is (LSB 5.0, 10.6.1: the 'P' of a CIE's augmentation).
bool has_frame_with_personality(const File& file, const Image& image) {
  const Section* frames = image.find(".eh_frame");
  if (frames == nullptr) return false;
  const Bytes bytes = section_bytes(file, image, *frames);
  constexpr std::uint64_t word = 4;
  constexpr std::uint64_t text = 2 * word + 1;  // behind length, id and version
  for (std::uint64_t at = 0; within(at, text, bytes.size());) {
    const std::uint64_t length = little(load<std::uint32_t>(bytes, at));
    if (length == 0 || length == UINT32_MAX || !within(at + word, length, bytes.size())) return false;
    const bool is_cie = load<std::uint32_t>(bytes, at + word) == 0;
    for (std::uint64_t i = at + text; is_cie && i < at + word + length && bytes[i] != 0; ++i)
      if (bytes[i] == 'P') return true;
    at += word + length;
  }
  return false;
}

/// Calls `visit(name, symbol)` for each symbol until it returns true; whether it did.
template <class Visit>
bool any_symbol(const File& file, const Image& image, Visit&& visit) {
  SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    const std::uint32_t type = image.sections[i].type;
    if (type != SHT_SYMTAB && type != SHT_DYNSYM) continue;
    const SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n)
      if (visit(table.name_of(table[n]), table[n])) return true;
  }
  return false;
}

bool is_switch_of_stacks(std::string_view name) noexcept {
  name = name.substr(0, name.find('@'));
  static constexpr std::string_view names[] = {
      "swapcontext",           "setcontext",         "makecontext", "jump_fcontext", "make_fcontext", "ontop_fcontext",
      "bthread_jump_fcontext", "coroutine_transfer", "co_switch",   "sigaltstack"};
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

bool may_switch_stacks(const File& file, const Image& image) {
  bool calls = false;
  const bool is_c_library = any_symbol(file, image, [&](std::string_view name, const Symbol& symbol) {
    const bool undefined = symbol.section == SHN_UNDEF;
    calls |= undefined && is_switch_of_stacks(name);
    return !undefined && image.type == ET_DYN && image.entry != 0 && name.substr(0, name.find('@')) == "swapcontext" &&
           symbol.binding != STB_LOCAL;
  });
  if (is_c_library) return false;
  if (calls) return true;
  constexpr std::uint64_t block = std::uint64_t{1} << 20;
  constexpr std::uint64_t longest = 4;
  for (const Segment& segment : image.segments) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    for (std::uint64_t at = 0; at < segment.filesz; at += block) {
      const Bytes code = file.bytes(image.start + segment.offset + at, std::min(block + longest, segment.filesz - at));
      if (arch::may_switch_stacks(image.machine, code)) return true;
    }
  }
  return false;
}

bool is_who_looks_at_caller(std::string_view symbol) noexcept {
  static constexpr std::string_view names[] = {
      "setjmp",           "sigsetjmp",   "getcontext",   "setcontext",     "swapcontext",    "makecontext",
      "longjmp",          "siglongjmp",  "dlopen",       "dlmopen",        "dlsym",          "dlvsym",
      "libc_dlopen_mode", "libc_dlsym",  "libc_dlvsym",  "backtrace",      "mcount",         "fentry",
      "cxa_throw",        "cxa_rethrow", "pthread_exit", "pthread_cancel", "unw_init_local", "longjmp_chk"};
  symbol = symbol.substr(0, symbol.find('@'));
  symbol.remove_prefix(std::min(symbol.find_first_not_of('_'), symbol.size()));
  return std::ranges::find(names, symbol) != std::end(names) || symbol.starts_with("Unwind_") ||
         symbol.ends_with("_getcontext");
}

bool is_program_that_looks_at_no_caller(const File& file, const Image& image) {
  const bool is_program =
      std::ranges::find(image.segments, std::uint32_t{PT_INTERP}, &Segment::type) != image.segments.end();
  // (A long jump goes back into a call that still is, by what was kept in it; no compiler makes a jump of setjmp().)
  const auto looks = [](std::string_view name, const Symbol&) {
    const bool is_long_jump = name.find("setjmp") != name.npos || name.find("longjmp") != name.npos;
    return !is_long_jump && is_who_looks_at_caller(name);
  };
  return is_program && !any_symbol(file, image, looks);
}

bool may_unwind(const File& file, const Image& image) {
  std::size_t symbols = 0;
  const auto tells = [&symbols](std::string_view name, const Symbol&) { return ++symbols, is_personality(name); };
  if (any_symbol(file, image, tells)) return true;
  // A stripped program that is linked statically has it without a name. (The first symbol of a table is none.)
  return symbols <= 2 && has_frame_with_personality(file, image);
}

}  // namespace usdt::elf
