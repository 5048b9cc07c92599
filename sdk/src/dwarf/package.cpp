// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/package.hpp"

#include <dwarf.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/try.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Behind all sections: libdw takes some strings without a look at where their section ends.
constexpr std::size_t kZerosBehind = 64;
/// Columns of an index: there are eight kinds of sections.
constexpr std::uint64_t kMostColumns = 8;
/// Bytes of the abbreviation of a type unit's own entry; compilers write some dozens.
constexpr std::size_t kLongestAbbreviation = 4096;

std::span<const DwoSection> all_sections() {
  static constexpr std::array all{DwoSection::info,     DwoSection::types,       DwoSection::abbrev,
                                  DwoSection::line,     DwoSection::loc,         DwoSection::loclists,
                                  DwoSection::rnglists, DwoSection::str_offsets, DwoSection::str};
  static_assert(all.size() == kDwoSections);
  return all;
}

/// The section that a column's number stands for; nothing: macros, or not known.
std::optional<DwoSection> section_of_column(std::uint64_t column, std::uint64_t version) {
  switch (column) {
    case 1:
      return DwoSection::info;
    case 2:
      return DwoSection::types;
    case 3:
      return DwoSection::abbrev;
    case 4:
      return DwoSection::line;
    case 5:
      return version == 5 ? DwoSection::loclists : DwoSection::loc;
    case 6:
      return DwoSection::str_offsets;
    case 8:
      return version == 5 ? std::optional(DwoSection::rnglists) : std::nullopt;
    default:
      return std::nullopt;
  }
}

