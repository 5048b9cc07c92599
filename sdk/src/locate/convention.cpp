// SPDX-License-Identifier: BSD-2-Clause
#include "locate/convention.hpp"

#include <algorithm>
#include <array>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "dwarf/line_table.hpp"
#include "elf/demangle.hpp"
#include "locate/frame.hpp"

namespace usdt::locate {
namespace {

constexpr std::string_view kUntoldConvention = "it has a calling convention that debug information does not tell";

}  // namespace

void Convention::decide(const std::vector<Parameter>& parameters, bool varargs) {
  why_not_ = why_unknown(parameters);
  if (why_not_.empty()) {
    arch::UserPlaces places(moment_.arch, user_shapes_.of(type_of(moment_.die), language_), kind_);
    for (const arch::UserShape& each : shapes_) places_.push_back(places.next(each));
    if (moment_.arch.call_traits.has_variants()) why_not_ = why_not_usual(parameters);
  }
  using Place = arch::UserPlace::Where;
  const auto result = arch::user_result(moment_.arch, user_shapes_.of(type_of(moment_.die), language_)).where;
  const bool by_address = result == Place::unknown || result == Place::address_in_register;
  if (language_ != Language::go) found_ = contradictions(moment_, stated_, places_, by_address);
  find_on_stack(parameters);
  of_results_ = {.holds = why_not_.empty() || only_arguments_differ_,
                 .holds_if_proven = result_may_be_proven_,
                 .reason = why_not_};
  if (!why_not_.empty()) return;
  if (!found_.convention && !some_are_above_the_frame(parameters) && !some_are_elsewhere_on_stack(parameters) &&
      !code_contradicts(varargs))
    return;
  why_not_ = kUntoldConvention;
  // Microsoft's convention has scalars where others have them.
  of_results_ = {.holds = moment_.arch.call_traits.has_variants(), .holds_for_scalars = true, .reason = why_not_};
}

/// Clang tells of many parameters only behind the first instruction: where it is in the room that callers fill, it
/// was passed there, and by callers that passed it, since what a function does not use has no place there (LLVM's
/// DeadArgumentElimination; objects have one in any case). A parameter that was given another one's value has that
/// one's place: none is believed then. By the convention that shows, and else by the order of the places.
void Convention::find_on_stack(const std::vector<Parameter>& parameters) {
  on_stack_.assign(parameters.size(), std::nullopt);
  is_another_on_stack_.assign(parameters.size(), false);
  const bool is_c = language_ == Language::c || language_ == Language::cpp;
  if (!is_c || !moment_.at_entry || !is_clang(moment_.die) || !is_optimised(moment_.die)) return;
  std::vector<FirstPlace> first;
  for (std::size_t i = 0; i < parameters.size(); ++i) first.push_back(first_place(parameters[i], stated_[i]));
  const OnStack found = on_stack_as_passed(parameters, first);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!first[i].bytes) continue;
    if (found == OnStack::as_passed && !may_be_of_lost(parameters, first, i))
      on_stack_[i] = first[i].bytes;
    else
      is_another_on_stack_[i] = found != OnStack::by_another_convention;
  }
}

/// Whether the places on the stack are those that callers fill, as far as it shows.
Convention::OnStack Convention::on_stack_as_passed(const std::vector<Parameter>& parameters,
                                                   const std::vector<FirstPlace>& first) const {
  const std::uint64_t word = moment_.arch.word_size;
  std::uint64_t next = 0;
  std::array<bool, 2> registers_end{};  // of whole numbers, of others: one was on the stack, as all behind it are
  bool agree = true;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Type type = types_.type(type_of(parameters[i].declared));
    const bool is_struct = type.kind == TypeKind::structure;
    const auto bytes = first[i].bytes;
    if (!bytes) {
      agree = agree && (is_struct || !first[i].in_register || !registers_end[type.is_float()]);
      continue;
    }
    if (*bytes < next) return OnStack::out_of_order;
    agree = agree && *bytes % word == 0 && type.size != 0;
    if (!places_.empty())
      agree = agree && places_[i].where == arch::UserPlace::Where::stack &&
              places_[i].stack == moment_.arch.entry_frame + *bytes;
    const bool by_address = shapes_[i].kind == arch::UserShape::Kind::by_reference;
    next = *bytes + (by_address ? word : (type.size + word - 1) / word * word);
    registers_end[type.is_float()] |= !is_struct;
  }
  return agree ? OnStack::as_passed : OnStack::by_another_convention;
}

/// Whether a place may be that of a parameter which has none: "a = b;" gives it to a, and b is nowhere, since callers
/// that Clang knows do not pass what is the same for all of them. The convention tells, if it is known.
bool Convention::may_be_of_lost(const std::vector<Parameter>& parameters, const std::vector<FirstPlace>& first,
                                std::size_t number) const {
  if (!places_.empty() || is_never_assigned(parameters[number].declared)) return false;
  const Type type = types_.type(type_of(parameters[number].declared));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (first[i].bytes || first[i].in_register) continue;
    const Type other = types_.type(type_of(parameters[i].declared));
    if (other.size == type.size && other.is_float() == type.is_float() &&
        (other.kind == TypeKind::structure) == (type.kind == TypeKind::structure))
      return true;
  }
  return false;
}

