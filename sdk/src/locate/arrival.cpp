// SPDX-License-Identifier: BSD-2-Clause
// "a = b;" at the beginning of a function is no instruction: from its first one on a's value is in the register that b
// was passed in, and that is what lists say of a there. GCC's have the value that was passed in an entry of its own
// (tells_each_value()), those of other compilers lack it. Which it is shows by the calling convention, and where that
// is not known by the order of the registers: they are given to parameters from left to right, whichever are left out.
#include "locate/arrival.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "dwarf/compiler.hpp"
#include "locate/locator.hpp"

namespace usdt::locate {
namespace {

using arch::UserPlace;

class Arrival {
 public:
  explicit Arrival(const Moment& moment) : moment_(moment), locator_(moment.arch) {
    const auto& usual = moment.arch.user_calls.arguments;
    in_order_.assign(usual.begin(), usual.end());
    // Clang passes whole numbers to functions of its own on i386 as fastcall does (LLVM's CC_X86_32_FastCC): in two of
    // the registers of regparm, the last one first.
    const auto& variants = moment.arch.call_traits.variant_arguments;
    if (usual.empty() && variants.size() > 1) in_order_.assign(variants.rbegin(), variants.rbegin() + 2);
  }

  /// Whether it is in a register that nobody passes it in, or made of one, or in memory that an argument leads to while
  /// no address of it is passed, or another one.
  [[nodiscard]] bool is_elsewhere(const StatedPlace& told, const UserPlace& place) const {
    using Place = UserPlace::Where;
    if (place.where == Place::unknown || place.where == Place::nowhere) return false;
    const auto is_passed_in = [&place](RegisterId reg) {
      return std::ranges::find(place.parts, reg, &arch::UserPart::reg) != place.parts.end();
    };
    return std::ranges::any_of(told.pieces, [&](const WherePiece& piece) {
      if (const auto reg = address_in(piece.where))
        return place.where == Place::registers || place.where == Place::stack ||
               (place.where == Place::address_in_register && !is_passed_in(*reg));
      const auto reg = register_of(piece.where);
      return reg && !is_passed_in(*reg);
    });
  }

  /// Whether some bytes of it are others of their register than those that are passed there.
  [[nodiscard]] bool is_shifted(const StatedPlace& told, const UserPlace& place) const {
    std::uint64_t offset = 0;
    for (const WherePiece& piece : told.pieces) {
      const auto reg = register_of(piece.where);
      const auto part = reg ? std::ranges::find(place.parts, *reg, &arch::UserPart::reg) : place.parts.end();
      if (part != place.parts.end() && part->offset + dropped(piece.where) != offset) return true;
      offset += piece.size;
    }
    return false;
  }

  /// Made of registers or of what they lead to, as nothing is that was passed.
  [[nodiscard]] bool is_computed(const StatedPlace& told) const {
    std::uint64_t offset = 0;
    for (const WherePiece& piece : told.pieces) {
      if (is_computed(piece.where, offset % moment_.arch.word_size)) return true;
      offset += piece.size;
    }
    return false;
  }

  [[nodiscard]] bool has_register(const StatedPlace& told) const {
    return std::ranges::any_of(told.pieces,
                               [this](const WherePiece& piece) { return number_of(piece.where).has_value(); });
  }

  /// Whether the registers of all that lists tell of are in the order of the convention, each once. Between those of
  /// neighbours there is none: it would be that of one of them, which has another one's value. Nor are there more
  /// before the first one than what is before it can be passed in.
  [[nodiscard]] bool are_in_order(const std::vector<StatedPlace>& told, bool result_by_address) const {
    constexpr std::ptrdiff_t most_of_one = 2;  // a large number, a struct
    std::ptrdiff_t taken_before = result_by_address ? 1 : 0;
    std::optional<std::ptrdiff_t> last;
    bool neighbour = false;  // nothing that may be in registers not told is between this one and the last
    for (const StatedPlace& each : told) {
      bool whole = each.from_list && !each.pieces.empty();
      std::uint64_t offset = 0;
      std::optional<std::ptrdiff_t> own;
      for (const WherePiece& piece : each.pieces) {
        const std::uint64_t in_word = std::exchange(offset, offset + piece.size) % moment_.arch.word_size;
        const auto number = each.from_list ? number_of(piece.where) : std::nullopt;
        whole = whole && number;
        if (!number) continue;
        if (own == number && in_word != 0 && dropped(piece.where) == in_word) continue;  // another part of that word
        own = number;
        if (last ? *number <= *last : *number > taken_before) return false;
        const bool leaves_out = last && neighbour && *number != *last + 1;
        if (leaves_out && !moment_.arch.call_traits.pads_pairs) return false;
        last = number;
        neighbour = true;
      }
      neighbour = neighbour && whole;
      taken_before += most_of_one;
    }
    return true;
  }

