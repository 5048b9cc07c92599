// SPDX-License-Identifier: BSD-2-Clause
// The entries of a unit of .debug_info in the order of the file, some ten million a second: what an index of a large
// file is made of. libdw, which answers any question of any entry, takes ten times as long. Private to dwarf/.
//
// Source of the forms and headers: DWARF 5, 7.5; DWARF 2 to 4 where they differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace usdt::dwarf {

using SectionBytes = std::span<const std::uint8_t>;

/// The sections that entries lead to; those that are not there are empty.
struct DebugSections {
  SectionBytes info;
  SectionBytes types;  ///< before DWARF 5
  SectionBytes abbrev;
  SectionBytes str;
  SectionBytes line_str;
  SectionBytes str_offsets;
  SectionBytes addr;
  SectionBytes ranges;  ///< before DWARF 5
  SectionBytes rnglists;
  SectionBytes aranges;
  SectionBytes loc;  ///< before DWARF 5
  SectionBytes loclists;

  /// There are no more DIEs than that.
  [[nodiscard]] std::uint64_t bytes_of_dies() const noexcept { return info.size() + types.size(); }
  [[nodiscard]] std::uint64_t bytes_of_ranges() const noexcept { return ranges.size() + rnglists.size(); }
};

/// Reads little-endian numbers; behind the end all are 0, and `good` is false.
class SectionReader {
 public:
  SectionReader(SectionBytes all, std::uint64_t at) noexcept
      : at_(all.data() + (at < all.size() ? at : all.size())), end_(all.data() + all.size()), good_(at <= all.size()) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_; }
  [[nodiscard]] const std::uint8_t* position() const noexcept { return at_; }
  [[nodiscard]] std::uint64_t fixed(unsigned size) noexcept;
  [[nodiscard]] std::uint64_t uleb() noexcept;
  void skip(std::uint64_t size) noexcept;
  void skip_leb() noexcept;
  void skip_string() noexcept;

 private:
  void fail() noexcept {
    good_ = false;
    at_ = end_;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool good_;
};

/// The place of a string, in one word; the string ends with a NUL, or with its section.
class TextPlace {
 public:
  enum Section : std::uint8_t { none, info, str, line_str };
  TextPlace() = default;
  TextPlace(Section section, std::uint64_t offset) noexcept : packed_(offset << 2 | section) {}

  [[nodiscard]] bool is_known() const noexcept { return packed_ != 0; }
  [[nodiscard]] std::uint64_t packed() const noexcept { return packed_; }
  [[nodiscard]] static TextPlace unpacked(std::uint64_t packed) noexcept {
    TextPlace place;
    place.packed_ = packed;
    return place;
  }
  /// At most as many bytes as are believed of a name; none of what is not known.
  [[nodiscard]] std::string_view in(const DebugSections& sections) const noexcept;
  friend bool operator==(const TextPlace&, const TextPlace&) = default;

 private:
  std::uint64_t packed_ = 0;
};

/// The attributes that are read of an entry; all others are skipped.
enum class Wanted : std::uint8_t {
  nothing,
  name,
  linkage_name,
  mips_linkage_name,
  abstract_origin,
  specification,
  signature,
  low_pc,
  entry_pc,
  ranges,
  addr_base,
  str_offsets_base,
  split,   ///< says which other file the rest is in
  dwo_id,  ///< before DWARF 5: says so, too
};

struct Abbreviation {
  struct Attribute {
    Wanted wanted = Wanted::nothing;
    std::uint8_t size = kOwnSize;  ///< bytes of `form`
    std::uint16_t form = 0;
  };
  static constexpr std::uint8_t kOwnSize = 255;  ///< each value of the form has a size of its own
  /// How to get behind some of its attributes: so many bytes, and then perhaps a form of a size of its own.
  struct Skip {
    std::uint32_t bytes = 0;
    std::uint16_t form = 0;  ///< 0: none
  };
  std::uint32_t tag = 0;
  bool has_children = false;
  bool is_scope = false;         ///< lends its name to what is in it (names.hpp)
  bool may_hold_scopes = false;  ///< the same
  bool has_code = false;         ///< one of low_pc, entry_pc, ranges
  bool has_names = false;        ///< one of its own names, or a specification
  std::vector<Skip> skips;
  std::vector<Attribute> attributes;
};

/// The header of a unit.
struct UnitHead {
  std::uint64_t offset = 0;  ///< in .debug_info
  std::uint64_t end = 0;
  std::uint64_t first_entry = 0;
  std::uint64_t abbreviations = 0;
  std::uint16_t version = 0;
  std::uint8_t address_size = 0;
  std::uint8_t offset_size = 0;
  std::uint8_t kind = 0;  ///< DW_UT_*; before DWARF 5 that of a compile unit
};

