// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/die.hpp"

#include <cstring>

#include "dwarf/clones.hpp"

namespace usdt::dwarf {
namespace {

std::string_view bounded(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text, strnlen(text, kLongestName));
}

/// DIEs met between two looks at a stop token.
constexpr std::uint64_t kStepsBetweenStops = 1U << 14;

/// File `index` of the table of `die`'s unit.
std::string file_name(Dwarf_Die die, std::uint64_t index) {
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr || dwarf_getsrcfiles(&unit, &files, &count) != 0 ||
      index >= count)
    return {};
  return std::string(bounded(dwarf_filesrc(files, index, nullptr, nullptr)));
}

/// An attribute that numbers a file counts in the unit it is in itself.
std::string file_named(const std::optional<Dwarf_Attribute>& at) {
  const auto index = number(at);
  Dwarf_Die unit;
  if (!index || dwarf_cu_die(at->cu, &unit, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) return {};
  return file_name(unit, *index);
}

std::uint32_t line_number(const std::optional<Dwarf_Attribute>& at) {
  const auto line = number(at);
  return line && *line <= UINT32_MAX ? static_cast<std::uint32_t>(*line) : 0;
}

/// DW_AT_entry_pc; as a number (DWARF 5) it counts from the lowest address.
std::optional<VirtAddr> entry_pc(Dwarf_Die die, std::optional<VirtAddr> first) {
  auto at = own_attribute(die, DW_AT_entry_pc);
  if (!at) return std::nullopt;
  Dwarf_Addr address = 0;
  if (dwarf_formaddr(&*at, &address) == 0) return VirtAddr(address);
  const auto offset = number(at);
  if (!offset || !first) return std::nullopt;
  return *first + *offset;
}

}  // namespace

std::optional<Dwarf_Attribute> own_attribute(Dwarf_Die die, unsigned name) {
  Dwarf_Attribute at;
  if (dwarf_attr(&die, name, &at) == nullptr) return std::nullopt;
  return at;
}

