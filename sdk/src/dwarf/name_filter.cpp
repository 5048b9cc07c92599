// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/name_filter.hpp"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Words and places that are searched for in each unit. Reading all entries takes as long as searching for some twenty.
constexpr std::size_t kMostSearched = 12;
/// Names that are compared with what is wanted, each so many bytes of a long one for itself: a word that is part of
/// more is no help.
constexpr std::uint64_t kMostCompared = 1U << 20;
constexpr std::size_t kComparedAsOne = 64;
/// Places in .debug_str_offsets that lead to such names: one for each unit that has them is usual.
constexpr std::size_t kMostIndexed = 1U << 20;
/// Bytes of a word; what is shorter is found nearly everywhere.
constexpr std::size_t kShortestWord = 3;
/// Bytes that are searched for one word after the other, so that they come from a cache for all but the first.
constexpr std::size_t kSearchedAtOnce = 64U << 10;
/// Bytes of strings that are read until memory is given back.
constexpr std::size_t kMostKept = 8U << 20;

/// Sixteen bytes that are compared at once; compilers make of it what the machine has (GCC's and Clang's vectors).
using Block = std::uint8_t __attribute__((vector_size(16)));

Block load(const std::uint8_t* from) noexcept {
  Block block;
  std::memcpy(&block, from, sizeof block);
  return block;
}

bool any(Block block) noexcept {
  std::array<std::uint64_t, 2> halves{};
  std::memcpy(halves.data(), &block, sizeof block);
  return (halves[0] | halves[1]) != 0;
}

/// Calls `visit(offset)` for each place of `word`, three bytes or more, in `bytes` until it returns false.
template <class Visit>
bool for_each_place(SectionBytes bytes, std::string_view word, Visit&& visit) {
  if (bytes.size() < word.size()) return true;
  const std::size_t starts = bytes.size() - word.size() + 1;
  const auto is_at = [&](std::size_t at) { return std::memcmp(bytes.data() + at, word.data(), word.size()) == 0; };
  // The first bytes of an offset differ most; of a word those that are far apart.
  const std::size_t middle = word.size() == 4 ? 1 : word.size() / 2;
  const std::size_t last = word.size() == 4 ? 2 : word.size() - 1;
  const auto filled = [&](std::size_t at) { return Block{} + static_cast<std::uint8_t>(word[at]); };
  const Block first_byte = filled(0);
  const Block middle_byte = filled(middle);
  const Block last_byte = filled(last);
  const auto candidates = [&](std::size_t at) {
    const std::uint8_t* const from = bytes.data() + at;
    return reinterpret_cast<Block>((load(from) == first_byte) & (load(from + middle) == middle_byte) &
                                   (load(from + last) == last_byte));
  };
  constexpr std::size_t stride = 4 * sizeof(Block);
  std::size_t at = 0;
  for (; at + stride <= starts; at += stride) {
    if (!any(candidates(at) | candidates(at + 16) | candidates(at + 32) | candidates(at + 48))) continue;
    for (std::size_t each = at; each < at + stride; ++each)
      if (is_at(each) && !visit(each)) return false;
  }
  for (; at < starts; ++at)
    if (is_at(at) && !visit(at)) return false;
  return true;
}

bool has(SectionBytes bytes, std::string_view word) {
  return !for_each_place(bytes, word, [](std::size_t) { return false; });
}

bool has_any(SectionBytes bytes, const std::vector<std::string>& words) {
  for (std::size_t at = 0; at < bytes.size(); at += kSearchedAtOnce)
    for (const std::string& word : words)
      if (has(bytes.subspan(at, std::min(kSearchedAtOnce + word.size() - 1, bytes.size() - at)), word)) return true;
  return false;
}

/// The four bytes that an offset begins with, or is, wherever it is written.
std::string bytes_of_offset(std::uint64_t offset) {
  std::string bytes;
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(offset >> 8 * i & 0xff);
  return bytes;
}

/// Finds the names that may be meant in a section of strings.
class StringSearch {
 public:
  StringSearch(const NameHint& hint, const StopToken& stop, const std::function<void()>& let_go)
      : hint_(hint), stop_(stop), let_go_(let_go) {}

  /// False: there are too many.
  [[nodiscard]] bool search(SectionBytes section) {
    for (std::size_t at = 0; at < section.size(); at += kMostKept) {
      if (stop_.stop_requested()) return false;
      for (const std::string& word : hint_.words) {
        const auto part = section.subspan(at, std::min(kMostKept + word.size() - 1, section.size() - at));
        const auto add = [&](std::size_t place) { return add_around(section, at + place); };
        if (!for_each_place(part, word, add)) return false;
      }
      if (section.size() > kMostKept) let_go_();
    }
    return true;
  }
  [[nodiscard]] std::vector<std::string> take() && { return std::move(found_); }

 private:
  /// Adds each name that has a word at `place`. Linkers keep a string that is the end of another one only there, so
  /// that a name may begin at any byte of it.
  [[nodiscard]] bool add_around(SectionBytes section, std::size_t place) {
    const std::size_t most = std::min(kLongestName, section.size() - place);
    const auto* const text = reinterpret_cast<const char*>(section.data());
    const std::size_t end = place + ::strnlen(text + place, most);
    for (std::size_t begin = place;; --begin) {
      compared_ += 1 + (end - begin) / kComparedAsOne;
      if (compared_ > kMostCompared) return false;
      if (hint_.may_be({text + begin, std::min(end - begin, kLongestName)}) && !add(begin)) return false;
      if (begin == 0 || text[begin - 1] == 0 || place - begin == kLongestName) return true;
    }
  }

