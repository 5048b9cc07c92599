// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/compiler.hpp"

#include <charconv>

namespace usdt::dwarf {

std::string_view producer_of(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return {};
  return text(own_attribute(unit, DW_AT_producer));
}

unsigned unit_version(Dwarf_Die die) {
  Dwarf_Half version = 0;
  return dwarf_cu_info(die.cu, &version, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == 0 ? version : 0;
}

bool is_clang(Dwarf_Die die) { return producer_of(die).find("clang") != std::string_view::npos; }

bool is_rust(Dwarf_Die die) { return producer_of(die).find("rustc") != std::string_view::npos; }

bool is_optimised(Dwarf_Die function) {
  return own_attribute(function, DW_AT_call_all_calls) || own_attribute(function, DW_AT_GNU_all_call_sites);
}

namespace {

/// Whether GCC tells of a function's variables by lists, or nothing of a parameter, as it does of no function that it
/// does not optimise, whatever the command line says (__attribute__((optimize)), #pragma GCC optimize).
bool has_optimised_variables(Dwarf_Die function) {
  bool found = false;
  std::uint64_t steps = 256;
  for_each_child(function, steps, [&found](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_variable) return true;
    const auto at = own_attribute(child, DW_AT_location);
    found = at ? !is_single_expression(*at) : tag == DW_TAG_formal_parameter;
    return !found;
  });
  return found;
}

}  // namespace

bool is_unoptimised(Dwarf_Die function) {
  if (is_clang(function)) return unit_version(function) >= 4 && !is_optimised(function);
  const std::string_view told = producer_of(function);
  const bool gcc = told.starts_with("GNU C") || told.starts_with("GNU Fortran");
  if (!gcc || told.find(" -m") == std::string_view::npos) return false;  // it names no options
  for (auto at = told.find(" -O"); at != std::string_view::npos; at = told.find(" -O", at + 1))
    if (!told.substr(at).starts_with(" -O0")) return false;
  return !has_optimised_variables(function);
}

bool has_conditions(Dwarf_Die die) {
  constexpr std::string_view compiler = "GNU C++";  // "GNU C++20 12.2.0 -std=c++20 ...", "GNU C++98 ..."
  constexpr unsigned first = 20;
  const std::string_view told = producer_of(die);
  if (!told.starts_with(compiler)) return told.starts_with("GNU GIMPLE");
  unsigned dialect = 0;
  std::from_chars(told.data() + compiler.size(), told.data() + told.size(), dialect);
  return dialect >= first && dialect < 98;
}

bool is_linked_as_whole(Dwarf_Die die) {
  const std::string_view told = producer_of(die);
  return !told.starts_with("GNU C") || told.find(" -flto") != told.npos || told.find(" -fwhole-program") != told.npos;
}

bool is_made_at_link_time(Dwarf_Die die) { return producer_of(die).starts_with("GNU GIMPLE"); }

bool is_replaceable(Dwarf_Die function) {
  const std::string_view told = producer_of(function);
  const bool position = told.find(" -fPIC") != told.npos || told.find(" -fpic") != told.npos;
  const bool known = told.find("-fno-semantic-interposition") != told.npos ||
                     told.find("-fwhole-program") != told.npos || told.find("-Ofast") != told.npos;
  return told.starts_with("GNU C") && position && !known;
}

namespace {

/// Whether `die` or one in it is a type, or has one. The types of a unit are among the first of its entries.
bool has_types_in(Dwarf_Die die, TreeWalk& tree, unsigned depth) {
  bool found = false;
  tree.children(die, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    found = own_attribute(child, DW_AT_type) || tag == DW_TAG_base_type || tag == DW_TAG_formal_parameter ||
            tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
            tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef ||
            (depth < kDeepestTree && has_types_in(child, tree, depth + 1));
    return !found;
  });
  return found;
}

/// Variables of a unit by how their places are told.
struct PlacesTold {
  std::uint64_t lists = 0;
  std::uint64_t slots = 0;
};
void count_places(Dwarf_Die die, TreeWalk& tree, unsigned depth, PlacesTold& told) {
  tree.children(die, [&](Dwarf_Die child) {
    if (auto at = own_attribute(child, DW_AT_location)) {
      Dwarf_Op* expression = nullptr;
      std::size_t count = 0;
      const bool single = dwarf_whatform(&*at) == DW_FORM_exprloc;
      if (!single) ++told.lists;
      if (single && dwarf_getlocation(&*at, &expression, &count) == 0 && count > 0 && expression->atom == DW_OP_fbreg)
        ++told.slots;
    }
    if (depth < kDeepestTree) count_places(child, tree, depth + 1, told);
    return true;
  });
}

/// "GNU C17 12.2.0 -mtune=generic -g1 -O2": the last of its options that says how much is told.
bool only_lines_by_options(std::string_view told) {
  bool only_lines = false;
  for (auto at = told.find(" -g"); at != told.npos; at = told.find(" -g", at + 1)) {
    const std::string_view option = told.substr(at + 1, told.find(' ', at + 1) - at - 1);
    if (option == "-g1" || option == "-ggdb1") only_lines = true;
    if (option == "-g" || option == "-g2" || option == "-g3" || option == "-ggdb" || option == "-ggdb2" ||
        option == "-ggdb3" || option.starts_with("-gdwarf"))
      only_lines = false;
  }
  return only_lines;
}

}  // namespace

SignatureTold signature_told(Dwarf_Die function) {
  const auto told_if = [](bool told) { return told ? SignatureTold::yes : SignatureTold::no; };
  const Dwarf_Die declared = origin_of(function);
  if (attribute(function, DW_AT_type) || flag(attribute(function, DW_AT_prototyped))) return SignatureTold::yes;
  for (const Dwarf_Die& each : {function, declared}) {
    bool has_parameters = false;
    std::uint64_t steps = 4096;
    for_each_child(each, steps, [&has_parameters](Dwarf_Die child) {
      has_parameters = dwarf_tag(&child) == DW_TAG_formal_parameter;
      return !has_parameters;
    });
    if (has_parameters) return SignatureTold::yes;
  }
  const std::string_view told = producer_of(declared);
  if (told.starts_with("GNU ") && told.find(" -m") != told.npos) return told_if(!only_lines_by_options(told));
  if (is_clang(declared) && !is_rust(declared))
    return told_if(attribute(function, DW_AT_decl_line) || flag(attribute(function, DW_AT_artificial)));
  return SignatureTold::by_unit;
}

bool looks_unoptimised(Dwarf_Die unit) {
  constexpr std::uint64_t fewest = 16;
  constexpr std::uint64_t for_each_list = 8;
  PlacesTold told;
  TreeWalk tree;
  count_places(unit, tree, 0, told);
  return told.slots >= fewest && told.slots >= for_each_list * told.lists;
}

bool has_types(Dwarf_Die unit) {
  TreeWalk tree;
  return has_types_in(unit, tree, 0);
}

bool tells_each_value(Dwarf_Die die) {
  constexpr unsigned first = 8;
  const std::string_view told = producer_of(die);  // "GNU C17 12.2.0 -mtune=generic ..."; "GNU GIMPLE 12.2.0 ... -flto"
  if (!told.starts_with("GNU C") || told.find("-gstrict-dwarf") != told.npos ||
      told.find("-gno-variable-location-views") != told.npos)
    return false;
  const std::size_t version = told.find(' ', std::string_view("GNU ").size());
  unsigned major = 0;
  if (version != told.npos) std::from_chars(told.data() + version + 1, told.data() + told.size(), major);
  return major >= first;
}

}  // namespace usdt::dwarf