Convention::FirstPlace Convention::first_place(const Parameter& parameter, const StatedPlace& told) const {
  const std::vector<ListedPlace> listed = listed_places(parameter, moment_);
  if (listed.empty() && !told.pieces.empty()) return {checker_.callers_bytes(told.pieces, std::nullopt)};
  if (listed.empty()) return {};
  const auto holds = [](const WherePiece& piece) { return std::holds_alternative<InRegister>(piece.where); };
  return {told.from_list && !told.pieces.empty() ? std::nullopt
                                                 : checker_.callers_bytes(listed.front().pieces, listed.front().begin),
          std::ranges::any_of(listed.front().pieces, holds)};
}

Located Convention::on_stack(std::size_t number, const Type& type) const {
  const arch::UserPlace place{.where = arch::UserPlace::Where::stack,
                              .stack = moment_.arch.entry_frame + static_cast<std::uint32_t>(*on_stack_[number]),
                              .parts = {}};
  return arch::value_at(moment_.arch, place, type);
}

/// Whether some parameters contradict the convention by being where only callers write.
bool Convention::some_are_above_the_frame(const std::vector<Parameter>& parameters) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (stated_[i].from_list || !contradicts(stated_[i], i)) continue;
    StatedPlace what = stated_[i];
    if (checker_.hold(what, types_.type(type_of(parameters[i].declared)).kind).empty()) return true;
  }
  return false;
}

/// Whether some parameters are stated in the room that callers fill, but not where the convention has them: it does not
/// hold for any of them then.
bool Convention::some_are_elsewhere_on_stack(const std::vector<Parameter>& parameters) const {
  if (!moment_.at_entry) return false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto first = first_place(parameters[i], stated_[i]).bytes;
    const bool is_there = places_[i].where == arch::UserPlace::Where::stack;
    if (first && is_there && places_[i].stack != moment_.arch.entry_frame + *first) return true;
  }
  return false;
}

/// GCC does not say that a function has another convention (ms_abi, preserve_none); Clang does. Where the places of
/// parameters do not show it, the first instructions may.
bool Convention::code_contradicts(bool varargs) const {
  if (!moment_.arch.known_code.spills || !moment_.at_entry || is_clang(moment_.die)) return false;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (spilled_.contradict(stated_[i], places_[i])) return true;
  return uses_what_is_not_passed(varargs);
}

/// Whether the function uses registers that by the convention nobody passes anything in, or saves vector registers,
/// which by the convention it need not.
bool Convention::uses_what_is_not_passed(bool varargs) const {
  if (std::ranges::find(places_, arch::UserPlace::Where::unknown, &arch::UserPlace::where) != places_.end())
    return false;
  const auto& arguments = moment_.arch.user_calls.arguments;
  const std::size_t passed = varargs ? arguments.size() : registers_passed();
  const auto is_passed = [&](RegisterId reg) {
    return std::ranges::find(arguments.first(passed), reg) != arguments.first(passed).end();
  };
  return !std::ranges::all_of(spilled_.used_registers(), is_passed);
}

/// How many registers have arguments, the first of which may be the address of the room for the result.
std::size_t Convention::registers_passed() const {
  const auto& arguments = moment_.arch.user_calls.arguments;
  using Place = arch::UserPlace::Where;
  const auto result = arch::user_result(moment_.arch, user_shapes_.of(type_of(moment_.die), language_)).where;
  std::size_t passed = result == Place::unknown || result == Place::address_in_register ? 1 : 0;
  for (const arch::UserPlace& each : places_)
    for (const arch::UserPart& part : each.parts)
      if (const auto at = std::ranges::find(arguments, part.reg); at != arguments.end())
        passed = std::max(passed, static_cast<std::size_t>(at - arguments.begin()) + 1);
  return passed;
}

std::string Convention::why_unknown(const std::vector<Parameter>& parameters) {
  if (language_ == Language::go) return "debug information of Go does not tell all parameters, nor so where they are";
  if (language_ == Language::other) return "its language has a calling convention of its own";
  const auto told_convention = number(attribute(moment_.die, DW_AT_calling_convention));
  if (told_convention && !take(*told_convention)) return "it has a calling convention of its own";
  const VirtAddr entry = moment_.info.entry_of(moment_.die).value_or(moment_.instance.pc);
  const CodeName name = moment_.info.code_names().at(entry);
  only_arguments_differ_ = name == CodeName::other_args;
  if (name == CodeName::other_args || name == CodeName::other_result)
    return "this copy of the function has other parameters";
  if (name == CodeName::unknown) return "no symbol tells whether this copy of the function has its parameters";
  if (is_clang(moment_.die) && !is_optimised(moment_.die) && lacks_some(parameters)) {
    only_arguments_differ_ = true;
    return "debug information lacks some of its parameters";
  }
  const bool complete = std::ranges::none_of(stated_, [](const StatedPlace& each) { return each.pieces.empty(); });
  const bool external = external_ && moment_.info.code_names().is_external(entry);
  if (!external && is_clang(moment_.die) && (is_optimised(moment_.die) || !complete)) {
    result_may_be_proven_ = true;
    return "its compiler may have changed how it is called";
  }
  if (!external && !complete) return "its compiler may have changed how it is called";
  if (!has_prototype() && has_floats(parameters)) return "it has no prototype, by which callers would pass floats";
  return {};
}

