// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/names.hpp"

#include <algorithm>
#include <utility>

#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Bytes of DIEs for each link that compilers write: for some 40. What is remembered of a file then has half its size.
constexpr std::uint64_t kBytesPerLink = 16;
/// DIEs that are read again besides those for each byte.
constexpr std::uint64_t kAgainAtFirst = 1U << 20;

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
  while (count < scopes.size() && size < kLongestName) size += scopes[count++].size() + 2;
  std::string text;
  text.reserve(size);
  while (count > 0) text.append(scopes[--count]).append("::");
  return text.append(own);
}

namespace {

/// Whether its name may be asked for: those of a unit's many parameters, members and calls are not.
bool has_qualified_name(int tag) {
  switch (tag) {
    case DW_TAG_base_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subrange_type:
    case DW_TAG_template_alias:
    case DW_TAG_typedef:
    case DW_TAG_unspecified_type:
      return true;
    default:
      return is_scope(tag);
  }
}

/// Goes through the scopes of a unit, in the order of their offsets.
template <class Add>
void read_scopes(Dwarf_Die parent, bool named, unsigned depth, TreeWalk& tree, const Add& add) {
  if (depth == kDeepestTree) return;
  tree.children(parent, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (named && has_qualified_name(tag)) add(child, parent);
    if (may_hold_scopes(tag)) read_scopes(child, is_scope(tag), depth + 1, tree, add);
    return true;
  });
}

std::uint64_t offset_in(const Dwarf_Die& unit, const Dwarf_Die& die) {
  return static_cast<std::uint64_t>(static_cast<const char*>(die.addr) - static_cast<const char*>(unit.addr));
}

}  // namespace

ScopeNames::ScopeNames(std::uint64_t bytes, StopToken stop, std::size_t least_links)
    : most_(std::max<std::uint64_t>(least_links, bytes / kBytesPerLink)),
      again_(kAgainAtFirst, bytes),
      stop_(std::move(stop)) {}

const ScopeNames::Links& ScopeNames::links_of(Dwarf_Die unit) {
  const auto [at, is_new] = units_.try_emplace(unit.addr);
  Known& known = at->second;
  if (known.kept || (!is_new && spent())) return known.links;
  if (count_ > most_) forget();
  known.kept = true;
  const std::uint64_t steps = read(unit, known.links);
  if (is_new)
    again_.add(steps * Budget::per_byte);  // units of other files (.dwo) are not among the bytes that were known of
  else
    again_.spend(steps);
  count_ += known.links.size();
  return known.links;
}

void ScopeNames::forget() {
  for (auto& [unit, known] : units_) known = {};
  count_ = 0;
}

/// Returns how many DIEs were looked at.
std::uint64_t ScopeNames::read(Dwarf_Die unit, Links& links) const {
  TreeWalk tree(stop_);
  read_scopes(unit, false, 0, tree, [&](const Dwarf_Die& child, const Dwarf_Die& parent) {
    const std::uint64_t offset = offset_in(unit, child);
    if (offset > UINT32_MAX || (!links.empty() && offset <= links.back().child)) return;  // no compiler's
    links.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset_in(unit, parent))});
  });
  return tree.steps();
}

std::optional<Dwarf_Die> ScopeNames::scope_of(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return std::nullopt;
  const Links& links = links_of(unit);
  const auto at = std::ranges::lower_bound(links, offset_in(unit, die), {}, &Link::child);
  if (at == links.end() || at->child != offset_in(unit, die)) return std::nullopt;
  Dwarf_Die scope{};
  scope.addr = static_cast<char*>(unit.addr) + at->parent;
  scope.cu = unit.cu;
  return scope;
}

std::string ScopeNames::qualified(Dwarf_Die die) {
  die = origin_of(die);
  const std::string_view name = own_name(die);
  if (name.empty()) return {};
  std::vector<std::string_view> scopes;
  for (auto scope = scope_of(die); scope && scopes.size() < kDeepestTree; scope = scope_of(origin_of(*scope)))
    scopes.push_back(scope_name(*scope));
  return qualified_name(name, scopes);
}

}  // namespace usdt::dwarf
