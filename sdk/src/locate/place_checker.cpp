// SPDX-License-Identifier: BSD-2-Clause
#include "locate/place_checker.hpp"

#include <algorithm>

#include "dwarf/compiler.hpp"
#include "dwarf/line_table.hpp"
#include "locate/frame.hpp"

namespace usdt::locate {
namespace {

bool add_base(Sum& sum, unsigned reg, std::uint64_t displacement, std::string& reason) {
  sum.displacement += displacement;
  if (!sum.base) {
    sum.base = reg;
  } else if (!sum.index) {
    sum.index = reg;
    sum.shift = 0;
  } else {
    reason = "computed: a sum of more than two registers";
    return false;
  }
  return true;
}

}  // namespace

/// Turns what counts from the frame into what counts from registers as they are at the instance; false with a reason
/// where the frame is not there yet, or its rule is not known.
bool PlaceChecker::count_from_registers(Sum& sum, std::string& reason) const {
  if (sum.anchor == Anchor::frame) to_cfa(sum);
  if (moment_.at_entry && sum.anchor == Anchor::none && sum.base &&
      locator_.id_of(*sum.base) == moment_.arch.stack_pointer && !sum.index) {
    sum.anchor = Anchor::cfa;
    sum.base.reset();
    sum.displacement -= moment_.arch.entry_frame;
  }
  if (sum.anchor == Anchor::none) return true;
  if (sum.anchor == Anchor::frame) {
    reason = "in a stack slot of a frame that is not there yet";
    return false;
  }
  sum.anchor = Anchor::none;
  if (moment_.at_entry) {
    if (static_cast<std::int64_t>(sum.displacement) < 0) {
      reason = "in a stack slot that is filled only behind this instruction";
      return false;
    }
    return add_base(sum, stack_pointer_number(), moment_.arch.entry_frame, reason);
  }
  const auto cfa = moment_.state.frames().cfa_at(moment_.instance.pc);
  if (!cfa) {
    reason = "in a stack slot, whose frame no call frame information describes";
    return false;
  }
  return add_base(sum, *cfa->base, cfa->displacement, reason);
}

/// The distance of a frame pointer from the call frame address is the same in the whole body of the function. That of
/// a stack pointer (Clang without frame pointers) is not: arguments are pushed and popped.
void PlaceChecker::to_cfa(Sum& sum) const {
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  auto function = moment_.inside;
  if (sum.base && !sum.index && locator_.id_of(*sum.base) == moment_.arch.stack_pointer && !moment_.at_entry &&
      is_unoptimised(moment_.inside))
    return stack_frame_to_cfa(sum);
  if (!sum.base || sum.index || locator_.id_of(*sum.base) == moment_.arch.stack_pointer ||
      dwarf_lowpc(&function, &low) != 0 || dwarf_highpc(&function, &high) != 0)
    return;
  const auto distance = moment_.state.frames().known_distance(*sum.base, VirtAddr(low), VirtAddr(high));
  if (!distance) return;
  sum.anchor = Anchor::cfa;
  sum.base.reset();
  sum.displacement -= *distance;
}

/// Without optimisation the prologue is one piece and ends where the line table says.
void PlaceChecker::stack_frame_to_cfa(Sum& sum) const {
  const auto body = function_lines(moment_.inside).prologue_end;
  const auto cfa = body ? moment_.state.frames().cfa_at(*body) : std::nullopt;
  if (!cfa || cfa->base != sum.base) return;
  sum.anchor = Anchor::cfa;
  sum.base.reset();
  sum.displacement -= cfa->displacement;
}

std::optional<std::uint64_t> PlaceChecker::from_cfa(Sum sum, std::optional<VirtAddr> at) const {
  if (sum.index || sum.file) return std::nullopt;
  if (sum.anchor == Anchor::frame && locator_.id_of(*sum.base) == moment_.arch.stack_pointer) {
    Dwarf_Addr high = 0;
    auto function = moment_.inside;
    const auto body = function_lines(function).prologue_end;
    if (!body || dwarf_highpc(&function, &high) != 0) return std::nullopt;
    const auto distance = moment_.state.frames().body_distance(*sum.base, *body, VirtAddr(high));
    if (!distance) return std::nullopt;
    return sum.displacement - *distance;
  }
  if (sum.anchor == Anchor::frame) to_cfa(sum);
  if (sum.anchor == Anchor::cfa && !sum.base) return sum.displacement;
  if (sum.anchor != Anchor::none || !sum.base || !at) return std::nullopt;
  const auto cfa = moment_.state.frames().cfa_at(*at);
  if (!cfa || cfa->base != sum.base) return std::nullopt;
  return sum.displacement - cfa->displacement;
}

std::optional<std::uint64_t> PlaceChecker::callers_bytes(const std::vector<WherePiece>& pieces,
                                                         std::optional<VirtAddr> at) const {
  constexpr std::uint64_t most = 1U << 16;
  std::optional<std::uint64_t> first;
  std::uint64_t before = 0;
  for (const WherePiece& piece : pieces) {
    const auto* address = std::get_if<AtAddress>(&piece.where);
    if (address == nullptr || address->address.loaded || address->address.width != 0) return std::nullopt;
    const auto offset = from_cfa(address->address.sum, at);
    if (!offset || *offset >= most || (first && *offset != *first + before)) return std::nullopt;
    if (!first) first = offset;
    before += piece.size;
  }
  return first;
}

/// At a function's first instruction a place said of the whole function is believed if it is one that callers fill.
bool PlaceChecker::may_hold_argument(unsigned reg) const {
  const RegisterId id = locator_.id_of(reg);
  const auto& user = moment_.arch.user_calls;
  const auto& others = moment_.arch.call_traits.variant_arguments;
  return std::ranges::find(user.arguments, id) != user.arguments.end() ||
         std::ranges::find(user.vectors, id) != user.vectors.end() || std::ranges::find(others, id) != others.end();
}

/// Whether the number is an address in the function's own frame. LLVM 14 says of variables, and of parts of them, that
/// are kept in a slot the address of that slot, and forgets to say that the value is what is in it
/// (tests/locate/chance_rust.py finds it, and that GDB shows the address).
bool PlaceChecker::is_frame_address(const Sum& sum) const {
  if (sum.anchor != Anchor::none) return true;
  const auto cfa = sum.base ? moment_.state.frames().cfa_at(moment_.instance.pc) : std::nullopt;
  return sum.base && (locator_.id_of(*sum.base) == moment_.arch.stack_pointer || (cfa && cfa->base == sum.base));
}

bool PlaceChecker::registers_hold(const Sum& sum, bool from_list) const {
  if (!moment_.at_entry || moment_.instance.inlined || from_list) return true;
  const auto holds = [this](std::optional<unsigned> reg) {
    return !reg || locator_.id_of(*reg) == moment_.arch.stack_pointer || may_hold_argument(*reg);
  };
  return holds(sum.base) && holds(sum.index);
}

/// Whether a variable of an inlined copy is in its slot when the copy begins. Of one that lives there for the whole
/// copy that is so without optimisation, where slots are filled with the call's arguments; but Clang copies structs
/// within the copy. GCC's lists say it from the place on where its variable tracking saw the slot filled, behind
/// which its scheduler has moved that instruction (12.2, -O2: tests/locate/truth_test.py finds it, and that GDB shows
/// what was there before).
bool PlaceChecker::slot_is_filled(const StatedPlace& what, bool is_structure) const {
  if (!moment_.instance.inlined) return moment_.at_entry || what.from_list || is_behind_prologue();
  if (what.from_list) return is_clang(moment_.die);
  return is_unoptimised(moment_.inside) && !(is_structure && is_clang(moment_.die));
}

/// Whether code is where debuggers stop in an unoptimised function: parameters are in their slots there.
bool PlaceChecker::is_behind_prologue() const {
  const auto body = function_lines(moment_.inside).body();
  return is_unoptimised(moment_.inside) && body && *body <= moment_.instance.pc;
}

std::string PlaceChecker::hold(StatedPlace& what, TypeKind kind) const {
  std::string reason;
  for (WherePiece& piece : what.pieces) {
    if (auto* reg = std::get_if<InRegister>(&piece.where)) {
      const bool is_copied = !may_hold_argument(reg->number) ||
                             moment_.state.traits.is_surely_unoptimised(moment_.inside);  // "register int n"
      if (moment_.at_entry && !moment_.instance.inlined && !what.from_list && is_copied)
        return "in a register that is set only behind this instruction";
      continue;
    }
    Value* value = nullptr;
    bool memory = false;
    if (auto* address = std::get_if<AtAddress>(&piece.where)) {
      value = &address->address;
      memory = true;
    } else if (auto* computed = std::get_if<IsValue>(&piece.where)) {
      value = &computed->value;
      memory = value->loaded;
    }
    if (value == nullptr) continue;
    const bool by_stack_pointer = value->sum.base && locator_.id_of(*value->sum.base) == moment_.arch.stack_pointer;
    const bool in_frame = value->sum.anchor != Anchor::none || by_stack_pointer;
    if (memory && in_frame && !slot_is_filled(what, kind == TypeKind::structure))
      return "in a stack slot that may be filled only behind this instruction";
    // Said of the whole function, by the stack pointer as it is behind the prologue: Clang's slots in a frame that is
    // aligned to more than the stack is.
    if (by_stack_pointer && value->sum.anchor == Anchor::none && moment_.at_entry && !moment_.instance.inlined &&
        !what.from_list)
      return "in a stack slot that is filled only behind this instruction";
    // The address of a slot is known before it is filled; what is in it is not.
    if (!memory && value->sum.anchor != Anchor::none && moment_.at_entry)
      return "computed from a frame that is not there yet";
    const bool may_be_address = (kind == TypeKind::pointer || kind == TypeKind::text) && what.pieces.size() == 1;
    if (!memory && !may_be_address && is_frame_address(value->sum))
      return "told as the address of a stack slot, which may be where it is";
    if (!count_from_registers(value->sum, reason)) return reason;
    if (!registers_hold(value->sum, what.from_list))
      return "in memory whose address is set only behind this instruction";
  }
  return {};
}

unsigned PlaceChecker::stack_pointer_number() const {
  const auto& all = moment_.arch.dwarf_registers;
  return static_cast<unsigned>(std::ranges::find(all, moment_.arch.stack_pointer) - all.begin());
}

}  // namespace usdt::locate
