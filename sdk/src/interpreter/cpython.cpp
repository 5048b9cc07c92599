// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/cpython.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "interpreter/code_words.hpp"
#include "interpreter/cpython_3_11.hpp"
#include "interpreter/cpython_3_12.hpp"
#include "interpreter/cpython_3_13.hpp"
#include "interpreter/cpython_3_14.hpp"
#include "interpreter/line_table.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::array kLayouts{&kCPython311, &kCPython312};
constexpr std::array kTables{&kCPython313, &kCPython314};
/// What the table of a version begins with.
constexpr std::uint64_t kTableMark = 0x7970677562656478;  // "xdebugpy", read as a number
/// No member is further from the beginning of its structure, or the table is none.
constexpr std::uint64_t kFarthest = 1 << 15;

/// Characters of a text that are read: a path has at most 4095.
constexpr std::uint64_t kMostCharacters = 4096;
/// Bytes of a line table that are read: of a function of some 100,000 lines.
constexpr std::uint64_t kMostLines = 1 << 20;
constexpr std::uint32_t kInstruction = 2;  // bytes of a code unit
constexpr std::uint32_t kKindBits = 7, kCompact = 8, kAscii = 16;

/// Bytes of a code object from co_argcount to co_linetable, of all versions, which do not change.
constexpr std::uint16_t kCodeWords = 11, kCodeBytes = kCodeWords * sizeof(std::uint64_t);

std::uint64_t word_of(const CodeWords& words, const CPythonLayout& layout, std::uint16_t offset) {
  return words[(offset - layout.walk.code.at) / sizeof(std::uint64_t)];
}

/// A code unit of UTF-8 from a character; a byte that was none when Python decoded the text stays what it was
/// (PEP 383).
void append_character(std::string& text, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto tail = [&](unsigned shift) { put(0x80 | (c >> shift & 0x3f)); };
  if (c >= 0xdc80 && c <= 0xdcff) return put(c & 0xff);
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
    return tail(0);
  }
  if (c < 0x10000) {
    put(0xe0 | c >> 12);
    tail(6);
    return tail(0);
  }
  put(0xf0 | (c >> 18 & 7));
  tail(12);
  tail(6);
  tail(0);
}

std::string characters(std::span<const std::byte> bytes, std::uint32_t size) {
  std::string text;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint32_t character = 0;
    std::memcpy(&character, bytes.data() + at, size);
    append_character(text, character);
  }
  return text;
}

/// Whether the object at `code` is one that lives: what was freed keeps all but its first words for a while. Those are
/// then a pointer to the next free place, or none, where an object that lives has the number of references to it, and
/// later versions (3.14) flags in the uppermost 16 bits.
bool is_alive(const Memory& memory, std::uint64_t code) {
  constexpr std::uint64_t number = 0xffff'ffff, pointer = 0xffff'0000'0000;
  const auto references = memory.value<std::uint64_t>(code);
  return references && (*references & number) != 0 && (*references & pointer) == 0;
}

/// Whether the words are those of the hit. The hash of a name may have been computed since.
bool has_cookie(const Memory& memory, const CPythonLayout& layout, const CodeWords& words, std::uint64_t cookie) {
  const auto hash = memory.value<std::uint64_t>(words[layout.walk.code.name_word] + layout.walk.code.name_at);
  const auto fits = [&](std::uint64_t with) {
    return usdt_code_cookie(words.data(), layout.walk.code.mask, with) == cookie;
  };
  return hash && (fits(*hash) || fits(~0ULL));
}

std::optional<std::vector<std::byte>> read_bytes(const Memory& memory, const CPythonLayout& layout,
                                                 std::uint64_t address) {
  const auto size = memory.value<std::uint64_t>(address + layout.bytes_size);
  if (!size || *size > kMostLines) return std::nullopt;
  std::vector<std::byte> bytes(*size);
  if (!memory.read(address + layout.bytes_data, bytes)) return std::nullopt;
  return bytes;
}

