// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/names.hpp"

#include <vector>

#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Parents that are remembered before all are forgotten: some 100 MB.
constexpr std::size_t most_parents = 1'000'000;
/// DIEs of one unit that are looked at; a unit of a large C++ source has some hundred thousand.
constexpr std::uint64_t most_steps = 50'000'000;

std::string_view scope_name(Dwarf_Die die) {
  const auto name = name_of(die);
  return name.empty() ? nameless_scope(dwarf_tag(&die) == DW_TAG_namespace) : name;
}

}  // namespace

bool is_scope(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_subprogram:
      return true;
    default:
      return false;
  }
}

bool may_hold_scopes(int tag) { return is_scope(tag) || tag == DW_TAG_lexical_block || tag == DW_TAG_type_unit; }

std::string_view nameless_scope(bool is_namespace) { return is_namespace ? "(anonymous namespace)" : "(anonymous)"; }

std::string qualified_name(std::string_view own, std::span<const std::string_view> scopes) {
  std::size_t size = own.size();
  std::size_t count = 0;
  while (count < scopes.size() && size < longest_name) size += scopes[count++].size() + 2;
  std::string text;
  text.reserve(size);
  while (count > 0) text.append(scopes[--count]).append("::");
  return text.append(own);
}

void ScopeNames::read(Dwarf_Die parent, bool named, unsigned depth, std::uint64_t& steps) {
  if (depth == deepest_tree) return;
  for_each_child(parent, steps, [&](Dwarf_Die child) {
    if (named) parents_.try_emplace(child.addr, Parent{parent});
    if (const int tag = dwarf_tag(&child); may_hold_scopes(tag)) read(child, is_scope(tag), depth + 1, steps);
    return true;
  });
}

void ScopeNames::read_unit(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr || units_.contains(unit.addr)) return;
  if (parents_.size() > most_parents) {
    parents_.clear();
    units_.clear();
  }
  units_.insert(unit.addr);
  std::uint64_t steps = most_steps;
  read(unit, false, 0, steps);
}

std::string ScopeNames::qualified(Dwarf_Die die) {
  die = origin_of(die);
  const std::string_view name = own_name(die);
  if (name.empty()) return {};
  std::vector<std::string_view> scopes;
  read_unit(die);
  while (scopes.size() < deepest_tree) {
    const auto parent = parents_.find(die.addr);
    if (parent == parents_.end()) break;
    die = parent->second.die;
    scopes.push_back(scope_name(die));
    die = origin_of(die);
    read_unit(die);
  }
  return qualified_name(name, scopes);
}

}  // namespace usdt::dwarf
