// SPDX-License-Identifier: BSD-2-Clause
#include "elf/symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "elf/symbols_impl.hpp"

namespace usdt::elf {
namespace {

template <class Sym>
Symbol decode_symbol(ByteView raw, std::uint64_t at, std::uint32_t& name) noexcept {
  const auto s = load<Sym>(raw, at);
  name = little(s.st_name);
  // The type is the low half of st_info in either class.
  return {{}, static_cast<std::uint8_t>(ELF64_ST_TYPE(s.st_info)), little(s.st_shndx), little(s.st_value)};
}

/// How far `main` has been moved (prelink) since `debug` was split off: addresses of the debug file plus this.
std::uint64_t shift_between(const Image& debug, const Image& main) noexcept {
  const Section* there = debug.find(".text");
  const Section* here = main.find(".text");
  return there == nullptr || here == nullptr ? 0 : here->addr - there->addr;
}

void add_tables(NameIndex& index, const File& file, const Image& image, std::uint64_t shift) {
  for (const Section& s : image.sections) {
    if (s.type != SHT_SYMTAB && s.type != SHT_DYNSYM) continue;
    index.add(SymbolTable(file, image, s), image.type == ET_DYN, shift);
  }
}

/// .comment is a row of strings; linkers write "Linker: LLD 14.0.6", "mold 1.10.1 (compatible with GNU ld)".
bool names_other_linker(std::string_view comment) {
  for (std::size_t at = 0; at < comment.size(); at = std::min(comment.find('\0', at), comment.size() - 1) + 1) {
    const std::string_view mark = comment.substr(at, comment.find('\0', at) - at);
    if (mark.starts_with("mold ")) return true;
    if (mark.starts_with("Linker: ") && mark.find("LLD ") == std::string_view::npos) return true;
  }
  return false;
}

SymbolIndex::Compilers compilers_in(const File& file, const Image& image) {
  const Section* comment = image.find(".comment");
  if (comment == nullptr) return {};
  const Bytes bytes = section_bytes(file, image, *comment);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {.gcc = text.find("GCC: (") != std::string_view::npos,
          .clang = text.find("clang version") != std::string_view::npos,
          .other_linker = names_other_linker(text)};
}

Result<VirtAddr> address_of(std::string_view name, const NameEntry& entry) {
  const bool special = entry.thread_local_storage || entry.ifunc || entry.absolute;
  if (entry.addresses.count > 1) return fail(ambiguous(name, entry.addresses, "addresses"));
  if (entry.addresses.count == 1 && special) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("symbol '{}' names several things, one at {:#x}: which one is meant cannot be told", name,
                            entry.addresses.first));
  }
  if (entry.addresses.count == 1) return VirtAddr(entry.addresses.first);
  const char* what = entry.thread_local_storage ? "is thread-local: it has an address per thread"
                     : entry.ifunc              ? "is an indirect function: its address is chosen at run time"
                     : entry.absolute           ? "is an absolute value, not an address in the file"
                                                : "is undefined here: it lives in another file";
  return fail(ErrorKind::not_supported, fmt::format("symbol '{}' {}", name, what));
}

}  // namespace

Error ambiguous(std::string_view name, const Values& values, std::string_view what) {
  return {ErrorKind::invalid_argument,
          fmt::format("symbol '{}' has {} {}: {:#x}, {:#x}{}: which one is meant cannot be told", name,
                      values.count == 2 ? "2" : "3 or more", what, values.first, values.second,
                      values.count == 2 ? "" : ", ...")};
}

Error in_no_table(std::string_view name) {
  return {ErrorKind::not_found, fmt::format("symbol '{}' is in neither .symtab nor .dynsym nor a debug file", name)};
}

void Values::add(std::uint64_t value) noexcept {
  if (count == 0) {
    first = value;
    count = 1;
  } else if (value != first && (count == 1 || (count == 2 && value != second))) {
    second = count == 1 ? value : second;
    ++count;
  }
}

SymbolTable::SymbolTable(const File& file, const Image& image, const Section& section)
    : is64_(image.is64),
      entry_(image.is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)),
      entries_(section_bytes(file, image, section)) {
  if (section.link < image.sections.size()) strings_ = section_bytes(file, image, image.sections[section.link]);
}

Symbol SymbolTable::operator[](std::size_t index) const noexcept {
  std::uint32_t name = 0;
  Symbol symbol = is64_ ? decode_symbol<Elf64_Sym>(entries_, index * entry_, name)
                        : decode_symbol<Elf32_Sym>(entries_, index * entry_, name);
  symbol.name = string_at(strings_, name);
  symbol.name = symbol.name.substr(0, symbol.name.find('@', 1));
  return symbol;
}

void NameIndex::add(SymbolTable table, bool position_independent, std::uint64_t shift) {
  // The keys point into the table's heap buffers, which stay where they are when the table is moved.
  const SymbolTable& kept = tables_.emplace_back(std::move(table));
  names_.reserve(names_.size() + kept.size());
  for (std::size_t i = 1; i < kept.size(); ++i) add_symbol(kept[i], position_independent, shift);
}

void NameIndex::add_symbol(const Symbol& symbol, bool position_independent, std::uint64_t shift) {
  if (symbol.name.empty() || symbol.type == STT_FILE || symbol.type == STT_SECTION) return;
  NameEntry& entry = names_[symbol.name];
  if (symbol.type == STT_TLS) {
    // Not an address, and not moved by prelink: an offset in the block that PT_TLS describes.
    entry.thread_local_storage = true;
    if (symbol.section == SHN_UNDEF) {
      entry.undefined = true;
    } else {
      entry.thread_offsets.add(symbol.value);
    }
  } else if (symbol.section == SHN_UNDEF) {
    entry.undefined = true;
  } else if (symbol.type == STT_GNU_IFUNC) {
    entry.ifunc = true;
  } else if (symbol.section == SHN_ABS && position_independent) {
    entry.absolute = true;
  } else {
    entry.addresses.add(symbol.value + shift);
  }
}

const NameEntry* NameIndex::find(std::string_view name) const noexcept {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

const NameIndex& SymbolIndex::Impl::index() const {
  return names.get([this] {
    NameIndex all;
    add_tables(all, opened->file, opened->image, 0);
    if (debug()) add_tables(all, debug()->file, debug()->image, shift_between(debug()->image, opened->image));
    return all;
  });
}

SymbolIndex::SymbolIndex(const ElfFile& file) : impl_(std::make_unique<Impl>()) { impl_->opened = file.impl().opened; }
SymbolIndex::SymbolIndex(SymbolIndex&&) noexcept = default;
SymbolIndex& SymbolIndex::operator=(SymbolIndex&&) noexcept = default;
SymbolIndex::~SymbolIndex() = default;

Result<VirtAddr> SymbolIndex::address(std::string_view name) const {
  if (impl_->opened->image.type == ET_REL) {
    return fail(ErrorKind::not_supported,
                fmt::format("symbol '{}' has no address before the relocatable object is linked", name));
  }
  if (const NameEntry* entry = impl_->index().find(name)) return address_of(name, *entry);
  return fail(in_no_table(name));
}

SymbolIndex::Compilers SymbolIndex::compilers() const noexcept {
  return impl_->compilers.get([this] {
    Compilers marks = compilers_in(impl_->opened->file, impl_->opened->image);
    // Distributions strip .comment and keep it in the debug file.
    if (!marks.gcc && !marks.clang && impl_->debug()) {
      marks = compilers_in(impl_->debug()->file, impl_->debug()->image);
    }
    return marks;
  });
}

}  // namespace usdt::elf