Result<CPythonLayout> layout_from(const CPythonTable& table, std::span<const std::uint64_t> words) {
  if (words[0] != kTableMark || words[1] >> 16 != table.version)
    return fail(ErrorKind::not_supported, "its table of offsets is not that of this version");
  if (words[table.free_threaded] != 0)
    return fail(ErrorKind::not_supported, "functions of free-threaded builds cannot be followed yet");
  bool fits = true;
  const auto at = [&](std::uint16_t word) {
    fits &= words[word] < kFarthest;
    return static_cast<std::uint16_t>(words[word]);
  };
  constexpr std::uint16_t code_words = 56;
  constexpr std::uint16_t word = sizeof(std::uint64_t);
  CPythonLayout layout{};
  layout.version = table.version;
  layout.interpreters = at(table.interpreters);
  layout.walk.runtime = USDT_RUNTIME_CPYTHON;
  layout.walk.version = table.version;
  layout.walk.interpreter_next = at(table.interpreter_next);
  layout.walk.interpreter_threads = at(table.interpreter_threads);
  layout.walk.thread_next = at(table.thread_next);
  layout.walk.thread_id = at(table.thread_id);
  layout.walk.walk = USDT_WALK_MARKS;
  layout.walk.thread_leads = at(table.thread_frame);
  layout.walk.frame_code = at(table.frame_code);
  layout.walk.frame_previous = at(table.frame_previous);
  layout.walk.frame_instruction = at(table.frame_instruction);
  layout.walk.frame_owner = layout.walk.frame_entry = at(table.frame_owner);
  layout.walk.entry_mask = UINT8_MAX;
  layout.walk.entry_value = static_cast<std::uint8_t>(table.entry_owner);
  layout.walk.code.bytes = kCodeBytes;
  layout.walk.code.mask = (1U << kCodeWords) - 1;
  layout.walk.code_tag = table.code_tag;
  layout.walk.code.at = code_words;
  layout.walk.code.name_word = static_cast<std::uint16_t>((at(table.code_name) - code_words) / word);
  layout.walk.code.name_at = table.name_hash;
  layout.walk.code.name_bytes = word;
  layout.thread_interpreter = at(table.thread_interpreter);
  layout.object_type = at(table.object_type);
  layout.code_first_line = at(table.code_first_line);
  layout.code_file = at(table.code_file);
  layout.code_name = at(table.code_qualified_name);
  layout.code_lines = at(table.code_lines);
  layout.code_start = at(table.code_start);
  layout.code_begins = static_cast<std::uint16_t>(layout.code_start - 2 * word);  // _co_firsttraceable, co_extra
  layout.text_length = at(table.text_length);
  layout.text_state = at(table.text_state);
  layout.text_kind = table.text_kind;
  layout.text_ascii = at(table.text_size);
  layout.text_other = static_cast<std::uint16_t>(layout.text_ascii + 2 * word);  // utf8_length, utf8
  layout.bytes_size = at(table.bytes_size);
  layout.bytes_data = at(table.bytes_data);
  const auto in_words = [](std::uint16_t offset, std::uint16_t size) {
    return offset >= code_words && offset + size <= code_words + kCodeBytes;
  };
  for (const std::uint16_t offset : {layout.code_file, layout.code_name, layout.code_lines, at(table.code_name)})
    fits &= in_words(offset, word) && offset % word == 0;
  for (const std::uint16_t offset : {layout.walk.frame_code, layout.walk.frame_previous, layout.walk.frame_instruction})
    fits &= offset % word == 0 && offset + word <= USDT_FRAME_BYTES;
  fits &= layout.walk.frame_owner < USDT_FRAME_BYTES;
  fits &= in_words(layout.code_first_line, sizeof(std::uint32_t));
  if (!fits) return fail(ErrorKind::not_supported, "its table of offsets says what cannot be");
  return layout;
}

}  // namespace