  [[nodiscard]] bool add(std::size_t offset) {
    std::string bytes = bytes_of_offset(offset);
    if (std::ranges::find(found_, bytes) == found_.end()) found_.push_back(std::move(bytes));
    return found_.size() + hint_.words.size() <= kMostSearched;
  }

  const NameHint& hint_;
  const StopToken& stop_;
  const std::function<void()>& let_go_;
  std::vector<std::string> found_;
  std::uint64_t compared_ = 0;
};

bool is_functions(std::uint64_t tag) { return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine; }

/// Notes how an attribute of a function refers to its name.
void add_form(NameForms& forms, std::uint64_t name, std::uint64_t form) {
  switch (name) {
    case DW_AT_name:
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
      switch (form) {
        case DW_FORM_strp:
        case DW_FORM_line_strp:
          return;
        case DW_FORM_string:
          forms.in_place = true;
          return;
        case DW_FORM_strx:
        case DW_FORM_strx1:
        case DW_FORM_strx2:
        case DW_FORM_strx3:
        case DW_FORM_strx4:
          forms.indexed = true;
          return;
        default:
          forms.elsewhere = true;
          return;
      }
    case DW_AT_abstract_origin:
    case DW_AT_specification:
      switch (form) {
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8:
        case DW_FORM_ref_udata:
          return;
        default:
          forms.elsewhere = true;
          return;
      }
    default:
      return;
  }
}

}  // namespace

NameForms name_forms(const DebugSections& sections, const UnitHead& unit, std::uint64_t most) {
  NameForms forms;
  const std::uint64_t begin = std::min<std::uint64_t>(unit.abbreviations, sections.abbrev.size());
  SectionReader bytes(sections.abbrev.subspan(begin, std::min(most, sections.abbrev.size() - begin)), 0);
  const std::uint8_t* const first = bytes.position();
  while (bytes.good() && !forms.elsewhere && bytes.uleb() != 0) {
    const std::uint64_t tag = bytes.uleb();
    bytes.skip(1);
    for (bool more = true; more && bytes.good();) {
      const std::uint64_t name = bytes.uleb();
      const std::uint64_t form = bytes.uleb();
      if (form == DW_FORM_implicit_const) bytes.skip_leb();
      more = (name | form) != 0;
      if (is_functions(tag)) add_form(forms, name, form);
      // The entries are in another file.
      if (name == DW_AT_GNU_dwo_name || name == DW_AT_dwo_name || name == DW_AT_GNU_dwo_id) forms.elsewhere = true;
    }
  }
  forms.elsewhere = forms.elsewhere || !bytes.good();
  forms.size = static_cast<std::uint64_t>(bytes.position() - first);
  return forms;
}

std::optional<NameFilter> NameFilter::make(const DebugSections& sections, const NameHint& hint, const StopToken& stop,
                                           const std::function<void()>& let_go) {
  const auto is_short = [](const std::string& word) { return word.size() < kShortestWord; };
  if (hint.words.empty() || !hint.may_be || std::ranges::any_of(hint.words, is_short)) return std::nullopt;
  if (hint.words.size() > kMostSearched) return std::nullopt;
  StringSearch search(hint, stop, let_go);
  if (!search.search(sections.str) || !search.search(sections.line_str)) return std::nullopt;
  NameFilter filter;
  filter.words_ = hint.words;
  filter.offsets_ = std::move(search).take();
  for (std::size_t at = 0; at < sections.str_offsets.size(); at += kMostKept) {
    if (stop.stop_requested()) return std::nullopt;
    for (const std::string& offset : filter.offsets_) {
      const auto rest = sections.str_offsets.subspan(at);
      const auto part = rest.first(std::min(kMostKept + offset.size() - 1, rest.size()));
      const auto add = [&](std::size_t place) {
        filter.indexed_.push_back(at + place);
        return filter.indexed_.size() <= kMostIndexed;
      };
      if (!for_each_place(part, offset, add)) return std::nullopt;
    }
    if (sections.str_offsets.size() > kMostKept) let_go();
  }
  std::ranges::sort(filter.indexed_);
  return filter;
}

bool NameFilter::is_indexed(const DebugSections& sections, const UnitHead& unit, std::uint64_t base) const {
  // The table's length is in its head, before what the unit calls its base (DWARF 5, 7.26).
  const std::uint64_t length_size = unit.offset_size == 8 ? 12 : 4;
  const std::uint64_t head_size = length_size + 4;
  if (base < head_size || base > sections.str_offsets.size()) return true;
  const std::uint64_t begin = base - head_size + length_size;
  const std::uint64_t length = SectionReader(sections.str_offsets, begin - unit.offset_size).fixed(unit.offset_size);
  const std::uint64_t end = begin + std::min<std::uint64_t>(length, sections.str_offsets.size() - begin);
  const auto at = std::ranges::lower_bound(indexed_, base);
  return at != indexed_.end() && *at < end;
}

bool NameFilter::may_be_in(const DebugSections& sections, const UnitHead& unit, const NameForms& forms,
                           std::uint64_t str_offsets_base) const {
  if (forms.elsewhere || (forms.indexed && is_indexed(sections, unit, str_offsets_base))) return true;
  const SectionBytes bytes = sections.info.subspan(unit.offset, unit.end - unit.offset);
  return has_any(bytes, offsets_) || (forms.in_place && has_any(bytes, words_));
}

}  // namespace usdt::dwarf
