// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/parts.hpp"

#include <algorithm>
#include <string_view>

#include "base/symbol_name.hpp"
#include "dwarf/die.hpp"
#include "elf/demangle.hpp"

namespace usdt::dwarf {
namespace {

/// GCC inlines again what it split off: the call that such an instance stands for has the place where the function is
/// declared. Most are in an instance of the same function; where another one's part is equal, GCC takes the same for
/// both. A function that calls itself does so in its body.
bool is_split_off(Dwarf_Die die, const std::optional<Dwarf_Die>& scope) {
  const auto called = own_number(die, DW_AT_call_column);
  if (called_at(die) != declared_at(die) || called != number(attribute(die, DW_AT_decl_column))) return false;
  return called || (scope && origin_of(die).addr == origin_of(*scope).addr);
}

/// GCC's debug information of what goes on with a coroutine: an artificial function of the coroutine's name, without a
/// name for the linker, whose parameter is the frame.
bool has_coroutine_frame(Dwarf_Die die) {
  if (!flag(attribute(die, DW_AT_artificial)) || attribute(die, DW_AT_linkage_name)) return false;
  auto parameter = first_child(origin_of(die));
  return parameter && dwarf_tag(&*parameter) == DW_TAG_formal_parameter &&
         text(attribute(*parameter, DW_AT_name)) == "frame_ptr";
}

}  // namespace

FunctionPart Parts::part_of(const FunctionInfo& function, const Instance& instance, Dwarf_Die die,
                            const std::optional<Dwarf_Die>& scope) {
  // (Clang 21 says it in the name for the linker. Where names are not mangled, some languages' own may end so.)
  const std::string_view piece = piece_suffix(function.linkage_name);
  if (!piece.empty() && elf::may_be_mangled(function.linkage_name))
    return piece == ".cold" || piece == ".part" ? FunctionPart::split : FunctionPart::coroutine;
  if (has_coroutine_frame(die)) return FunctionPart::coroutine;
  if (!instance.inlined) return part_of_own_code(function, instance, die);
  if (is_split_off(die, scope)) return FunctionPart::split;
  // A coroutine goes on where its handle is told to.
  constexpr std::string_view moves[] = {"resume", "destroy", "operator()"};
  const bool moved = scope && std::ranges::find(moves, text(attribute(*scope, DW_AT_name))) != std::end(moves);
  return moved && state_.names.qualified(*scope).find("coroutine_handle") != std::string::npos ? FunctionPart::coroutine
                                                                                               : FunctionPart::whole;
}

FunctionPart Parts::part_of_own_code(const FunctionInfo& function, const Instance& instance, Dwarf_Die die) {
  const std::string& own_name = function.linkage_name.empty() ? function.name : function.linkage_name;
  if (!piece_suffix(own_name).empty()) return FunctionPart::whole;
  const FunctionPart part = state_.code_names().part_at(instance.pc);
  if (part == FunctionPart::coroutine) coroutine_pieces_.insert(origin_of(die).addr);
  return part;
}

void Parts::finish(FunctionInfo& function) const {
  for (Instance& each : function.instances) {
    const auto known = each.inlined && each.part == FunctionPart::whole ? state_.dies.find(each.die) : std::nullopt;
    if (known && coroutine_pieces_.contains(origin_of(known->die).addr)) each.part = FunctionPart::coroutine;
  }
}

}  // namespace usdt::dwarf