Result<CPythonLayout> cpython_layout(std::uint16_t version, const Memory& memory, std::uint64_t runtime) {
  if (const auto fixed = std::ranges::find(kLayouts, version, &CPythonLayout::version); fixed != kLayouts.end())
    return **fixed;
  const auto table = std::ranges::find(kTables, version, &CPythonTable::version);
  if (table == kTables.end())
    return fail(ErrorKind::not_supported, "where this version keeps its functions is not known here");
  std::vector<std::uint64_t> words((*table)->words);
  if (!memory.read(runtime, std::as_writable_bytes(std::span(words))))
    return fail(ErrorKind::not_supported, "its table of offsets cannot be read");
  return layout_from(**table, words);
}

bool CodeNames::has_begun(std::int64_t distance, unsigned owner) const noexcept {
  constexpr unsigned generator = 1;  // FRAME_OWNED_BY_GENERATOR of all versions
  return owner == generator || distance >= begins;
}

std::uint32_t CodeNames::line_at(std::int64_t distance) const {
  if (distance < 0) return first_line;
  return distance > UINT32_MAX ? 0 : line_of(lines, first_line, static_cast<std::uint32_t>(distance));
}

std::optional<std::string> read_text(const Memory& memory, const CPythonLayout& layout, std::uint64_t address) {
  const auto length = memory.value<std::uint64_t>(address + layout.text_length);
  const auto word = memory.value<std::uint32_t>(address + layout.text_state);
  if (!length || !word) return std::nullopt;
  const std::uint32_t state = *word >> layout.text_kind;
  const std::uint32_t size = state & kKindBits;
  if ((state & kCompact) == 0 || (size != 1 && size != 2 && size != 4)) return std::nullopt;
  if ((state & kAscii) != 0 && size != 1) return std::nullopt;
  std::vector<std::byte> bytes(std::min(*length, kMostCharacters) * size);
  if (!memory.read(address + ((state & kAscii) != 0 ? layout.text_ascii : layout.text_other), bytes))
    return std::nullopt;
  return characters(bytes, size) + (*length > kMostCharacters ? "..." : "");
}

CodeState read_code(const Memory& memory, const CPythonLayout& layout, std::uint64_t type, std::uint64_t code,
                    std::uint64_t cookie, CodeNames& names) {
  const auto words = read_code_words(memory, layout.walk.code, code);
  const auto of_type = memory.value<std::uint64_t>(code + layout.object_type);
  if (!words || !of_type) return CodeState::unreadable;
  if ((type != 0 && *of_type != type) || !is_alive(memory, code) || !has_cookie(memory, layout, *words, cookie))
    return CodeState::changed;
  auto function = read_text(memory, layout, word_of(*words, layout, layout.code_name));
  auto file = read_text(memory, layout, word_of(*words, layout, layout.code_file));
  auto lines = read_bytes(memory, layout, word_of(*words, layout, layout.code_lines));
  // Were it freed meanwhile, its texts might be others'.
  const auto again = read_code_words(memory, layout.walk.code, code);
  if (!again || !is_alive(memory, code) || memory.value<std::uint64_t>(code + layout.object_type) != of_type ||
      *again != *words || !has_cookie(memory, layout, *again, cookie) || !function || !file)
    return CodeState::changed;
  names.function = std::move(*function);
  names.file = std::move(*file);
  const auto begins = memory.value<std::uint32_t>(code + layout.code_begins);
  names.begins = begins ? *begins * kInstruction : 0;
  names.lines = lines ? std::move(*lines) : std::vector<std::byte>();
  const std::size_t line_at = layout.code_first_line - layout.walk.code.at;
  std::memcpy(&names.first_line, reinterpret_cast<const std::byte*>(words->data()) + line_at, sizeof(names.first_line));
  return CodeState::read;
}

}  // namespace usdt::interpreter
