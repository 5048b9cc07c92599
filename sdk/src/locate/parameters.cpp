// SPDX-License-Identifier: BSD-2-Clause
#include "locate/parameters.hpp"

#include <algorithm>

#include "dwarf/die.hpp"

namespace usdt::locate {
namespace {

/// Parameters of one function that are listed; a spec has 255 (USDT_MAX_ARGS).
constexpr std::size_t kMostParameters = 255;
/// DIEs among which the variables of a block are looked for.
constexpr std::uint64_t kMostChildren = 1U << 20;

void collect_locals(Dwarf_Die scope, VirtAddr pc, std::uint32_t line, TreeWalk& tree, Budget& budget,
                    std::vector<Parameter>& found, unsigned depth = 0) {
  tree.children(scope, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) == DW_TAG_lexical_block && depth < kDeepestTree && has_pc(child, pc, budget))
      collect_locals(child, pc, line, tree, budget, found, depth + 1);
    return true;
  });
  std::uint64_t steps = kMostChildren;
  for_each_child(scope, steps, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    const auto name = tag == DW_TAG_variable ? text(attribute(child, DW_AT_name)) : std::string_view();
    const bool is_there = !flag(attribute(child, DW_AT_artificial)) && !flag(own_attribute(child, DW_AT_declaration));
    if (name.empty() || !is_there || declared_at(child).line >= line) return true;
    const auto known = std::ranges::find_if(
        found, [name](const Parameter& each) { return text(attribute(each.declared, DW_AT_name)) == name; });
    if (known == found.end()) found.push_back({child, child});
    return found.size() < kMostParameters;
  });
}

bool is_pack(int tag) { return tag == DW_TAG_GNU_formal_parameter_pack; }

void collect_parameters(Dwarf_Die function, TreeWalk& tree, std::vector<Dwarf_Die>& found, bool& varargs,
                        unsigned depth = 0) {
  tree.children(function, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_formal_parameter) found.push_back(child);
    if (tag == DW_TAG_unspecified_parameters) varargs = true;
    if (is_pack(tag) && depth == 0) collect_parameters(child, tree, found, varargs, depth + 1);
    return found.size() < kMostParameters;
  });
}

std::vector<Dwarf_Die> parameters_in(Dwarf_Die function, const ReadingEnds& ends, bool& varargs) {
  TreeWalk tree(ends.stop, &ends.budget);
  std::vector<Dwarf_Die> found;
  collect_parameters(function, tree, found, varargs);
  return found;
}

/// Whether constructors and destructors of classes with virtual bases are declared with it, while GCC passes it only to
/// the forms of them that have it in their own list: the others were made without it.
bool is_of_some_forms_alone(Dwarf_Die parameter) {
  const std::string_view name = text(attribute(parameter, DW_AT_name));
  return flag(attribute(parameter, DW_AT_artificial)) && (name == "__in_chrg" || name == "__vtt_parm");
}

}  // namespace

std::vector<Parameter> parameters_of(Dwarf_Die instance, const ReadingEnds& ends, bool& varargs) {
  const std::vector<Dwarf_Die> here = parameters_in(instance, ends, varargs);
  std::vector<Parameter> all;
  const auto origin = reference(own_attribute(instance, DW_AT_abstract_origin));
  if (!origin) {
    for (const Dwarf_Die& each : here) all.push_back({each, each});
    return all;
  }
  const std::vector<Dwarf_Die> declared = parameters_in(*origin, ends, varargs);
  for (const Dwarf_Die& each : declared) {
    const auto copy = std::ranges::find_if(here, [&each](const Dwarf_Die& one) {
      const auto of = reference(own_attribute(one, DW_AT_abstract_origin));
      return of && of->addr == each.addr;
    });
    if (copy == here.end() && is_of_some_forms_alone(each)) continue;
    all.push_back({each, copy == here.end() ? std::nullopt : std::optional(*copy)});
  }
  if (declared.empty())
    for (const Dwarf_Die& each : here) all.push_back({each, each});
  return all;
}

bool is_never_assigned(Dwarf_Die parameter) {
  if (flag(attribute(parameter, DW_AT_artificial))) return true;
  auto type = type_of(parameter);
  for (unsigned step = 0; type && step < kLongestChain; ++step) {
    const int tag = dwarf_tag(&*type);
    if (tag == DW_TAG_const_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) return true;
    if (tag != DW_TAG_typedef && tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type) return false;
    type = type_of(*type);
  }
  return false;
}

std::vector<Parameter> locals_of(Dwarf_Die scope, VirtAddr pc, std::uint32_t line, const ReadingEnds& ends) {
  std::vector<Parameter> found;
  TreeWalk tree(ends.stop, &ends.budget);
  collect_locals(scope, pc, line, tree, ends.budget, found);
  return found;
}

}  // namespace usdt::locate
