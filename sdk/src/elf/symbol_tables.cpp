// SPDX-License-Identifier: BSD-2-Clause
#include "elf/symbol_tables.hpp"

#include <algorithm>

namespace usdt::elf {
namespace {

// Names that share bytes are rarely twice the table's size in all, many local symbols of one name aside.
constexpr std::uint64_t kSharing = 16;
constexpr std::uint64_t kPerSymbol = 256;

template <class Sym>
Symbol decode_symbol(ByteView raw, std::uint64_t at) noexcept {
  const auto s = load<Sym>(raw, at);
  // The halves of st_info are the same in either class.
  return {.name = little(s.st_name),
          .type = static_cast<std::uint8_t>(ELF64_ST_TYPE(s.st_info)),
          .binding = static_cast<std::uint8_t>(ELF64_ST_BIND(s.st_info)),
          .visibility = static_cast<std::uint8_t>(ELF64_ST_VISIBILITY(s.st_other)),
          .section = little(s.st_shndx),
          .value = little(s.st_value),
          .size = little(s.st_size)};
}

}  // namespace

StringTable::StringTable(Bytes bytes) : bytes_(std::move(bytes)), left_(kSharing * bytes_.size()) {}

void StringTable::allow(std::size_t symbols) noexcept { left_ += kPerSymbol * symbols; }

std::string_view StringTable::take(std::uint64_t at) noexcept {
  if (at >= bytes_.size() || exhausted_) return {};
  const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at, bytes_.size() - at);
  const std::string_view within_reach = rest.substr(0, left_);
  const std::size_t end = within_reach.find('\0');
  exhausted_ = end == std::string_view::npos && within_reach.size() < rest.size();
  if (exhausted_) return {};
  const std::string_view name = within_reach.substr(0, end);
  left_ -= name.size();
  return name;
}

SymbolTable::SymbolTable(bool is64, Bytes entries, std::shared_ptr<StringTable> strings)
    : is64_(is64),
      entry_size_(is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)),
      entries_(std::move(entries)),
      strings_(std::move(strings)) {
  if (strings_ != nullptr) strings_->allow(size());
}

Symbol SymbolTable::operator[](std::size_t index) const noexcept {
  return is64_ ? decode_symbol<Elf64_Sym>(entries_, index * entry_size_)
               : decode_symbol<Elf32_Sym>(entries_, index * entry_size_);
}

std::string_view SymbolTable::name_of(const Symbol& symbol) const noexcept {
  const std::string_view name = full_name_of(symbol);
  return name.substr(0, name.find('@', 1));
}

std::string_view SymbolTable::full_name_of(const Symbol& symbol) const noexcept {
  return strings_ == nullptr ? std::string_view() : strings_->take(symbol.name);
}

const SymbolTable& SymbolTables::at(std::uint32_t section) {
  const auto [it, fresh] = tables_.try_emplace(section);
  if (!fresh || section >= image_.sections.size()) return it->second;
  const Section& header = image_.sections[section];
  it->second = SymbolTable(image_.is64, entries_.read(header), strings_at(header.link));
  return it->second;
}

std::shared_ptr<StringTable> SymbolTables::strings_at(std::uint32_t section) {
  if (section >= image_.sections.size()) return nullptr;
  auto& strings = string_tables_[section];
  if (strings == nullptr) strings = std::make_shared<StringTable>(strings_.read(image_.sections[section]));
  return strings;
}

bool SymbolTables::incomplete() const noexcept {
  const auto exhausted = [](const auto& each) { return each.second->exhausted(); };
  return entries_.overlapped() || strings_.overlapped() || std::ranges::any_of(string_tables_, exhausted);
}

}  // namespace usdt::elf