 private:
  /// `in_word`: where its first byte is in a word of the whole, if it has words in registers.
  [[nodiscard]] bool is_computed(const Where& where, std::uint64_t in_word) const {
    const auto* made = std::get_if<IsValue>(&where);
    if (made == nullptr || !made->value.sum.base || made->value.sum.anchor != Anchor::none) return false;
    const Sum& sum = made->value.sum;
    const bool is_passed =
        !made->value.loaded && sum.is_register() && (made->value.dropped == 0 || made->value.dropped == in_word);
    return locator_.id_of(*sum.base) != moment_.arch.stack_pointer && !is_passed;
  }

  [[nodiscard]] static std::uint64_t dropped(const Where& where) {
    const auto* made = std::get_if<IsValue>(&where);
    return made == nullptr ? 0 : made->value.dropped;
  }

  [[nodiscard]] std::optional<RegisterId> register_of(const Where& where) const {
    if (const auto* in = std::get_if<InRegister>(&where)) return locator_.id_of(in->number);
    const auto* made = std::get_if<IsValue>(&where);
    if (made == nullptr || made->value.loaded || !made->value.sum.is_register()) return std::nullopt;
    return locator_.id_of(*made->value.sum.base);
  }

  /// The register of arguments that the address of an object is in.
  [[nodiscard]] std::optional<RegisterId> address_in(const Where& where) const {
    const auto* address = std::get_if<AtAddress>(&where);
    if (address == nullptr || address->address.loaded || !address->address.sum.is_register()) return std::nullopt;
    const RegisterId reg = locator_.id_of(*address->address.sum.base);
    const auto& all = moment_.arch.user_calls.arguments;
    return std::ranges::find(all, reg) == all.end() ? std::nullopt : std::optional(reg);
  }

  /// Which one it is of those that arguments are passed in.
  [[nodiscard]] std::optional<std::ptrdiff_t> number_of(const Where& where) const {
    const auto reg = register_of(where);
    const auto found = reg ? std::ranges::find(in_order_, *reg) : in_order_.end();
    return found == in_order_.end() ? std::nullopt : std::optional(found - in_order_.begin());
  }

  const Moment& moment_;
  Locator locator_;
  std::vector<RegisterId> in_order_ = {};  ///< that arguments are passed in
};

}  // namespace

Contradictions contradictions(const Moment& moment, const std::vector<StatedPlace>& told,
                              const std::vector<UserPlace>& places, bool result_by_address) {
  Contradictions found{.assigned = std::vector<bool>(told.size(), false)};
  if (!moment.at_entry || moment.instance.inlined) return found;
  const Arrival arrival(moment);
  const bool each_is_told = tells_each_value(moment.die);
  // LLVM says "nocall" of a function whose arguments nobody reads were left out: the others are passed as ever.
  const auto convention = number(attribute(moment.die, DW_AT_calling_convention)).value_or(DW_CC_normal);
  const bool order_known = convention == DW_CC_normal || convention == DW_CC_nocall;
  const bool in_order =
      each_is_told || !places.empty() || !order_known || arrival.are_in_order(told, result_by_address);
  for (std::size_t i = 0; i < told.size(); ++i) {
    // A register told of the whole function may be what the first instructions copy it to, but not one of arguments
    // where GCC optimises.
    const bool since_begin = each_is_told && !moment.state.traits.is_surely_unoptimised(moment.inside);
    if (!told[i].from_list && !(since_begin && arrival.has_register(told[i]))) continue;
    const bool elsewhere = !places.empty() && arrival.is_elsewhere(told[i], places[i]);
    // (Clang says by an attribute how a function is called, if not as others are.)
    found.convention |= elsewhere && !is_clang(moment.die);
    if (each_is_told) continue;
    const bool shifted = !places.empty() && arrival.is_shifted(told[i], places[i]);
    found.assigned[i] =
        elsewhere || shifted || arrival.is_computed(told[i]) || (!in_order && arrival.has_register(told[i]));
  }
  return found;
}

}  // namespace usdt::locate