void append(std::vector<std::uint8_t>& to, SectionBytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void put(std::vector<std::uint8_t>& bytes, std::uint64_t at, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
}

void append_sleb(std::vector<std::uint8_t>& to, std::uint64_t value) {
  for (; value >= 0x40; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
  to.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace

std::string_view name_of(DwoSection section) noexcept {
  static constexpr std::array<std::string_view, kDwoSections> names{
      ".debug_info.dwo",     ".debug_types.dwo",    ".debug_abbrev.dwo",      ".debug_line.dwo", ".debug_loc.dwo",
      ".debug_loclists.dwo", ".debug_rnglists.dwo", ".debug_str_offsets.dwo", ".debug_str.dwo"};
  return names[static_cast<std::size_t>(section)];
}

Result<DwarfPackage> DwarfPackage::read(const Sections& sections) {
  DwarfPackage package;
  package.sections_ = sections;
  for (const auto& [index, rows] : {std::pair(sections.units, &package.units_), {sections.types, &package.types_}}) {
    if (index.empty()) continue;
    auto read = TRY(read_index(index, sections));
    *rows = std::move(read);
  }
  return package;
}

Result<std::vector<DwarfPackage::Row>> DwarfPackage::read_index(SectionBytes index, const Sections& sections) {
  SectionReader head(index, 0);
  const std::uint64_t version = head.fixed(4);  // DWARF 5: two bytes, and two zeros
  const std::uint64_t columns = head.fixed(4);
  const std::uint64_t units = head.fixed(4);
  const std::uint64_t slots = head.fixed(4);
  if (version != 2 && version != 5)
    return fail(ErrorKind::not_supported, fmt::format("an index of units of version {}, not 2 or 5", version));
  const std::uint64_t ids = 16;
  const std::uint64_t numbers = ids + slots * 8;
  const std::uint64_t kinds = numbers + slots * 4;
  const std::uint64_t offsets = kinds + columns * 4;
  const std::uint64_t sizes = offsets + units * columns * 4;
  if (columns > kMostColumns || sizes + units * columns * 4 > index.size() || units > slots)
    return fail(ErrorKind::malformed, "an index of units that is larger than its section");
  const auto word = [index](std::uint64_t at, unsigned size) { return SectionReader(index, at).fixed(size); };
  std::vector<Row> rows;
  rows.reserve(units);
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const std::uint64_t number = word(numbers + slot * 4, 4);
    if (number == 0 || number > units) continue;
    Row row{.id = word(ids + slot * 8, 8), .parts = {}};
    bool is_within = true;
    for (std::uint64_t column = 0; column < columns; ++column) {
      const auto section = section_of_column(word(kinds + column * 4, 4), version);
      if (!section) continue;
      const std::uint64_t at = ((number - 1) * columns + column) * 4;
      const std::uint64_t offset = word(offsets + at, 4);
      const std::uint64_t size = word(sizes + at, 4);
      is_within = is_within && offset + size <= sections.contents[*section].size();
      row.parts[*section] = {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)};
    }
    if (is_within) rows.push_back(row);
    if (rows.size() == units) break;  // more slots that have a number share it
  }
  std::ranges::stable_sort(rows, {}, &Row::id);
  return rows;
}

const DwarfPackage::Row* DwarfPackage::find(const std::vector<Row>& rows, std::uint64_t id) noexcept {
  const auto at = std::ranges::lower_bound(rows, id, {}, &Row::id);
  return at != rows.end() && at->id == id ? &*at : nullptr;
}

SectionBytes DwarfPackage::part(const Row& row, DwoSection section) const noexcept {
  const Part& each = row.parts[section];
  return sections_.contents[section].subspan(each.offset, each.size);
}

/// Makes one unit's sections.
class DwarfPackage::Composer {
 public:
  Composer(const DwarfPackage& package, Budget& budget) : package_(package), budget_(budget) {}

  [[nodiscard]] std::optional<DwoBytes> compose(const Row& unit) {
    const auto head = unit_head(package_.part(unit, DwoSection::info), 0);
    if (!head) return std::nullopt;
    for (const DwoSection section : all_sections())
      if (section != DwoSection::str_offsets && section != DwoSection::str && section != DwoSection::types)
        take(section, package_.part(unit, section));
    strings_at(unit.parts[DwoSection::str_offsets], *head);
    if (!package_.types_.empty()) add_types(package_.part(unit, DwoSection::info));
    if (budget_.spent()) return std::nullopt;
    return std::move(made_);
  }

 private:
  void take(DwoSection section, SectionBytes bytes) {
    if (budget_.spend(bytes.size())) append(made_[section], bytes);
  }

  /// Type units are referred to by eight bytes, wherever in an entry: what reads like one that there is, is one. Those
  /// that they refer to come with them.
  void add_types(SectionBytes info) {
    std::vector<SectionBytes> left{info};
    std::vector<const Row*> taken;
    while (!left.empty()) {
      const SectionBytes bytes = left.back();
      left.pop_back();
      if (!budget_.spend(bytes.size())) return;
      for (std::size_t at = 0; at + 8 <= bytes.size(); ++at) {
        std::uint64_t id = 0;
        std::memcpy(&id, bytes.data() + at, sizeof id);
        const Row* row = find(package_.types_, id);
        if (row == nullptr || std::ranges::binary_search(taken, row)) continue;
        taken.insert(std::ranges::lower_bound(taken, row), row);
        if (!budget_.spend(taken.size())) return;
        if (const auto type = add_type(*row)) left.push_back(*type);
      }
    }
  }

  /// Its parts come from the .dwo file that the packager took it from, whose strings have numbers of their own: its
  /// own entry says where they begin, by an attribute that has its value in the abbreviation and takes no room here.
  std::optional<SectionBytes> add_type(const Row& row) {
    const DwoSection section = package_.part(row, DwoSection::types).empty() ? DwoSection::info : DwoSection::types;
    const SectionBytes bytes = package_.part(row, section);
    const auto head = unit_head(bytes, 0);
    const bool is_known = head && (head->version == 4 || (head->version == 5 && head->kind == DW_UT_split_type));
    if (!is_known || head->end != bytes.size()) return std::nullopt;
    // Before DWARF 5 the signature and the type's offset are behind what units have in common.
    const std::uint64_t entry = head->first_entry + (head->version == 4 ? 8U + head->offset_size : 0U);
    SectionReader first(bytes, entry);
    const std::uint64_t code = first.uleb();
    const std::uint64_t base = strings_at(row.parts[DwoSection::str_offsets], *head);
    const std::uint64_t table = made_[DwoSection::abbrev].size();
    if (!add_abbreviations(package_.part(row, DwoSection::abbrev), head->abbreviations, code, base))
      return std::nullopt;
    const std::uint64_t begin = made_[section].size();
    take(section, bytes);
    if (budget_.spent()) return std::nullopt;
    const std::uint64_t length = head->offset_size == 8 ? 12 : 4;
    put(made_[section], begin + length + (head->version == 5 ? 4 : 2), table, head->offset_size);
    return bytes.subspan(entry);
  }

  /// The table at `offset` of `abbrev`, in which `code` has one attribute more.
  bool add_abbreviations(SectionBytes abbrev, std::uint64_t offset, std::uint64_t code, std::uint64_t strings) {
    SectionReader bytes(abbrev, offset);
    const auto position = [&] { return static_cast<std::uint64_t>(bytes.position() - abbrev.data()); };
    bool is_there = false;
    std::uint64_t taken = position();
    while (const std::uint64_t each = bytes.uleb()) {
      const std::uint64_t begin = position();
      bytes.skip_leb();
      bytes.skip(1);
      std::uint64_t end = position();
      for (std::uint64_t pair = 1; bytes.good() && pair != 0;) {
        end = position();
        const std::uint64_t name = bytes.uleb();
        const std::uint64_t form = bytes.uleb();
        if (form == DW_FORM_implicit_const) bytes.skip_leb();
        pair = name | form;
      }
      if (!bytes.good() || each != code || is_there || end - begin > kLongestAbbreviation) continue;
      is_there = true;
      take(DwoSection::abbrev, abbrev.subspan(taken, end - taken));
      auto& made = made_[DwoSection::abbrev];
      made.insert(made.end(), {DW_AT_str_offsets_base, DW_FORM_implicit_const});
      append_sleb(made, strings);
      taken = end;
    }
    if (bytes.good()) take(DwoSection::abbrev, abbrev.subspan(taken, position() - taken));
    return bytes.good() && is_there;
  }

  /// Adds a part of .debug_str_offsets.dwo and its strings, once; returns where its entries begin in what is made.
  std::uint64_t strings_at(const Part& part, const UnitHead& unit) {
    for (const auto& [known, base] : strings_)
      if (known.offset == part.offset && known.size == part.size) return base;
    const SectionBytes offsets = package_.sections_.contents[DwoSection::str_offsets].subspan(part.offset, part.size);
    auto& made = made_[DwoSection::str_offsets];
    const std::uint64_t begin = made.size();
    const std::uint64_t head = unit.version < 5 ? 0 : unit.offset_size == 8 ? 16 : 8;
    strings_.emplace_back(part, begin + head);
    take(DwoSection::str_offsets, offsets);
    if (budget_.spent() || offsets.size() < head) return begin + head;
    take_strings(SectionReader(offsets, head), begin + head, unit.offset_size);
    return begin + head;
  }

  /// The strings at these offsets, which are `at` in what is made, too. Of a package of many programs a unit has some
  /// thousandths.
  void take_strings(SectionReader offsets, std::uint64_t at, unsigned size) {
    struct Entry {
      std::uint64_t offset;
      std::uint64_t at;
    };
    std::vector<Entry> entries;
    for (std::uint64_t offset = offsets.fixed(size); offsets.good(); offset = offsets.fixed(size), at += size)
      entries.push_back({offset, at});
    std::ranges::sort(entries, {}, &Entry::offset);
    const SectionBytes all = package_.sections_.contents[DwoSection::str];
    auto& made = made_[DwoSection::str];
    std::uint64_t last = UINT64_MAX;
    std::uint64_t place = 0;
    for (const Entry& entry : entries) {
      if (entry.offset != last) {
        const SectionBytes text = all.subspan(std::min<std::uint64_t>(entry.offset, all.size()));
        const auto most = std::min(text.size(), kLongestName);
        const auto length = most == 0 ? 0 : ::strnlen(reinterpret_cast<const char*>(text.data()), most);
        place = made.size();
        last = entry.offset;
        take(DwoSection::str, text.first(length));
        made.push_back(0);
      }
      put(made_[DwoSection::str_offsets], entry.at, place, size);
    }
  }

  const DwarfPackage& package_;
  Budget& budget_;
  DwoBytes made_;
  std::vector<std::pair<Part, std::uint64_t>> strings_;
};

std::optional<DwoBytes> DwarfPackage::dwo_of(std::uint64_t id, Budget& budget) const {
  const Row* row = find(units_, id);
  return row == nullptr ? std::nullopt : Composer(*this, budget).compose(*row);
}

namespace {

template <class Head, class SectionHead>
std::vector<std::uint8_t> elf_file(const DwoBytes& sections, unsigned elf_class, std::uint16_t machine) {
  std::vector<std::uint8_t> file(sizeof(Head));
  std::vector<SectionHead> heads(1);
  std::string names(1, '\0');
  const auto add = [&](SectionBytes bytes, std::uint32_t type) {  // called what is put behind `names`
    SectionHead head{};
    head.sh_name = static_cast<std::uint32_t>(names.size());
    head.sh_type = type;
    head.sh_offset = static_cast<decltype(head.sh_offset)>(file.size());
    head.sh_size = static_cast<decltype(head.sh_size)>(bytes.size());
    head.sh_addralign = 1;
    heads.push_back(head);
    append(file, bytes);
  };
  for (const DwoSection section : all_sections()) {
    if (sections[section].empty()) continue;
    add(sections[section], SHT_PROGBITS);
    names.append(name_of(section)) += '\0';
  }
  const std::string all_names = names + ".shstrtab" + '\0';
  add(std::span(reinterpret_cast<const std::uint8_t*>(all_names.data()), all_names.size()), SHT_STRTAB);
  file.resize((file.size() + 7) / 8 * 8);
  Head head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = static_cast<std::uint8_t>(elf_class);
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_REL;
  head.e_machine = machine;
  head.e_version = EV_CURRENT;
  head.e_shoff = static_cast<decltype(head.e_shoff)>(file.size());
  head.e_ehsize = sizeof(Head);
  head.e_shentsize = sizeof(SectionHead);
  head.e_shnum = static_cast<std::uint16_t>(heads.size());
  head.e_shstrndx = static_cast<std::uint16_t>(heads.size() - 1);
  std::memcpy(file.data(), &head, sizeof head);
  append(file, std::span(reinterpret_cast<const std::uint8_t*>(heads.data()), heads.size() * sizeof(SectionHead)));
  file.resize(file.size() + kZerosBehind);
  return file;
}

}  // namespace

std::vector<std::uint8_t> elf_file_of(const DwoBytes& sections, bool is64, std::uint16_t machine) {
  return is64 ? elf_file<Elf64_Ehdr, Elf64_Shdr>(sections, ELFCLASS64, machine)
              : elf_file<Elf32_Ehdr, Elf32_Shdr>(sections, ELFCLASS32, machine);
}

}  // namespace usdt::dwarf
