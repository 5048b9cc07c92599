// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/unit_reader.hpp"

#include <dwarf.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "dwarf/die.hpp"
#include "dwarf/names.hpp"

namespace usdt::dwarf {
namespace {

/// Codes that a table leaves out in all; compilers number them from 1, and leave out none.
constexpr std::uint64_t kMostLeftOut = 256;
/// Bytes of one table: compilers write some thousands.
constexpr std::uint64_t kLargestTable = 1U << 20;
/// Attributes of one abbreviation.
constexpr std::size_t kMostAttributes = 4096;

Wanted wanted_of(std::uint64_t attribute) {
  switch (attribute) {
    case DW_AT_name:
      return Wanted::name;
    case DW_AT_linkage_name:
      return Wanted::linkage_name;
    case DW_AT_MIPS_linkage_name:
      return Wanted::mips_linkage_name;
    case DW_AT_abstract_origin:
      return Wanted::abstract_origin;
    case DW_AT_specification:
      return Wanted::specification;
    case DW_AT_signature:
      return Wanted::signature;
    case DW_AT_low_pc:
      return Wanted::low_pc;
    case DW_AT_entry_pc:
      return Wanted::entry_pc;
    case DW_AT_ranges:
      return Wanted::ranges;
    case DW_AT_addr_base:
      return Wanted::addr_base;
    case DW_AT_str_offsets_base:
      return Wanted::str_offsets_base;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
      return Wanted::split;
    case DW_AT_GNU_dwo_id:
      return Wanted::dwo_id;
    default:
      return Wanted::nothing;
  }
}

/// Bytes of a form's values, if that is the same for each.
std::uint8_t size_of_form(unsigned form, const UnitHead& unit) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return unit.address_size;
    case DW_FORM_ref_addr:
      return unit.version == 2 ? unit.address_size : unit.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return unit.offset_size;
    default:
      return Abbreviation::kOwnSize;
  }
}

bool is_code(Wanted wanted) {
  return wanted == Wanted::low_pc || wanted == Wanted::entry_pc || wanted == Wanted::ranges;
}

bool is_name(Wanted wanted) {
  return wanted == Wanted::name || wanted == Wanted::linkage_name || wanted == Wanted::mips_linkage_name ||
         wanted == Wanted::specification;
}

/// One abbreviation behind its code; false: the table is not understood from here on.
bool read_abbreviation(SectionReader& bytes, const UnitHead& unit, Abbreviation& abbreviation) {
  abbreviation.tag = static_cast<std::uint32_t>(bytes.uleb());
  abbreviation.has_children = bytes.fixed(1) != 0;
  abbreviation.is_scope = is_scope(static_cast<int>(abbreviation.tag));
  abbreviation.may_hold_scopes = may_hold_scopes(static_cast<int>(abbreviation.tag));
  Abbreviation::Skip skip;
  while (bytes.good() && abbreviation.attributes.size() < kMostAttributes) {
    const std::uint64_t name = bytes.uleb();
    const std::uint64_t form = bytes.uleb();
    if (name == 0 && form == 0) {
      if (skip.bytes != 0) abbreviation.skips.push_back(skip);
      return bytes.good() && abbreviation.tag != 0;
    }
    if (form == DW_FORM_implicit_const) bytes.skip_leb();
    const Wanted wanted = wanted_of(name);
    abbreviation.has_code |= is_code(wanted);
    abbreviation.has_names |= is_name(wanted);
    const auto narrow = static_cast<std::uint16_t>(std::min<std::uint64_t>(form, UINT16_MAX));
    const std::uint8_t size = size_of_form(narrow, unit);
    abbreviation.attributes.push_back({wanted, size, narrow});
    if (size != Abbreviation::kOwnSize) {
      skip.bytes += size;
      continue;
    }
    skip.form = narrow;
    abbreviation.skips.push_back(skip);
    skip = {};
  }
  return false;
}

}  // namespace

std::uint64_t SectionReader::fixed(unsigned size) noexcept {
  static_assert(std::endian::native == std::endian::little);
  if (size > 8 || static_cast<std::size_t>(end_ - at_) < size) {
    fail();
    return 0;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, at_, size);
  at_ += size;
  return value;
}

