// SPDX-License-Identifier: BSD-2-Clause
#include "locate/locator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace usdt::locate {
namespace {

std::uint64_t cut(std::uint64_t bits, std::uint32_t size, bool is_signed) {
  if (size == 0 || size >= 8) return bits;
  const unsigned spare = 64 - 8 * size;
  if (is_signed) return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << spare) >> spare);
  return bits << spare >> spare;
}

std::uint8_t bytes_dropped(const Where& where) {
  const auto* made = std::get_if<IsValue>(&where);
  return made == nullptr ? std::uint8_t{0} : made->value.dropped;
}

std::uint64_t from_bytes(std::span<const std::uint8_t> bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i) bits |= std::uint64_t{bytes[i]} << 8 * i;
  return bits;
}

}  // namespace

Location Locator::at_sum(const Sum& sum, bool is_value) const {
  Memory memory{.displacement = sum.displacement,
                .shift = sum.shift,
                .origin = sum.file ? Origin::file : Origin::zero,
                .wraps_at_32_bits = arch_.wraps_at_32_bits,
                .is_value = is_value};
  for (const auto& [from, to] : {std::pair(sum.base, &memory.base), std::pair(sum.index, &memory.index)}) {
    if (!from) continue;
    Location reg = arch::in_register(arch_, id_of(*from), arch_.word_size);
    if (!std::holds_alternative<Register>(reg)) return reg;
    *to = std::get<Register>(reg).id;
  }
  return memory;
}

/// A number below 0 is a large one in a wider type without a sign, also in one of two words of i386.
Location Locator::extended_by_sign(const Value& value, std::uint32_t size) const {
  constexpr std::uint32_t half = 4, whole = 8;
  if (value.loaded || !value.sum.is_register() || value.width != half || size != whole)
    return Unreadable{.reason = "computed: extended by its sign"};
  Location reg = arch::in_register(arch_, id_of(*value.sum.base), half);
  if (!std::holds_alternative<Register>(reg)) return reg;
  return Memory{.index = std::get<Register>(reg).id, .index_width = IndexWidth::low32_signed, .is_value = true};
}

Location Locator::location_of(const Where& where, Type& type) const {
  if (const auto* none = std::get_if<Nowhere>(&where)) return Unreadable{.reason = none->reason};
  if (const auto* reg = std::get_if<InRegister>(&where)) return arch::in_register(arch_, id_of(reg->number), type.size);
  if (const auto* bytes = std::get_if<IsBytes>(&where)) {
    if (bytes->bytes.size() < type.size) return Unreadable{.reason = "a constant with fewer bytes than its type"};
    return Constant{cut(from_bytes(bytes->bytes), type.size, type.is_signed && !type.is_float())};
  }
  if (const auto* address = std::get_if<AtAddress>(&where)) {
    const Value& value = address->address;
    if (value.loaded) return Unreadable{.reason = "behind a pointer in memory"};
    if (value.width != 0) return Unreadable{.reason = "at an address that is computed"};
    return at_sum(value.sum, false);
  }
  const Value& value = std::get<IsValue>(where).value;
  // Both compilers use, and make, the whole byte of a bool.
  if (value.bit && type.kind != TypeKind::boolean) return Unreadable{.reason = "computed: a single bit"};
  if (value.width != 0 && value.width < type.size) {
    if (type.is_float() || !std::has_single_bit(value.width)) return Unreadable{.reason = "computed"};
    if (value.is_signed && !type.is_signed) return extended_by_sign(value, type.size);
    type.size = value.width;
    type.is_signed = value.is_signed;
  }
  if (value.loaded) return at_sum(value.sum, false);
  if (value.sum.is_constant()) return Constant{cut(value.sum.displacement, type.size, type.is_signed)};
  if (value.sum.is_register()) return arch::in_register(arch_, id_of(*value.sum.base), type.size);
  return at_sum(value.sum, true);
}

Located Locator::from_pieces(const std::vector<WherePiece>& pieces, Type type) const {
  Located located{type, Unreadable{}, {}};
  const std::string unreadable = arch::why_unreadable(type);
  const bool whole = pieces.size() == 1 && (pieces[0].size == 0 || pieces[0].size >= type.size);
  if (whole && bytes_dropped(pieces[0].where) != 0) return arch::nowhere(type, "computed: shifted bits");
  if (whole) {
    located.location = location_of(pieces[0].where, located.type);
    if (unreadable.empty() || !arch::is_place(located.location)) return located;
    located.type = type;
    located.pieces.push_back({0, type.size, std::move(located.location)});
    located.location = Unreadable{.reason = unreadable};
    return located;
  }
  std::uint64_t offset = 0;
  for (const WherePiece& piece : pieces) {
    const std::uint64_t size =
        std::min<std::uint64_t>(piece.size, type.size - std::min<std::uint64_t>(offset, type.size));
    if (size == 0) break;
    Type part{.size = static_cast<std::uint32_t>(size)};
    Location location = location_of(piece.where, part);
    if (part.size != size) location = Unreadable{.reason = "computed"};
    located.pieces.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size), std::move(location),
                              bytes_dropped(piece.where)});
    offset += size;
  }
  return arch::joined(std::move(located), unreadable);
}

}  // namespace usdt::locate
