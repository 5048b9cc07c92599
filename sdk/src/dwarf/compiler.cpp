// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/compiler.hpp"

#include <charconv>

namespace usdt::dwarf {
namespace {

std::string_view producer(Dwarf_Die die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return {};
  return text(own_attribute(unit, DW_AT_producer));
}

}  // namespace

unsigned unit_version(Dwarf_Die die) {
  Dwarf_Half version = 0;
  return dwarf_cu_info(die.cu, &version, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == 0 ? version : 0;
}

bool is_clang(Dwarf_Die die) { return producer(die).find("clang") != std::string_view::npos; }

bool is_optimised(Dwarf_Die function) {
  return own_attribute(function, DW_AT_call_all_calls) || own_attribute(function, DW_AT_GNU_all_call_sites);
}

bool is_unoptimised(Dwarf_Die function) {
  if (is_clang(function)) return unit_version(function) >= 4 && !is_optimised(function);
  const std::string_view told = producer(function);
  if (!told.starts_with("GNU C") || told.find(" -m") == std::string_view::npos) return false;  // it names no options
  for (auto at = told.find(" -O"); at != std::string_view::npos; at = told.find(" -O", at + 1))
    if (!told.substr(at).starts_with(" -O0")) return false;
  return true;
}

bool has_conditions(Dwarf_Die die) {
  constexpr std::string_view compiler = "GNU C++";  // "GNU C++20 12.2.0 -std=c++20 ...", "GNU C++98 ..."
  constexpr unsigned first = 20;
  const std::string_view told = producer(die);
  if (!told.starts_with(compiler)) return told.starts_with("GNU GIMPLE");
  unsigned dialect = 0;
  std::from_chars(told.data() + compiler.size(), told.data() + told.size(), dialect);
  return dialect >= first && dialect < 98;
}

bool is_linked_as_whole(Dwarf_Die die) {
  const std::string_view told = producer(die);
  return !told.starts_with("GNU C") || told.find(" -flto") != told.npos || told.find(" -fwhole-program") != told.npos;
}

bool is_replaceable(Dwarf_Die function) {
  const std::string_view told = producer(function);
  const bool position = told.find(" -fPIC") != told.npos || told.find(" -fpic") != told.npos;
  const bool known = told.find("-fno-semantic-interposition") != told.npos ||
                     told.find("-fwhole-program") != told.npos || told.find("-Ofast") != told.npos;
  return told.starts_with("GNU C") && position && !known;
}

bool tells_each_value(Dwarf_Die die) {
  constexpr unsigned first = 8;
  const std::string_view told = producer(die);  // "GNU C17 12.2.0 -mtune=generic ..."; "GNU GIMPLE 12.2.0 ... -flto"
  if (!told.starts_with("GNU C") || told.find("-gstrict-dwarf") != told.npos ||
      told.find("-gno-variable-location-views") != told.npos)
    return false;
  const std::size_t version = told.find(' ', std::string_view("GNU ").size());
  unsigned major = 0;
  if (version != told.npos) std::from_chars(told.data() + version + 1, told.data() + told.size(), major);
  return major >= first;
}

}  // namespace usdt::dwarf
