// SPDX-License-Identifier: BSD-2-Clause
#include "locate/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "locate/code_reads.hpp"
#include "locate/stated_place.hpp"
#include "locate/typed_place.hpp"

namespace usdt::locate {
namespace {

void add_member(Located&& member, const GoResult& result, Located& whole) {
  const auto offset = static_cast<std::uint32_t>(result.offset);
  whole.type.size = offset + member.type.size;
  if (member.type.size == 0) return;
  if (member.pieces.empty()) whole.pieces.push_back({offset, member.type.size, std::move(member.location)});
  for (Piece& piece : member.pieces) {
    piece.offset += offset;
    whole.pieces.push_back(std::move(piece));
  }
}

}  // namespace

void Results::add(Language language, const ResultConvention& convention, Signature& signature) const {
  const auto declared_type = type_of(moment_.die);
  const auto shape = user_shapes_.of(declared_type, language);
  if (shape.kind == arch::UserShape::Kind::nothing) return;
  if (is_rust(moment_.die) && moment_.arch.known_code.rust_results) return add_of_rust(signature);
  const Type type = types_.type(declared_type);
  const arch::UserPlace place = arch::user_result(moment_.arch, shape);
  const bool known = convention.holds ||
                     (convention.holds_for_scalars && shape.kind == arch::UserShape::Kind::scalar) ||
                     (convention.holds_if_proven && is_proven(place));
  Located located = known ? arch::value_at(moment_.arch, place, type)
                          : arch::nowhere(type, fmt::format("not known where: {}", convention.reason));
  put(declared_type, std::move(located), signature);
}

/// Whether the function's code is proven to hand all of its result to callers, in the registers of `place`. Each of two
/// words has to be proven: if callers use only the second one, LLVM may leave out the first, and the second comes in
/// its register (DeadArgumentElimination).
bool Results::is_proven(const arch::UserPlace& place) const {
  using Place = arch::UserPlace::Where;
  if (place.where != Place::registers && place.where != Place::address_in_register) return false;
  const arch::ResultRegisters proven = CodeReads(moment_).proven_results();
  const arch::CallRegisters& calls = moment_.arch.user_calls;
  return std::ranges::all_of(place.parts, [&](const arch::UserPart& part) {
    return part.reg == calls.result ? proven.low : part.reg == calls.result_high && proven.high;
  });
}

void Results::put(const std::optional<Dwarf_Die>& declared_type, Located located, Signature& signature) const {
  if (declared_type) refuse_number(types_, *declared_type, declared_type, located);
  signature.result_pieces = std::move(located.pieces);
  signature.result =
      argument_at(std::move(located),
                  {.name = {}, .type = types_.text(declared_type), .enumerators = types_.enumerators(declared_type)});
  signature.result->result = true;
  signature.result_type = moment_.info.types.known.id_of(declared_type);
}

void Results::add_of_rust(Signature& signature) const {
  const auto declared_type = type_of(moment_.die);
  const Type type = types_.type(declared_type);
  const RustResult found = rust_result(types_, moment_.arch, moment_.die);
  const std::string reason = found.reason.empty() ? why_not_returned(found) : found.reason;
  put(declared_type, reason.empty() ? arch::value_at(moment_.arch, found.place, type) : arch::nowhere(type, reason),
      signature);
}

/// Why a result may be missing. LLVM leaves out results, or one of two, of a function that no other file or object
/// knows, if no caller uses them (DeadArgumentElimination) or they are constant (IPSCCP), and nothing shows it. A
/// result that the code is proven to hand to its caller is there.
std::string Results::why_not_returned(const RustResult& result) const {
  const auto told = number(attribute(moment_.die, DW_AT_calling_convention));
  if (told && *told != DW_CC_normal) return "its compiler changed how it is called";
  if (result.has_flag) return "with a flag of one bit in a register whose other bits may be anything";
  const VirtAddr entry = moment_.info.entry_of(moment_.die).value_or(moment_.instance.pc);
  const bool as_written =
      moment_.state.traits.is_surely_unoptimised(moment_.inside) || moment_.info.code_names().is_linked(entry);
  const bool wants_low = result.in_low && (!as_written || result.only_of_c);
  const bool wants_high = result.in_high && (!as_written || result.only_of_c || result.only_rust_has);
  if (!wants_low && !wants_high) return {};
  const arch::ResultRegisters proven = CodeReads(moment_).proven_results();
  // Without optimisation nothing deletes what nobody reads.
  const bool counts = !result.only_of_c || is_optimised(moment_.inside);
  if (counts && (!wants_low || proven.low) && (!wants_high || proven.high)) return {};
  return result.only_of_c ? "in memory of its caller, and nothing tells where when it has ended"
                          : "its code does not show whether it hands its result to its caller";
}

void Results::add_of_go(const std::vector<Parameter>& results, Signature& signature) const {
  if (results.empty()) return;
  std::vector<arch::UserShape> shapes;
  for (const Parameter& each : results) shapes.push_back(user_shapes_.of(type_of(each.declared), Language::go));
  const std::vector<arch::UserPlace> places = arch::go_places(moment_.arch, shapes);
  const auto declared_type = type_of(results.front().declared);
  Located whole = of_go(results.front(), places.front());
  std::string text = types_.text(declared_type);
  signature.result_type = moment_.info.types.known.id_of(declared_type);
  if (results.size() > 1) {
    const std::vector<GoResult> members = go_results(declaration_of(moment_), types_);
    if (members.size() != results.size()) return;
    whole = arch::nowhere({.size = 0, .kind = TypeKind::structure}, fmt::format("{} results", results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) add_member(of_go(results[i], places[i]), members[i], whole);
    text = go_results_text(members, types_);
    signature.result_type = moment_.info.types.known.id_of(declaration_of(moment_));
  }
  const auto names = results.size() == 1 ? types_.enumerators(declared_type) : std::vector<Enumerator>();
  signature.result_pieces = std::move(whole.pieces);
  signature.result = argument_at(std::move(whole), {.name = {}, .type = std::move(text), .enumerators = names});
  signature.result->result = true;
}

Located Results::of_go(const Parameter& result, const arch::UserPlace& place) const {
  const Type type = types_.type(type_of(result.declared));
  if (place.where != arch::UserPlace::Where::stack) return arch::value_at(moment_.arch, place, type);
  StatedPlace what = stated_place(result, moment_);
  if (what.pieces.empty() || what.from_list || !checker_.hold(what, type.kind).empty())
    return arch::nowhere(type, "on the stack, and not told where");
  return locator_.from_pieces(what.pieces, type);
}

Dwarf_Die declaration_of(const Moment& moment) {
  const auto origin = reference(own_attribute(moment.die, DW_AT_abstract_origin));
  return origin ? *origin : moment.die;
}

}  // namespace usdt::locate