/// The head at `offset`; nothing: there is none that is understood, and where the next one begins is not known.
[[nodiscard]] std::optional<UnitHead> unit_head(SectionBytes info, std::uint64_t offset);

/// The offset of the unit whose code has `address`, by .debug_aranges. Nothing: it has no such unit, or is not
/// understood.
[[nodiscard]] std::optional<std::uint64_t> unit_by_aranges(SectionBytes aranges, std::uint64_t address);

/// Code of a unit, whose head is at `unit`.
struct UnitRange {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t unit = 0;
  [[nodiscard]] bool contains(std::uint64_t at) const noexcept { return begin <= at && at - begin < length; }
};
/// All that .debug_aranges has, by where they begin; those that begin at one place in the order of their units.
[[nodiscard]] std::vector<UnitRange> unit_ranges(SectionBytes aranges);
/// As unit_by_aranges(), of what unit_ranges() has found.
[[nodiscard]] std::optional<std::uint64_t> find_unit(std::span<const UnitRange> ranges, std::uint64_t address);

/// Bytes of abbreviations that are read if each unit reads its table by itself, as in libdw; where those are more than
/// `most`, any number above it.
[[nodiscard]] std::uint64_t bytes_of_all_tables(const DebugSections& sections, std::uint64_t most);

/// The abbreviations of a unit, by code. Empty for a table that is not understood, or that no compiler writes.
class Abbreviations {
 public:
  /// Reads at most so many bytes.
  Abbreviations(const DebugSections& sections, const UnitHead& unit, std::uint64_t most);
  /// Whether they are those of `unit`, too.
  [[nodiscard]] bool serve(const UnitHead& unit) const noexcept;
  /// Bytes of the table that were read, whether or not they were understood.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const Abbreviation* find(std::uint64_t code) const noexcept {
    return code < by_code_.size() && by_code_[code].tag != 0 ? &by_code_[code] : nullptr;
  }

 private:
  [[nodiscard]] bool read(SectionReader& bytes);

  std::vector<Abbreviation> by_code_;
  UnitHead unit_;
  std::uint64_t size_ = 0;
};

/// A wanted attribute, as its form has it.
struct FoundAttribute {
  Wanted wanted = Wanted::nothing;
  std::uint16_t form = 0;
  std::uint64_t value = 0;  ///< number, offset or index; of a string in place, where it is in .debug_info
};

/// A unit with what its own entry says about the rest.
class UnitReader {
 public:
  /// `sections` and `abbreviations` are there as long as this is.
  UnitReader(const DebugSections& sections, const UnitHead& head, const Abbreviations& abbreviations);

  /// Its abbreviations and its own entry are understood, and it has all of its code itself.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] const UnitHead& head() const noexcept { return head_; }
  [[nodiscard]] const Abbreviation* abbreviation(std::uint64_t code) const noexcept {
    return abbreviations_.find(code);
  }
  /// The beginning of its part of .debug_str_offsets; 0: it does not say.
  [[nodiscard]] std::uint64_t str_offsets_base() const noexcept { return str_offsets_base_; }
  /// .debug_info up to its end.
  [[nodiscard]] SectionBytes bytes() const noexcept { return sections_.info.first(head_.end); }

  /// Gets behind the attributes of an entry.
  void skip(SectionReader& bytes, const Abbreviation& abbreviation) const;
  /// Calls `visit(FoundAttribute)` for those that are wanted, and gets behind all.
  template <class Visit>
  void read(SectionReader& bytes, const Abbreviation& abbreviation, Visit&& visit) const {
    for (const Abbreviation::Attribute& each : abbreviation.attributes) {
      if (each.wanted != Wanted::nothing)
        visit(found(bytes, each));
      else if (each.size != Abbreviation::kOwnSize)
        bytes.skip(each.size);
      else
        skip_form(bytes, each.form);
    }
  }

  /// The string of a name; nothing: its form is not understood.
  [[nodiscard]] std::optional<TextPlace> text(const FoundAttribute& name) const;
  /// The offset in .debug_info of what is referred to; nothing: it is elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> reference(const FoundAttribute& at) const;
  /// Nothing: it is no address.
  [[nodiscard]] std::optional<std::uint64_t> address(const FoundAttribute& at) const;

 private:
  /// Skips a value of a form whose values have sizes of their own.
  void skip_form(SectionReader& bytes, unsigned form) const;
  [[nodiscard]] static std::optional<std::uint64_t> indexed(SectionBytes table, std::uint64_t base, std::uint64_t index,
                                                            unsigned size);
  [[nodiscard]] FoundAttribute found(SectionReader& bytes, const Abbreviation::Attribute& attribute) const;

  const DebugSections& sections_;
  UnitHead head_;
  const Abbreviations& abbreviations_;
  std::uint64_t addr_base_ = 0;
  std::uint64_t str_offsets_base_ = 0;
  bool good_ = false;
};

}  // namespace usdt::dwarf
