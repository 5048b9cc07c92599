// SPDX-License-Identifier: BSD-2-Clause
#include "locate/go_parts.hpp"

#include <algorithm>
#include <utility>

namespace usdt::locate {
namespace {

using arch::Scalar;
using arch::UserPlace;

bool is_nowhere(const WherePiece& piece) { return std::holds_alternative<Nowhere>(piece.where); }

class PartsOfGo {
 public:
  PartsOfGo(const StatedPlace& what, std::optional<UserPlace> place, const Moment& moment, const PlaceChecker& checker)
      : what_(what), place_(std::move(place)), moment_(moment), checker_(checker) {}

  /// Whether `piece` is the scalar, as far as its size and the convention tell.
  [[nodiscard]] bool is_part(const WherePiece& piece, const Scalar& scalar) const {
    if (piece.size != 0 && piece.size != scalar.size) return false;
    if (!place_) return true;
    if (place_->where == UserPlace::Where::stack) {
      const auto at =
          checker_.callers_bytes({piece}, what_.from_list ? std::optional(moment_.instance.pc) : std::nullopt);
      return at == place_->stack - moment_.arch.entry_frame + scalar.offset;
    }
    const auto* reg = std::get_if<InRegister>(&piece.where);
    const auto part = std::ranges::find(place_->parts, scalar.offset, &arch::UserPart::offset);
    return reg != nullptr && part != place_->parts.end() && reg->number < moment_.arch.dwarf_registers.size() &&
           moment_.arch.dwarf_registers[reg->number] == part->reg;
  }

 private:
  const StatedPlace& what_;
  std::optional<UserPlace> place_;
  const Moment& moment_;
  const PlaceChecker& checker_;
};

}  // namespace

bool place_parts_of_go(StatedPlace& what, const arch::UserShape& shape, const std::optional<UserPlace>& place,
                       const Moment& moment, const PlaceChecker& checker) {
  const auto& scalars = shape.scalars;
  if (!what.from_list || what.pieces.empty() || (scalars.size() == 1 && what.pieces.size() == 1)) return true;
  const bool is_known =
      place && (place->where == UserPlace::Where::registers || place->where == UserPlace::Where::stack);
  if (what.pieces.size() == 1 && is_known && place->where == UserPlace::Where::stack && shape.arrays) return true;
  if (shape.size > arch::UserShape::flat_size && shape.arrays) return false;
  if (!is_known && what.pieces.size() != scalars.size()) return false;
  // A part is found by where it is passed, and what has no place is between parts or was optimised out. Without
  // optimisation the compiler writes such pieces behind members whose alignment needs none, too.
  if (is_known) std::erase_if(what.pieces, is_nowhere);
  const PartsOfGo parts(what, is_known ? place : std::nullopt, moment, checker);
  std::vector<WherePiece> placed;
  std::uint64_t end = 0;
  auto scalar = scalars.begin();
  for (WherePiece& piece : what.pieces) {
    while (scalar != scalars.end() && !parts.is_part(piece, *scalar)) {
      if (!is_known) return false;
      ++scalar;
    }
    if (scalar == scalars.end()) return false;
    if (scalar->offset > end) placed.push_back({scalar->offset - end, Nowhere{.reason = "optimised out here"}});
    end = scalar->offset + scalar->size;
    placed.push_back({scalar->size, std::move(piece.where)});
    ++scalar;
  }
  if (end < shape.size) placed.push_back({shape.size - end, Nowhere{.reason = "optimised out here"}});
  what.pieces = std::move(placed);
  return true;
}

}  // namespace usdt::locate