bool Convention::has_prototype() const {
  return language_ != Language::c || flag(attribute(moment_.die, DW_AT_prototyped));
}

bool Convention::passes_as_double(const Type& type) const {
  return moment_.at_entry && !moment_.instance.inlined && type.is_float() && type.size == sizeof(float) &&
         !has_prototype();
}

/// Clang without optimisation does not tell of an object passed by reference that the function does not use; its
/// type is in the symbol. That of extern "C" has no types.
bool Convention::lacks_some(const std::vector<Parameter>& parameters) const {
  const std::string_view symbol = text(attribute(moment_.die, DW_AT_linkage_name));
  if (symbol.empty()) return language_ != Language::c;
  const elf::Demangled name = moment_.info.demangler.demangle(symbol);
  const auto count = elf::count_parameters(name.name.substr(name.without_parameters.size()));
  const auto told = std::ranges::count_if(
      parameters, [](const Parameter& each) { return !flag(attribute(each.declared, DW_AT_artificial)); });
  return !count || static_cast<std::size_t>(told) < *count;
}

/// Clang's names for what attributes say; GCC does not say it.
bool Convention::take(std::uint64_t convention) {
  constexpr std::uint64_t stdcall = 0xb1;   // DW_CC_BORLAND_stdcall
  constexpr std::uint64_t fastcall = 0xb3;  // DW_CC_BORLAND_msfastcall
  constexpr std::uint64_t thiscall = 0xb5;  // DW_CC_BORLAND_thiscall
  if (convention == DW_CC_normal) return true;
  if (!moment_.arch.call_traits.has_variants()) return false;
  if (convention == fastcall) kind_ = arch::UserConvention::fastcall;
  if (convention == thiscall) kind_ = arch::UserConvention::thiscall;
  return convention == stdcall || kind_ != arch::UserConvention::standard;
}

/// Attributes like regparm leave no trace in debug information but where variables live that are not in registers:
/// a word that came on the stack stays where it is, one that came in a register has a slot of its own. Structs and
/// other numbers may be copied either way, and tell nothing.
std::string Convention::why_not_usual(const std::vector<Parameter>& parameters) {
  if (kind_ != arch::UserConvention::standard) return {};
  bool confirmed = false;
  bool copied = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (stated_[i].from_list || stated_[i].pieces.size() != 1) continue;
    const auto* address = std::get_if<AtAddress>(&stated_[i].pieces.front().where);
    if (address == nullptr || address->address.loaded || address->address.sum.anchor == Anchor::none) continue;
    if (is_on_stack_at(address->address.sum, places_[i])) {
      confirmed = true;
      continue;
    }
    const Type type = types_.type(type_of(parameters[i].declared));
    if (type.size == 4 && type.kind != TypeKind::structure) return std::string(kUntoldConvention);
    copied = true;
  }
  return copied && !confirmed ? "debug information does not tell whether its arguments are on the stack" : "";
}

bool Convention::is_on_stack_at(Sum sum, const arch::UserPlace& place) const {
  if (place.where != arch::UserPlace::Where::stack) return false;
  const std::uint64_t expected = place.stack - moment_.arch.entry_frame;
  if (sum.anchor == Anchor::frame) checker_.to_cfa(sum);
  if (sum.anchor == Anchor::cfa) return !sum.base && !sum.index && sum.displacement == expected;
  // Counted from the stack pointer as it is behind the prologue. Where the line table's end of the prologue is too
  // late, the frame seems larger than it is, and nothing is confirmed that is not so.
  const auto body = function_lines(moment_.inside).prologue_end;
  const auto cfa = body ? moment_.state.frames().cfa_at(*body) : std::nullopt;
  return cfa && sum.base && !sum.index && cfa->base == sum.base && sum.displacement - cfa->displacement == expected;
}

bool Convention::has_floats(const std::vector<Parameter>& parameters) const {
  return std::ranges::any_of(parameters,
                             [this](const Parameter& each) { return types_.type(type_of(each.declared)).is_float(); });
}

bool Convention::contradicts(const StatedPlace& what, std::size_t number) const {
  using Place = arch::UserPlace::Where;
  if (!moment_.at_entry || moment_.instance.inlined || places_.empty() || moment_.arch.call_traits.has_variants())
    return false;
  if (what.pieces.size() != 1 || !std::holds_alternative<AtAddress>(what.pieces.front().where)) return false;
  const Value& address = std::get<AtAddress>(what.pieces.front().where).address;
  const Place place = places_[number].where;
  const Sum& sum = address.sum;
  const bool in_frame =
      sum.anchor != Anchor::none || (sum.base && Locator(moment_.arch).id_of(*sum.base) == moment_.arch.stack_pointer);
  return in_frame && (place == Place::registers || (place == Place::stack && address.loaded));
}

}  // namespace usdt::locate