std::uint64_t SectionReader::uleb() noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at_ != end_ && shift < 64; shift += 7) {
    const std::uint8_t byte = *at_++;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

void SectionReader::skip(std::uint64_t size) noexcept {
  if (static_cast<std::uint64_t>(end_ - at_) < size)
    fail();
  else
    at_ += size;
}

void SectionReader::skip_leb() noexcept {
  while (at_ != end_)
    if (*at_++ < 0x80) return;
  fail();
}

void SectionReader::skip_string() noexcept {
  const void* end = at_ == end_ ? nullptr : std::memchr(at_, 0, static_cast<std::size_t>(end_ - at_));
  if (end == nullptr)
    fail();
  else
    at_ = static_cast<const std::uint8_t*>(end) + 1;
}

std::string_view TextPlace::in(const DebugSections& sections) const noexcept {
  const SectionBytes all[] = {{}, sections.info, sections.str, sections.line_str};
  const SectionBytes section = all[packed_ & 3];
  const std::uint64_t offset = packed_ >> 2;
  if (offset >= section.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(section.data() + offset);
  return {begin, ::strnlen(begin, std::min<std::uint64_t>(kLongestName, section.size() - offset))};
}

namespace {

/// The length and format of a unit, which are known whether or not the rest of it is understood.
struct Extent {
  std::uint64_t end = 0;
  std::uint8_t offset_size = 0;
};

std::optional<Extent> read_extent(SectionReader& bytes, SectionBytes section) {
  std::uint64_t length = bytes.fixed(4);
  const bool wide = length == 0xffffffff;
  if (wide) length = bytes.fixed(8);
  const auto behind = static_cast<std::uint64_t>(bytes.position() - section.data());
  if (!bytes.good() || length > section.size() - behind) return std::nullopt;
  return Extent{.end = behind + length, .offset_size = static_cast<std::uint8_t>(wide ? 8 : 4)};
}

}  // namespace

std::optional<UnitHead> unit_head(SectionBytes info, std::uint64_t offset) {
  SectionReader bytes(info, offset);
  const auto extent = read_extent(bytes, info);
  if (!extent) return std::nullopt;
  UnitHead unit{.offset = offset, .end = extent->end, .offset_size = extent->offset_size};
  unit.version = static_cast<std::uint16_t>(bytes.fixed(2));
  if (unit.version < 2 || unit.version > 5) return std::nullopt;
  if (unit.version == 5) {
    unit.kind = static_cast<std::uint8_t>(bytes.fixed(1));
    unit.address_size = static_cast<std::uint8_t>(bytes.fixed(1));
    unit.abbreviations = bytes.fixed(unit.offset_size);
    if (unit.kind == DW_UT_skeleton || unit.kind == DW_UT_split_compile) bytes.skip(8);
    if (unit.kind == DW_UT_type || unit.kind == DW_UT_split_type) bytes.skip(8U + unit.offset_size);
  } else {
    unit.kind = DW_UT_compile;
    unit.abbreviations = bytes.fixed(unit.offset_size);
    unit.address_size = static_cast<std::uint8_t>(bytes.fixed(1));
  }
  unit.first_entry = static_cast<std::uint64_t>(bytes.position() - info.data());
  if (!bytes.good() || unit.first_entry > unit.end) return std::nullopt;
  return unit;
}

namespace {

/// Calls `visit(range)` for each range of .debug_aranges, as far as that is understood, until it returns false.
template <class Visit>
void for_each_unit_range(SectionBytes aranges, Visit&& visit) {
  for (std::uint64_t at = 0; at < aranges.size();) {
    SectionReader bytes(aranges, at);
    const auto extent = read_extent(bytes, aranges);
    if (!extent || bytes.fixed(2) != 2) return;  // the version of the table, the same in DWARF 2 to 5
    const std::uint64_t unit = bytes.fixed(extent->offset_size);
    const auto size = static_cast<unsigned>(bytes.fixed(1));
    if (bytes.fixed(1) != 0 || (size != 4 && size != 8)) return;
    // The pairs begin at a multiple of their size, counted from the head (DWARF 5, 6.1.2).
    const auto read = static_cast<std::uint64_t>(bytes.position() - aranges.data()) - at;
    const std::uint64_t pair = std::uint64_t{size} * 2;
    bytes.skip((pair - read % pair) % pair);
    while (bytes.good() && static_cast<std::uint64_t>(bytes.position() - aranges.data()) < extent->end) {
      const std::uint64_t begin = bytes.fixed(size);
      const std::uint64_t length = bytes.fixed(size);
      if (begin == 0 && length == 0) break;
      if (length != 0 && !visit(UnitRange{begin, length, unit})) return;
    }
    if (!bytes.good()) return;
    at = extent->end;
  }
}

}  // namespace

std::optional<std::uint64_t> unit_by_aranges(SectionBytes aranges, std::uint64_t address) {
  std::optional<std::uint64_t> unit;
  for_each_unit_range(aranges, [&](const UnitRange& range) {
    if (range.contains(address)) unit = range.unit;
    return !unit;
  });
  return unit;
}

std::vector<UnitRange> unit_ranges(SectionBytes aranges) {
  std::vector<UnitRange> ranges;
  for_each_unit_range(aranges, [&](const UnitRange& range) {
    ranges.push_back(range);
    return true;
  });
  std::ranges::stable_sort(ranges, {}, &UnitRange::begin);
  return ranges;
}

std::optional<std::uint64_t> find_unit(std::span<const UnitRange> ranges, std::uint64_t address) {
  const auto behind = std::ranges::upper_bound(ranges, address, {}, &UnitRange::begin);
  if (behind == ranges.begin()) return std::nullopt;
  const auto first = std::ranges::lower_bound(ranges, std::prev(behind)->begin, {}, &UnitRange::begin);
  const auto found = std::find_if(first, behind, [&](const UnitRange& range) { return range.contains(address); });
  return found == behind ? std::nullopt : std::optional(found->unit);
}

namespace {

/// The offsets of the units' abbreviation tables, sorted.
std::vector<std::uint64_t> table_offsets(const DebugSections& sections) {
  std::vector<std::uint64_t> offsets;
  for (const SectionBytes section : {sections.info, sections.types})
    for (std::uint64_t at = 0; at < section.size();) {
      SectionReader bytes(section, at);
      const auto extent = read_extent(bytes, section);
      if (!extent) break;
      if (const auto head = unit_head(section, at)) offsets.push_back(head->abbreviations);
      at = extent->end;
    }
  std::ranges::sort(offsets);
  return offsets;
}

std::uint64_t size_of_table(SectionBytes abbrev, std::uint64_t offset) {
  SectionReader bytes(abbrev, offset);
  const std::uint8_t* const begin = bytes.position();
  while (bytes.good() && bytes.uleb() != 0) {
    bytes.skip_leb();
    bytes.skip(1);
    std::uint64_t form = 1;
    for (std::uint64_t name = 1; bytes.good() && (name | form) != 0;) {
      name = bytes.uleb();
      form = bytes.uleb();
      if (form == DW_FORM_implicit_const) bytes.skip_leb();
    }
  }
  return static_cast<std::uint64_t>(bytes.position() - begin);
}

}  // namespace

std::uint64_t bytes_of_all_tables(const DebugSections& sections, std::uint64_t most) {
  const std::vector<std::uint64_t> offsets = table_offsets(sections);
  if (offsets.size() <= most / (sections.abbrev.size() + 1)) return offsets.size() * sections.abbrev.size();
  std::uint64_t total = 0;
  for (auto at = offsets.begin(); at != offsets.end() && total <= most;) {
    const auto behind = std::upper_bound(at, offsets.end(), *at);
    total += static_cast<std::uint64_t>(behind - at) * size_of_table(sections.abbrev, *at);
    at = behind;
  }
  return total;
}

Abbreviations::Abbreviations(const DebugSections& sections, const UnitHead& unit, std::uint64_t most) : unit_(unit) {
  const std::uint64_t begin = std::min<std::uint64_t>(unit.abbreviations, sections.abbrev.size());
  const std::uint64_t size = std::min({most, kLargestTable, sections.abbrev.size() - begin});
  const SectionBytes table = sections.abbrev.subspan(begin, size);
  SectionReader bytes(table, 0);
  if (!read(bytes)) by_code_.clear();
  size_ = static_cast<std::uint64_t>(bytes.position() - table.data());
}

bool Abbreviations::read(SectionReader& bytes) {
  std::uint64_t count = 0;
  while (const std::uint64_t code = bytes.uleb()) {
    Abbreviation abbreviation;
    if (code > ++count + kMostLeftOut || !read_abbreviation(bytes, unit_, abbreviation)) return false;
    if (code >= by_code_.size()) by_code_.resize(code + 1);
    by_code_[code] = std::move(abbreviation);
  }
  return bytes.good();
}

bool Abbreviations::serve(const UnitHead& unit) const noexcept {
  return unit.abbreviations == unit_.abbreviations && unit.version == unit_.version &&
         unit.address_size == unit_.address_size && unit.offset_size == unit_.offset_size;
}

UnitReader::UnitReader(const DebugSections& sections, const UnitHead& head, const Abbreviations& abbreviations)
    : sections_(sections), head_(head), abbreviations_(abbreviations) {
  SectionReader entry(bytes(), head.first_entry);
  const Abbreviation* abbreviation = abbreviations_.find(entry.uleb());
  if (abbreviation == nullptr || head.kind == DW_UT_skeleton) return;
  bool split = false;
  read(entry, *abbreviation, [&](const FoundAttribute& at) {
    if (at.wanted == Wanted::addr_base) addr_base_ = at.value;
    if (at.wanted == Wanted::str_offsets_base) str_offsets_base_ = at.value;
    if (at.wanted == Wanted::split || at.wanted == Wanted::dwo_id) split = true;
  });
  good_ = entry.good() && !split;
}

void UnitReader::skip(SectionReader& bytes, const Abbreviation& abbreviation) const {
  for (const Abbreviation::Skip& each : abbreviation.skips) {
    bytes.skip(each.bytes);
    if (each.form != 0) skip_form(bytes, each.form);
  }
}

void UnitReader::skip_form(SectionReader& bytes, unsigned form) const {
  switch (form) {
    case DW_FORM_string:
      return bytes.skip_string();
    case DW_FORM_block1:
      return bytes.skip(bytes.fixed(1));
    case DW_FORM_block2:
      return bytes.skip(bytes.fixed(2));
    case DW_FORM_block4:
      return bytes.skip(bytes.fixed(4));
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return bytes.skip(bytes.uleb());
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return bytes.skip_leb();
    default:
      // The end of an unknown form cannot be known (DW_FORM_indirect is one of them: nobody writes it).
      return bytes.skip(UINT64_MAX);
  }
}

FoundAttribute UnitReader::found(SectionReader& bytes, const Abbreviation::Attribute& attribute) const {
  FoundAttribute at{.wanted = attribute.wanted, .form = attribute.form};
  switch (attribute.form) {
    case DW_FORM_string:
      at.value = static_cast<std::uint64_t>(bytes.position() - sections_.info.data());
      bytes.skip_string();
      break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_rnglistx:
      at.value = bytes.uleb();
      break;
    default:
      if (attribute.size <= sizeof(at.value))
        at.value = bytes.fixed(attribute.size);
      else if (attribute.size != Abbreviation::kOwnSize)
        bytes.skip(attribute.size);
      else
        skip_form(bytes, attribute.form);
      break;
  }
  return at;
}

/// The value at an index of a table that begins at `base`; nothing: the unit does not say where that is.
std::optional<std::uint64_t> UnitReader::indexed(SectionBytes table, std::uint64_t base, std::uint64_t index,
                                                 unsigned size) {
  if (base == 0 || base > table.size() || index > table.size()) return std::nullopt;
  SectionReader entry(table, base + index * size);
  const std::uint64_t value = entry.fixed(size);
  return entry.good() ? std::optional(value) : std::nullopt;
}

std::optional<TextPlace> UnitReader::text(const FoundAttribute& name) const {
  switch (name.form) {
    case DW_FORM_string:
      return TextPlace{TextPlace::info, name.value};
    case DW_FORM_strp:
      return TextPlace{TextPlace::str, name.value};
    case DW_FORM_line_strp:
      return TextPlace{TextPlace::line_str, name.value};
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
      if (const auto offset = indexed(sections_.str_offsets, str_offsets_base_, name.value, head_.offset_size))
        return TextPlace{TextPlace::str, *offset};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> UnitReader::reference(const FoundAttribute& at) const {
  switch (at.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      if (at.value >= head_.end - head_.offset) return std::nullopt;
      return head_.offset + at.value;
    case DW_FORM_ref_addr:
      if (at.value >= sections_.info.size()) return std::nullopt;
      return at.value;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> UnitReader::address(const FoundAttribute& at) const {
  switch (at.form) {
    case DW_FORM_addr:
      return at.value;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
      return indexed(sections_.addr, addr_base_, at.value, head_.address_size);
    default:
      return std::nullopt;
  }
}

}  // namespace usdt::dwarf
