// SPDX-License-Identifier: BSD-2-Clause
#include "elf/symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "elf/debug_package.hpp"
#include "elf/symbols_impl.hpp"

namespace usdt::elf {
namespace {

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

/// Returns what one entry of a symbol table says about its name.
NameEntry entry_of(const Symbol& symbol, const Image& image, std::uint64_t shift) noexcept {
  NameEntry entry;
  entry.undefined = symbol.section == SHN_UNDEF;
  if (symbol.type == STT_TLS) {
    // Not an address, and not moved by prelink: an offset in the block that PT_TLS describes.
    entry.thread_local_storage = true;
    if (!entry.undefined) entry.thread_offsets.add(symbol.value);
  } else if (entry.undefined) {
    return entry;
  } else if (symbol.type == STT_GNU_IFUNC) {
    entry.ifunc = true;
  } else if (symbol.section == SHN_ABS && image.type == ET_DYN) {
    entry.absolute = true;
  } else {
    entry.addresses.add(symbol.value + shift);
  }
  return entry;
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

void Values::add(std::uint64_t value) noexcept {
  if (count == 0) {
    first = value;
    count = 1;
  } else if (value != first && (count == 1 || (count == 2 && value != second))) {
    second = count == 1 ? value : second;
    ++count;
  }
}

void Values::add(const Values& others) noexcept {
  const bool more = others.count > 2;
  if (others.count > 0) add(others.first);
  if (others.count > 1) add(others.second);
  if (more) count = others.count;
}

void NameEntry::add(const NameEntry& other) noexcept {
  addresses.add(other.addresses);
  thread_offsets.add(other.thread_offsets);
  undefined |= other.undefined;
  thread_local_storage |= other.thread_local_storage;
  ifunc |= other.ifunc;
  absolute |= other.absolute;
}

NameIndex::NameIndex(const std::vector<Source>& sources, const std::stop_token& stop) {
  for (const Source& source : sources) {
    SymbolTables tables(source.file, source.image);
    std::vector<std::uint32_t> numbers;
    std::size_t entries = names_.size();
    for (std::uint32_t i = 0; i < source.image.sections.size(); ++i) {
      const std::uint32_t type = source.image.sections[i].type;
      if (type != SHT_SYMTAB && type != SHT_DYNSYM) continue;
      numbers.push_back(i);
      entries += tables.at(i).size();
    }
    names_.reserve(entries);
    for (const std::uint32_t i : numbers) {
      if ((stopped_ |= stop.stop_requested())) break;
      add(tables.at(i), source);
    }
    incomplete_ |= tables.incomplete();
  }
  sort_and_merge();
}

void NameIndex::add(const SymbolTable& table, const Source& source) {
  if (table.size() == 0 || table.strings() == nullptr) return;
  strings_.push_back(table.strings());
  for (std::size_t i = 1; i < table.size(); ++i) {
    const Symbol symbol = table[i];
    if (symbol.type == STT_FILE || symbol.type == STT_SECTION) continue;
    const std::string_view name = table.name_of(symbol);
    if (!name.empty()) names_.push_back({HashedName(name), entry_of(symbol, source.image, source.shift)});
  }
}

void NameIndex::sort_and_merge() {
  std::ranges::sort(names_, {}, &Named::key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (kept > 0 && names_[kept - 1].key == names_[i].key) {
      names_[kept - 1].entry.add(names_[i].entry);
    } else {
      names_[kept++] = names_[i];
    }
  }
  names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(kept), names_.end());
}

const NameEntry* NameIndex::find(std::string_view name) const noexcept {
  const HashedName key(name);
  const auto found = std::ranges::lower_bound(names_, key, {}, &Named::key);
  return found == names_.end() || found->key != key ? nullptr : &found->entry;
}

Error NameIndex::not_found(std::string_view name) const {
  if (stopped_) return {ErrorKind::stopped, fmt::format("symbol '{}' was not looked for to the end", name)};
  if (!incomplete_) {
    return {ErrorKind::not_found, fmt::format("symbol '{}' is in neither .symtab nor .dynsym nor a debug file", name)};
  }
  return {ErrorKind::malformed, fmt::format("symbol '{}' is not in the symbols that could be read: the file's symbol "
                                            "tables lie on top of each other, or name more than there is",
                                            name)};
}

const NameIndex& SymbolIndex::Impl::index() const {
  return names.get([this] {
    std::vector<NameIndex::Source> sources = {{opened->file, opened->image}};
    if (const auto& split = debug()) {
      sources.push_back({split->file, split->image, shift_between(split->image, opened->image)});
    }
    return NameIndex(sources, opened->options.stop);
  });
}

Error SymbolIndex::Impl::not_found(std::string_view name) const {
  Error error = index().not_found(name);
  // No package has more symbols than a file that has all of them.
  const auto is_symtab = [](const auto& section) { return section.type == SHT_SYMTAB; };
  if (error.kind != ErrorKind::not_found || debug() || std::ranges::any_of(opened->image.sections, is_symtab))
    return error;
  const std::string& hint = package_hint.get(
      [this] { return where_symbols_are(package_of(opened->path), build_id(opened->file, opened->image)); });
  if (!hint.empty()) error.message += "; " + hint;
  return error;
}

SymbolIndex::SymbolIndex(const ElfFile& file) : impl_(std::make_unique<Impl>()) { impl_->opened = Inside::of(file); }
SymbolIndex::SymbolIndex(SymbolIndex&&) noexcept = default;
SymbolIndex& SymbolIndex::operator=(SymbolIndex&&) noexcept = default;
SymbolIndex::~SymbolIndex() = default;

Result<VirtAddr> SymbolIndex::address(std::string_view name) const {
  if (impl_->opened->image.type == ET_REL) {
    return fail(ErrorKind::not_supported,
                fmt::format("symbol '{}' has no address before the relocatable object is linked", name));
  }
  if (const NameEntry* entry = impl_->index().find(name)) return address_of(name, *entry);
  return fail(impl_->not_found(name));
}

bool SymbolIndex::has(std::string_view name) const { return impl_->index().find(name) != nullptr; }

/// DF_1_PIE is younger than position-independent programs (binutils 2.26); libc.so.6 names an interpreter, too.
bool SymbolIndex::is_program() const noexcept {
  const Image& image = impl_->opened->image;
  if (image.type != ET_DYN) return image.type == ET_EXEC;
  if ((impl_->dynamic().flags_1.value_or(0) & DF_1_PIE) != 0) return true;
  const bool interpreted = std::ranges::find(image.segments, PT_INTERP, &Segment::type) != image.segments.end();
  return interpreted && !impl_->dynamic().soname;
}

bool SymbolIndex::is_loaded_as_linked() const noexcept { return impl_->opened->image.type == ET_EXEC; }

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
