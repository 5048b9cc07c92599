// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/type_names.hpp"

#include <algorithm>
#include <functional>

#include "base/near_text.hpp"
#include "base/type_names.hpp"
#include "dwarf/types.hpp"

namespace usdt::dwarf {
namespace {

/// Types that are remembered of one file, some 300 MB; the largest programs have a million.
constexpr std::size_t kMostTypes = 4'000'000;

bool is_tagged(int tag) { return is_structure(tag) || tag == DW_TAG_enumeration_type; }

/// The kind that names are found by: a class is a struct by another word.
int kind_of(int tag) { return tag == DW_TAG_class_type ? DW_TAG_structure_type : tag; }

int tag_of(TypeKeyword keyword) {
  switch (keyword) {
    case TypeKeyword::structure:
      return DW_TAG_structure_type;
    case TypeKeyword::union_type:
      return DW_TAG_union_type;
    case TypeKeyword::enumeration:
      return DW_TAG_enumeration_type;
    case TypeKeyword::none:
      return 0;
  }
  return 0;
}

std::uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) {
  return (hash ^ (with + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2))) * 0x2545f4914f6cdd1d;
}

/// A hash that all descriptions of one type share, whichever units they are in.
std::uint64_t identity(Dwarf_Die die, std::string_view qualified) {
  std::uint64_t hash = mixed(hash_of(qualified), static_cast<std::uint64_t>(kind_of(dwarf_tag(&die))));
  hash = mixed(hash, own_number(die, DW_AT_byte_size).value_or(0));
  if (const auto first = first_child(die)) hash = mixed(hash, hash_of(own_name(*first)));
  return mixed(hash, number(attribute(die, DW_AT_decl_line)).value_or(0));
}

bool is_declaration(Dwarf_Die die) { return flag(own_attribute(die, DW_AT_declaration)); }

}  // namespace

/// A walk through the scopes of one unit.
class TypeNames::Walk {
 public:
  Walk(TypeNames& names, const StopToken& stop) : names_(names), tree_(stop) {}

  [[nodiscard]] bool run(Dwarf_Die unit) {
    scopes_have_types_ = language_of(unit) != Language::c;
    walk(unit, 0);
    return !tree_.in_circles() && !full_;
  }

 private:
  void walk(Dwarf_Die parent, unsigned depth) {
    if (depth == kDeepestTree) return;
    tree_.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (is_tagged(tag) || tag == DW_TAG_typedef || tag == DW_TAG_base_type) names_.add(child, tag, scope_);
      if (tag == DW_TAG_namespace || tag == DW_TAG_module || (is_structure(tag) && scopes_have_types_))
        enter(child, tag, depth);
      full_ = full_ || names_.entries_.size() >= kMostTypes;
      return !full_;
    });
  }

  void enter(Dwarf_Die child, int tag, unsigned depth) {
    const std::size_t outer = scope_.size();
    const std::string_view name = name_of(child);
    if (outer + name.size() > kLongestName) return;
    scope_ += !name.empty() ? name : tag == DW_TAG_namespace ? "(anonymous namespace)" : "(anonymous)";
    scope_ += "::";
    walk(child, depth + 1);
    scope_.resize(outer);
  }

  TypeNames& names_;
  TreeWalk tree_;
  std::string scope_;
  bool scopes_have_types_ = false;
  bool full_ = false;
};

bool TypeNames::add_unit(Dwarf_Die unit, const StopToken& stop) { return Walk(*this, stop).run(unit); }

/// A definition outside of the class that declares it ("struct A::B {...}") has its name there.
void TypeNames::add(Dwarf_Die die, int tag, std::string_view scope) {
  if (is_declaration(die)) return;
  const std::string_view name = name_of(die);
  if (name.empty() || (tag == DW_TAG_typedef && !own_attribute(die, DW_AT_type))) return;
  if (!seen_.insert(mixed(identity(die, name), hash_of(scope))).second) return;
  entries_.push_back({hash_of(normal_type_name(name)), die});
}

void TypeNames::finish() {
  seen_ = {};
  entries_.shrink_to_fit();
  std::ranges::stable_sort(entries_, {}, &Entry::name_hash);
}

std::vector<Dwarf_Die> TypeNames::called(std::string_view own_name) const {
  const std::uint64_t hash = hash_of(own_name);
  std::vector<Dwarf_Die> found;
  for (auto at = std::ranges::lower_bound(entries_, hash, {}, &Entry::name_hash);
       at != entries_.end() && at->name_hash == hash; ++at)
    if (normal_type_name(name_of(at->die)) == own_name) found.push_back(at->die);
  return found;
}

std::vector<Dwarf_Die> TypeNames::named(std::string_view name, ScopeNames& names) const {
  const auto [keyword, without_keyword] = split_type_name(name);
  const int wanted = tag_of(keyword);
  const std::string sought = normal_type_name(without_keyword);
  std::vector<Dwarf_Die> all = called(last_scope(sought));
  if (wanted != 0) std::erase_if(all, [wanted](Dwarf_Die each) { return kind_of(dwarf_tag(&each)) != wanted; });
  const auto has_scopes = [&](const Dwarf_Die& each) { return normal_type_name(names.qualified(each)) == sought; };
  if (std::ranges::any_of(all, has_scopes)) {
    std::erase_if(all, [&](const Dwarf_Die& each) { return !has_scopes(each); });
  } else if (last_scope(sought) != sought) {
    all.clear();
  }
  std::unordered_set<std::uint64_t> tagged;
  for (Dwarf_Die& each : all)
    if (dwarf_tag(&each) != DW_TAG_typedef) tagged.insert(identity(each, names.qualified(each)));
  std::erase_if(all, [&](Dwarf_Die each) {
    const auto behind = dwarf_tag(&each) == DW_TAG_typedef ? resolved(each) : std::nullopt;
    return behind && tagged.contains(identity(*behind, names.qualified(*behind)));
  });
  std::ranges::stable_sort(all, {}, [](Dwarf_Die each) { return is_tagged(dwarf_tag(&each)); });
  return all;
}

std::optional<Dwarf_Die> TypeNames::definition(Dwarf_Die declaration, ScopeNames& names) const {
  const int kind = kind_of(dwarf_tag(&declaration));
  const std::string qualified = names.qualified(declaration);
  std::optional<Dwarf_Die> found;
  for (Dwarf_Die each : called(normal_type_name(name_of(declaration)))) {
    if (kind_of(dwarf_tag(&each)) != kind || names.qualified(each) != qualified) continue;
    if (each.cu != declaration.cu && found) return std::nullopt;
    found = each;
    if (each.cu == declaration.cu) break;
  }
  if (names.spent()) return std::nullopt;  // both may lack their scopes, and be alike for that
  return found;
}

std::string TypeNames::near(std::string_view name) const {
  NearTexts nearest(last_scope(split_type_name(name).name));
  for (const Entry& each : entries_) nearest.offer(name_of(each.die));
  return std::move(nearest).question();
}

}  // namespace usdt::dwarf
