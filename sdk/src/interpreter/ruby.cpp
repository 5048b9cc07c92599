// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/ruby.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "interpreter/code_words.hpp"
#include "interpreter/ruby_3_1.hpp"
#include "interpreter/ruby_3_3.hpp"
#include "interpreter/ruby_lines.hpp"

namespace usdt::interpreter {
namespace {

constexpr std::array kRubyLayouts{&kRuby31, &kRuby33};
/// A path has at most 4095 bytes, and nobody reads longer names.
constexpr std::uint64_t kMostTextBytes = 4096;
/// Bytes of a function's lines that are read, and of the set that says which instruction has which: some 80,000 lines.
constexpr std::uint64_t kMostLineBytes = 1 << 20;
/// Bytes of the interpreter's variables that are looked through for its table of names; places that look like it.
constexpr std::uint64_t kMostData = 1 << 20;
constexpr unsigned kMostCandidates = 64;
constexpr std::uint64_t kMostNames = 1 << 28;

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
/// RBasic.flags (include/ruby/internal/fl_type.h, value_type.h): the type, and bits that mean something else for each.
constexpr std::uint64_t kTypeBits = 0x1f, kTextType = 0x05, kListType = 0x07, kOfRuby = 0x1a;
constexpr std::uint64_t kFirstOwnBit = 12, kSecondOwn = 1 << 13;
constexpr std::uint64_t kOwnType = 0xf;  // imemo_type of kOfRuby

/// Shown where the table of names is not found.
constexpr const char* kInC = "<C function>";

/// Where an object's data is, and how much there is of it.
struct Data {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
};

/// Of an object that has its data within.
std::optional<Data> data_within(const Memory& memory, std::uint64_t data, std::uint64_t in_flags,
                                std::uint64_t length_at, bool is_in_flags) {
  const auto length = is_in_flags ? std::optional(in_flags) : memory.value<std::uint64_t>(length_at);
  return length ? std::optional(Data{data, *length}) : std::nullopt;
}

std::optional<Data> data_elsewhere(const Memory& memory, std::uint64_t length_at, std::uint64_t pointer_at) {
  const auto length = memory.value<std::uint64_t>(length_at), at = memory.value<std::uint64_t>(pointer_at);
  return length && at ? std::optional(Data{*at, *length}) : std::nullopt;
}

std::optional<std::string> read_ruby_text(const Memory& memory, const RubyLayout& layout, std::uint64_t object) {
  const auto flags = memory.value<std::uint64_t>(object);
  if (!flags || (*flags & kTypeBits) != kTextType) return std::nullopt;
  const std::uint64_t length_at = object + layout.text_length;
  const auto data = (*flags & kSecondOwn) != 0
                        ? data_elsewhere(memory, length_at, object + layout.text_data)
                        : data_within(memory, object + layout.text_within,
                                      *flags >> layout.text_shift & layout.text_bits, length_at, layout.text_bits != 0);
  if (!data) return std::nullopt;
  std::string text(std::min(data->length, kMostTextBytes), '\0');
  if (!memory.read(data->at, std::as_writable_bytes(std::span(text)))) return std::nullopt;
  return data->length > kMostTextBytes ? text + "..." : text;
}

/// An entry of a list; nothing: it has none.
std::optional<std::uint64_t> entry_of(const Memory& memory, const RubyLayout& layout, std::uint64_t object,
                                      std::uint64_t index) {
  const auto flags = memory.value<std::uint64_t>(object);
  if (!flags || (*flags & kTypeBits) != kListType) return std::nullopt;
  const Data within{object + layout.list_within, *flags >> layout.list_shift & layout.list_bits};
  const auto data = (*flags & kSecondOwn) == 0
                        ? data_elsewhere(memory, object + layout.list_length, object + layout.list_data)
                        : std::optional(within);
  if (!data || index >= data->length) return std::nullopt;
  return memory.value<std::uint64_t>(data->at + index * kWord);
}

/// The path as it was written: of the two that are known where they differ the first one.
std::optional<std::string> read_path(const Memory& memory, const RubyLayout& layout, std::uint64_t object) {
  const auto flags = memory.value<std::uint64_t>(object);
  if (!flags || (*flags & kTypeBits) != kListType) return read_ruby_text(memory, layout, object);
  const auto path = entry_of(memory, layout, object, 0);
  return path ? read_ruby_text(memory, layout, *path) : std::nullopt;
}

/// The words of code, or of a method; nothing: they are not those of the hit.
std::optional<CodeWords> words_as_at_hit(const Memory& memory, const usdt_code_shape& shape, std::uint64_t code,
                                         std::uint64_t cookie) {
  const auto words = read_code_words(memory, shape, code);
  std::array<__u64, USDT_NAME_WORDS> name{};
  const std::span<std::byte> of_name = std::as_writable_bytes(std::span(name)).first(shape.name_bytes);
  if (!words || !memory.read((*words)[shape.name_word] + shape.name_at, of_name)) return std::nullopt;
  const std::uint64_t hash = usdt_name_hash(name.data(), shape.name_bytes);
  return usdt_code_cookie(words->data(), shape.mask, hash) == cookie ? words : std::nullopt;
}

/// Objects of Ruby's own are of many types.
bool is_method(const Memory& memory, const RubyLayout& layout, std::uint64_t object) {
  const auto flags = memory.value<std::uint64_t>(object);
  return flags && (*flags & kTypeBits) == kOfRuby && (*flags >> kFirstOwnBit & kOwnType) == layout.method_type;
}

/// The lines of the entries, and which entry an instruction has; empty: they cannot be read.
void read_lines(const Memory& memory, const RubyLayout& layout, std::uint64_t code, RubyNames& names) {
  const auto entries = memory.value<std::uint64_t>(code + layout.code_lines);
  const auto entry_count = memory.value<std::uint32_t>(code + layout.code_line_count);
  const auto ranks = memory.value<std::uint64_t>(code + layout.code_ranks);
  const auto count = memory.value<std::uint32_t>(code + layout.code_count);
  if (!entries || !entry_count || !ranks || !count) return;
  const std::uint64_t bytes = std::uint64_t{*entry_count} * layout.line_size;
  const std::uint64_t words = words_of_ranks(*count);
  if (bytes > kMostLineBytes || words * kWord > kMostLineBytes) return;
  std::vector<std::byte> read(bytes);
  std::vector<std::uint64_t> of_instructions(words);
  // One entry is that of all instructions, and there is no set.
  const bool has_set = *entry_count > 1;
  if (!memory.read(*entries, read)) return;
  if (has_set && !memory.read(*ranks, std::as_writable_bytes(std::span(of_instructions)))) return;
  names.lines.resize(*entry_count);
  for (std::size_t i = 0; i < names.lines.size(); ++i)
    std::memcpy(&names.lines[i], read.data() + i * layout.line_size, sizeof(names.lines[i]));
  if (has_set) names.ranks = std::move(of_instructions);
}

}  // namespace

const RubyLayout* ruby_layout(std::uint16_t version) {
  const auto found = std::ranges::find(kRubyLayouts, version, &RubyLayout::version);
  return found == kRubyLayouts.end() ? nullptr : *found;
}

std::uint32_t RubyNames::line_before(std::uint64_t next) const {
  if (next < instructions || lines.empty()) return 0;
  const std::uint64_t behind = (next - instructions) / kWord;
  const std::uint32_t rank = lines.size() == 1 ? 1 : rank_of(ranks, behind == 0 ? 0 : behind - 1);
  if (rank == 0 || rank > lines.size()) return 0;
  const std::uint32_t line = lines[rank - 1];
  return line <= INT32_MAX ? line : 0;
}

CodeState read_ruby_code(const Memory& memory, const RubyLayout& layout, std::uint64_t code, std::uint64_t cookie,
                         RubyNames& names) {
  if (!read_code_words(memory, layout.walk.code, code)) return CodeState::unreadable;
  const auto words = words_as_at_hit(memory, layout.walk.code, code, cookie);
  if (!words) return CodeState::changed;
  const auto word = [&](std::uint16_t offset) { return (*words)[(offset - layout.walk.code.at) / kWord]; };
  auto function = read_ruby_text(memory, layout, word(layout.code_name));
  auto file = read_path(memory, layout, word(layout.code_file));
  RubyNames read;
  read.instructions = word(layout.code_instructions);
  read_lines(memory, layout, code, read);
  // Were it freed meanwhile, its texts might be others'.
  if (!words_as_at_hit(memory, layout.walk.code, code, cookie) || !function || !file) return CodeState::changed;
  read.function = std::move(*function);
  read.file = std::move(*file);
  names = std::move(read);
  return CodeState::read;
}

CodeState read_ruby_method(const Memory& memory, const RubyLayout& layout, RubyNameTable& table, std::uint64_t method,
                           std::uint64_t cookie, RubyNames& names) {
  const usdt_code_shape& shape = layout.walk.stacked.method;
  if (!memory.value<std::uint64_t>(method)) return CodeState::unreadable;
  const auto words = words_as_at_hit(memory, shape, method, cookie);
  if (!words || !is_method(memory, layout, method)) return CodeState::changed;
  const std::uint64_t definition = (*words)[(layout.method_definition - shape.at) / kWord];
  const auto number = memory.value<std::uint64_t>(definition + layout.definition_name);
  auto name = number ? table.find(memory, *number) : std::nullopt;
  if (!words_as_at_hit(memory, shape, method, cookie)) return CodeState::changed;
  names = {.function = name ? std::move(*name) : kInC, .file = {}};
  return CodeState::read;
}

std::optional<std::string> RubyNameTable::find(const Memory& memory, std::uint64_t number) {
  if (at_ == 0) look_for_table(memory);
  return at_ != 0 ? name_in(memory, at_, number) : std::nullopt;
}

std::optional<std::string> RubyNameTable::name_in(const Memory& memory, std::uint64_t table,
                                                  std::uint64_t number) const {
  const std::uint64_t serial = number > layout_.last_operator ? number >> layout_.name_shift : number;
  const auto all = memory.value<std::uint64_t>(table + layout_.names_list);
  const auto some = all ? entry_of(memory, layout_, *all, serial / layout_.names_unit) : std::nullopt;
  const auto text =
      some ? entry_of(memory, layout_, *some, serial % layout_.names_unit * layout_.name_size) : std::nullopt;
  return text ? read_ruby_text(memory, layout_, *text) : std::nullopt;
}

/// Programs without symbols do not tell where the table is: it is the variable that has the names of operators, whose
/// numbers are their characters.
void RubyNameTable::look_for_table(const Memory& memory) {
  if (tries_ == 0) return;
  std::vector<std::uint64_t> words(std::min(size_, kMostData) / kWord);
  if (!memory.read(data_, std::as_writable_bytes(std::span(words)))) return;
  --tries_;
  const auto has_operators = [&](std::uint64_t table) {
    return std::ranges::all_of(std::array{'+', '-', '<'}, [&](char each) {
      return name_in(memory, table, static_cast<std::uint64_t>(each)) == std::string(1, each);
    });
  };
  unsigned candidates = kMostCandidates;
  for (std::size_t i = 0; i + layout_.names_list / kWord < words.size() && candidates > 0; ++i) {
    const std::uint64_t last = words[i + layout_.names_last / kWord] & UINT32_MAX;
    const std::uint64_t list = words[i + layout_.names_list / kWord];
    if (last <= layout_.last_operator || last > kMostNames || list == 0 || list % kWord != 0) continue;
    --candidates;
    if (!has_operators(data_ + i * kWord)) continue;
    at_ = data_ + i * kWord;
    return;
  }
}

}  // namespace usdt::interpreter