std::optional<Dwarf_Attribute> attribute(Dwarf_Die die, unsigned name) {
  for (unsigned step = 0; step < kLongestChain; ++step) {
    if (auto at = own_attribute(die, name)) return at;
    auto next = reference(own_attribute(die, DW_AT_abstract_origin));
    if (!next) next = reference(own_attribute(die, DW_AT_specification));
    if (!next) break;
    die = *next;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number(const std::optional<Dwarf_Attribute>& at) {
  if (!at) return std::nullopt;
  auto copy = *at;
  Dwarf_Word value = 0;
  if (dwarf_formudata(&copy, &value) != 0) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> constant(Dwarf_Attribute at) {
  const unsigned form = dwarf_whatform(&at);
  if (form != DW_FORM_sdata && form != DW_FORM_implicit_const) return number(at);
  Dwarf_Sword value = 0;
  if (dwarf_formsdata(&at, &value) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::string_view text(const std::optional<Dwarf_Attribute>& at) {
  if (!at) return {};
  auto copy = *at;
  return bounded(dwarf_formstring(&copy));
}

bool flag(const std::optional<Dwarf_Attribute>& at) {
  bool value = false;
  if (!at) return false;
  auto copy = *at;
  return dwarf_formflag(&copy, &value) == 0 && value;
}

std::optional<Dwarf_Die> reference(const std::optional<Dwarf_Attribute>& at) {
  Dwarf_Die die;
  if (!at) return std::nullopt;
  auto copy = *at;
  if (dwarf_formref_die(&copy, &die) == nullptr) return std::nullopt;
  return die;
}

std::optional<std::uint64_t> own_number(Dwarf_Die die, unsigned name) { return number(own_attribute(die, name)); }

std::string_view own_name(Dwarf_Die die) { return text(own_attribute(die, DW_AT_name)); }

std::string_view linkage_name_of(Dwarf_Die die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (const auto linkage = text(attribute(die, name)); !linkage.empty()) return linkage;
  return text(attribute(die, DW_AT_name));
}

std::string_view name_of(Dwarf_Die die) {
  const auto name = text(attribute(die, DW_AT_name));
  const auto in_type_unit = name.empty() ? reference(own_attribute(die, DW_AT_signature)) : std::nullopt;
  return in_type_unit ? own_name(*in_type_unit) : name;
}

Dwarf_Die origin_of(Dwarf_Die die) {
  for (unsigned step = 0; step < kLongestChain; ++step) {
    auto next = reference(own_attribute(die, DW_AT_abstract_origin));
    if (!next) next = reference(own_attribute(die, DW_AT_specification));
    if (!next) break;
    die = *next;
  }
  return die;
}

std::optional<Dwarf_Die> type_of(Dwarf_Die die) { return reference(attribute(die, DW_AT_type)); }

std::optional<Dwarf_Attribute> own_expression(Dwarf_Die die, unsigned name) {
  constexpr Dwarf_Word alike = 128;
  auto found = own_attribute(die, name);
  Dwarf_Block block;
  if (found && dwarf_whatform(&*found) == DW_FORM_block1 && dwarf_formblock(&*found, &block) == 0 &&
      block.length < alike)
    found->form = DW_FORM_exprloc;
  return found;
}

bool is_single_expression(Dwarf_Attribute at) {
  switch (dwarf_whatform(&at)) {
    case DW_FORM_exprloc:
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
      return true;
    default:
      return false;
  }
}

std::optional<Dwarf_Die> first_child(Dwarf_Die die) {
  Dwarf_Die child;
  if (dwarf_child(&die, &child) != 0) return std::nullopt;
  return child;
}

std::optional<Dwarf_Die> next_sibling(Dwarf_Die die) {
  Dwarf_Die sibling;
  if (dwarf_siblingof(&die, &sibling) != 0) return std::nullopt;
  return sibling;
}

bool TreeWalk::meets(const Dwarf_Die& die) {
  const auto at = reinterpret_cast<std::uintptr_t>(die.addr);
  in_circles_ = in_circles_ || at <= last_;
  last_ = at;
  ended_ = ended_ || in_circles_ || (++steps_ % kStepsBetweenStops == 0 && stop_.stop_requested()) ||
           (budget_ != nullptr && !budget_->spend(cost_of_step));
  return !ended_;
}

std::optional<VirtAddr> entry_of_block(Dwarf_Die die) {
  Dwarf_Addr low = 0;
  std::optional<VirtAddr> first;
  if (own_attribute(die, DW_AT_low_pc) && dwarf_lowpc(&die, &low) == 0) first = VirtAddr(low);
  if (!first && own_attribute(die, DW_AT_ranges)) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    if (dwarf_ranges(&die, 0, &base, &begin, &end) > 0) first = VirtAddr(begin);
  }
  const auto entry = entry_pc(die, first);
  return entry ? entry : first;
}

std::optional<VirtAddr> entry_of(Dwarf_Die die, const CodeNames& names, Budget& budget) {
  const auto first = entry_of_block(die);
  if (!first || dwarf_tag(&die) != DW_TAG_subprogram || own_attribute(die, DW_AT_entry_pc) ||
      own_attribute(die, DW_AT_low_pc) || names.begins_at(*first))
    return first;
  std::size_t ranges = 0;
  std::optional<VirtAddr> named;
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr) {
    ++ranges;
    if (names.begins_at(VirtAddr(begin))) named = VirtAddr(begin);
    return !named;
  });
  return named || ranges != 1 ? named : first;
}

std::vector<std::pair<VirtAddr, std::uint64_t>> code_elsewhere(Dwarf_Die die, VirtAddr entry, Budget& budget) {
  std::vector<std::pair<VirtAddr, std::uint64_t>> found;
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (begin < end && !(begin <= entry.value && entry.value < end)) found.emplace_back(VirtAddr(begin), end - begin);
    return true;
  });
  return found;
}

std::uint64_t code_size(Dwarf_Die die, VirtAddr entry, Budget& budget) {
  std::uint64_t size = 0;
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (begin <= entry.value && entry.value < end) size = end - entry.value;
    return size == 0;
  });
  return size;
}

bool has_pc(Dwarf_Die die, VirtAddr pc, Budget& budget) {
  bool found = false;
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    found = begin <= pc.value && pc.value < end;
    return !found;
  });
  return found;
}

SourceLine declared_at(Dwarf_Die die) {
  return {.file = file_named(attribute(die, DW_AT_decl_file)), .line = line_number(attribute(die, DW_AT_decl_line))};
}

SourceLine called_at(Dwarf_Die die) {
  return {.file = file_named(own_attribute(die, DW_AT_call_file)),
          .line = line_number(own_attribute(die, DW_AT_call_line))};
}

}  // namespace usdt::dwarf
