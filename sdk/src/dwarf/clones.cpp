// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/clones.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/symbol_name.hpp"
#include "elf/claims.hpp"

namespace usdt::dwarf {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Judges a symbol by the suffixes behind its first '.': "isra.0.constprop.1". An unknown suffix counts as the worst.
CodeName by_suffixes(std::string_view name) {
  CodeName found = CodeName::as_written;
  const auto dot = name.find('.', 1);
  if (dot == std::string_view::npos) return found;
  name.remove_prefix(dot + 1);
  bool frame = false;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    // GCC's debug information says that what goes on with a coroutine is passed its frame ("_Z4makei.Frame.actor").
    frame |= part == "Frame";
    if (frame && (part == "Frame" || part == "actor" || part == "destroy")) continue;
    if (is_number(part) || part == "lto_priv" || part == "llvm" || part == "localalias" || part == "cold") continue;
    found = std::max(found, part == "constprop" ? CodeName::other_args : CodeName::other_result);
  }
  return found;
}

bool is_function(const elf::Symbol& symbol) {
  return symbol.section != SHN_UNDEF && (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC);
}

/// Whether it is a function of libgcc or compiler-rt for 128-bit floats: "__addtf3", "__lttf2", "__extenddftf2",
/// "__trunctfxf2", "__fixtfdi", "__floatunsitf".
bool is_of_quads(std::string_view name) {
  if (!name.starts_with("__")) return false;
  constexpr std::string_view ends[] = {"tf2", "tf3", "sitf", "ditf", "titf"};
  constexpr std::string_view begins[] = {"__trunctf", "__fixtf", "__fixunstf"};
  return std::ranges::any_of(ends, [name](std::string_view end) { return name.ends_with(end); }) ||
         std::ranges::any_of(begins, [name](std::string_view begin) { return name.starts_with(begin); });
}

bool is_symbol_table(const elf::Section& section) { return section.type == SHT_SYMTAB || section.type == SHT_DYNSYM; }

/// Functions that are looked up one by one. A pass over the tables costs about as much as to keep a tenth of them.
constexpr std::size_t kMostSearches = 8;
/// Bytes of a table that are read at once, a multiple of both sizes of symbols.
constexpr std::uint64_t kWindow = 192U << 10;
/// Bytes of one name, and of the names of all symbols at one address.
constexpr std::uint64_t kLongestSymbol = 64U << 10;
constexpr std::uint64_t kMostOfNames = 1U << 20;

/// The name of a symbol of `table`, without "@VERSION"; empty where there is none.
std::string symbol_name(const elf::File& file, const elf::Image& image, const elf::Section& table,
                        const elf::Symbol& symbol) {
  if (table.link >= image.sections.size()) return {};
  const elf::Section& strings = image.sections[table.link];
  if (symbol.name >= strings.size || strings.type == SHT_NOBITS) return {};
  constexpr std::uint64_t step = 256;
  std::string name;
  for (std::uint64_t at = symbol.name; at < strings.size && name.size() < kLongestSymbol; at += step) {
    const elf::Bytes bytes = file.bytes(image.start + strings.offset + at, std::min(step, strings.size - at));
    const auto end = std::ranges::find(bytes, 0);
    name.append(bytes.begin(), end);
    if (end != bytes.end() || bytes.empty()) break;
  }
  return name.substr(0, name.find('@', 1));
}

}  // namespace

CodeNames::CodeNames(const elf::OpenedFile& opened, const std::optional<elf::DebugFile>& debug_file)
    : files_{{&opened.file, &opened.image}} {
  if (debug_file) files_.push_back({&debug_file->file, &debug_file->image});
}

void CodeNames::Known::add(std::string_view symbol_name, const elf::Symbol& symbol, std::uint32_t table_type) {
  name = std::max(name, by_suffixes(symbol_name));
  const std::string_view piece = piece_suffix(symbol_name);
  whole |= piece.empty();
  split |= piece == ".cold" || piece == ".part";
  coroutine |= !piece.empty() && piece != ".cold" && piece != ".part";
  external |= symbol.binding != STB_LOCAL;
  linked |= symbol.binding != STB_LOCAL || symbol.visibility == STV_HIDDEN;
  replaceable |= table_type == SHT_DYNSYM && symbol.binding == STB_GLOBAL && symbol.visibility == STV_DEFAULT;
}

void CodeNames::add_all(const elf::File& file, const elf::Image& image) const {
  elf::SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    if (!is_symbol_table(image.sections[i])) continue;
    const elf::SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n)
      if (const elf::Symbol symbol = table[n]; is_function(symbol))
        names_[symbol.value].add(table.name_of(symbol), symbol, image.sections[i].type);
  }
}

void CodeNames::add_beginnings(const elf::File& file, const elf::Image& image) const {
  elf::SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    if (!is_symbol_table(image.sections[i])) continue;
    const elf::SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n)
      if (const elf::Symbol symbol = table[n]; is_function(symbol) && !is_cold_half(table.name_of(symbol)))
        beginnings_->push_back(symbol.value);
  }
}

bool CodeNames::begins_at(VirtAddr address) const {
  if (!beginnings_) {
    beginnings_.emplace();
    for (const auto& [file, image] : files_) add_beginnings(*file, *image);
    std::ranges::sort(*beginnings_);
  }
  return std::ranges::binary_search(*beginnings_, address.value);
}

bool CodeNames::has_quads() const {
  if (has_quads_) return *has_quads_;
  has_quads_ = false;
  for (const auto& [file, image] : files_) {
    elf::SymbolTables tables(*file, *image);
    for (std::uint32_t i = 0; i < image->sections.size() && !*has_quads_; ++i) {
      if (!is_symbol_table(image->sections[i])) continue;
      const elf::SymbolTable& table = tables.at(i);
      for (std::size_t n = 0; n < table.size() && !*has_quads_; ++n) has_quads_ = is_of_quads(table.name_of(table[n]));
    }
  }
  return *has_quads_;
}

CodeNames::Known CodeNames::search(VirtAddr entry) const {
  Known found;
  std::uint64_t names_left = kMostOfNames;
  const auto add = [&](const std::string& name, const elf::Symbol& symbol, std::uint32_t table_type) {
    found.add(name, symbol, table_type);
    // An unread name may be that of a clone.
    if (names_left < name.size() + 1) found.name = CodeName::other_result;
    names_left -= std::min<std::uint64_t>(names_left, name.size() + 1);
  };
  for (const auto& [file, image] : files_) {
    elf::Claims claims(*file, *image);
    for (const elf::Section& section : image->sections) {
      if (!is_symbol_table(section)) continue;
      const std::uint64_t size = claims.take(section.offset, section.size);
      for (std::uint64_t at = 0; at < size; at += kWindow) {
        const elf::SymbolTable part(
            image->is64, file->bytes(image->start + section.offset + at, std::min(kWindow, size - at)), nullptr);
        for (std::size_t n = 0; n < part.size(); ++n)
          if (const elf::Symbol symbol = part[n]; symbol.value == entry.value && is_function(symbol))
            add(names_left == 0 ? std::string() : symbol_name(*file, *image, section, symbol), symbol, section.type);
      }
    }
  }
  return found;
}

CodeNames::Known CodeNames::known(VirtAddr entry) const {
  if (const auto found = names_.find(entry.value); found != names_.end()) return found->second;
  if (!all_ && names_.size() < kMostSearches) return names_[entry.value] = search(entry);
  if (!all_) {
    names_.clear();
    for (const auto& [file, image] : files_) add_all(*file, *image);
    all_ = true;
    return known(entry);
  }
  return {};
}

}  // namespace usdt::dwarf
