// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "resolve/value_size.hpp"

namespace usdt::resolve {
namespace {

constexpr std::string_view kNoAddress = "in registers, which have no address";

Number nowhere(std::string reason) { return {Unreadable{.reason = std::move(reason)}}; }

Step step_behind(const BehindPointer& place, const std::string& text) {
  return {.displacement = place.offset,
          .if_null = fmt::format("{} is null", place.pointer_text),
          .if_unread = fmt::format("{}: memory could not be read (EFAULT: unmapped or paged out)", text)};
}

/// How many bits are below those of the range, of a number of `size` bytes.
std::uint8_t bits_below(BitRange range, std::uint32_t size) {
  if (!range.swapped || range.bits == 0) return range.shift;
  return static_cast<std::uint8_t>(8 * size - range.shift - range.bits);
}

std::uint8_t bytes_to_swap(BitRange range, std::uint32_t size) {
  return range.swapped && size > 1 ? static_cast<std::uint8_t>(size) : std::uint8_t{0};
}

/// The range of a number of `size` bytes that is a word's lowest bytes.
Number add_bits(Number number, BitRange range, std::uint32_t size) {
  if (range.bits == 0 && !range.swapped) return number;
  Step step{.shift = bits_below(range, size), .bits = range.bits, .swapped = bytes_to_swap(range, size)};
  if (step.bits == 0) step.bits = static_cast<std::uint8_t>(8 * size);
  number.steps.push_back(std::move(step));
  return number;
}

Number in_memory(Memory at, std::uint32_t size, BitRange range, const std::string& text) {
  if (range.bits == 0 && bytes_to_swap(range, size) == 0) return {at};
  // Bits are taken, and bytes turned around, by a step, which reads what it takes them from.
  at.is_value = true;
  return {at,
          {{.size = static_cast<std::uint8_t>(size),
            .shift = bits_below(range, size),
            .bits = range.bits,
            .swapped = bytes_to_swap(range, size),
            .if_null = fmt::format("{}: memory could not be read", text),
            .if_unread = fmt::format("{}: memory could not be read (EFAULT: unmapped or paged out)", text)}}};
}

/// A number that one piece has as a whole.
Number in_piece(const Piece& piece, std::uint64_t offset, std::uint32_t size, BitRange range, const std::string& text,
                const arch::Arch& arch) {
  if (const auto* memory = std::get_if<Memory>(&piece.location); memory != nullptr && !memory->is_value) {
    Memory at = *memory;
    at.displacement += offset;
    return in_memory(at, size, range, text);
  }
  if (offset == 0 && piece.dropped == 0 && size == piece.size && range.bits == 0 && !range.swapped)
    return {piece.location};
  if (std::holds_alternative<Unreadable>(piece.location)) return {piece.location};
  const auto* reg = std::get_if<Register>(&piece.location);
  offset += piece.dropped;
  if (reg != nullptr && reg->high != RegisterId::none) return nowhere("a part of two registers");
  if (offset + size > arch.word_size) return nowhere("a part of a value of more than one word");
  Number number;
  number.location = piece.location;
  if (range.swapped && offset != 0) {
    number.steps.push_back(
        {.shift = static_cast<std::uint8_t>(8 * offset), .bits = static_cast<std::uint8_t>(8 * size)});
    return add_bits(std::move(number), range, size);
  }
  if (range.bits == 0) range.bits = static_cast<std::uint8_t>(8 * size);
  if (!range.swapped) range.shift = static_cast<std::uint8_t>(range.shift + 8 * offset);
  return add_bits(std::move(number), range, size);
}

/// Bytes of a number that has those bits: of a packed struct they may reach behind one of their own type.
std::uint32_t size_with(BitRange range, std::uint32_t size) {
  while (size < 8 && range.shift + range.bits > 8U * size) size *= 2;
  return size;
}

}  // namespace

bool is_in_memory(const Place& place, std::uint64_t size) {
  const auto* pieces = std::get_if<InPieces>(&place);
  if (pieces == nullptr) return !std::holds_alternative<Number>(place);
  return std::ranges::any_of(pieces->pieces, [&](const Piece& piece) {
    const auto* memory = std::get_if<Memory>(&piece.location);
    return memory != nullptr && !memory->is_value && pieces->offset >= piece.offset &&
           pieces->offset + size <= std::uint64_t{piece.offset} + piece.size;
  });
}

Place moved(Place place, std::uint64_t offset) {
  if (auto* memory = std::get_if<InMemory>(&place)) memory->at.displacement += offset;
  if (auto* behind = std::get_if<BehindPointer>(&place)) behind->offset += offset;
  if (auto* pieces = std::get_if<InPieces>(&place)) pieces->offset += offset;
  return place;
}

Number number_at(const Place& place, std::uint32_t type_size, BitRange range, const std::string& text,
                 const arch::Arch& arch) {
  if (!is_value_size(type_size))
    return nowhere(fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", type_size));
  const std::uint32_t size = size_with(range, type_size);
  if (range.shift + range.bits > 64) return nowhere(fmt::format("{} bits in nine bytes", range.bits));
  if (const auto* number = std::get_if<Number>(&place)) return add_bits(*number, range, size);
  if (const auto* memory = std::get_if<InMemory>(&place)) return in_memory(memory->at, size, range, text);
  if (const auto* behind = std::get_if<BehindPointer>(&place)) {
    Number number = behind->pointer;
    Step step = step_behind(*behind, text);
    step.size = static_cast<std::uint8_t>(size);
    step.shift = bits_below(range, size);
    step.bits = range.bits;
    step.swapped = bytes_to_swap(range, size);
    number.steps.push_back(std::move(step));
    return number;
  }
  const auto& [pieces, offset] = std::get<InPieces>(place);
  for (const Piece& piece : pieces) {
    if (offset >= piece.offset && offset + size <= std::uint64_t{piece.offset} + piece.size)
      return in_piece(piece, offset - piece.offset, size, range, text, arch);
  }
  return nowhere("in no single place: optimised out, or in several pieces");
}

Number address_of(const Place& place, const std::string& text, const arch::Arch& arch) {
  const auto of_memory = [](Memory at) {
    at.is_value = true;
    return Number{at};
  };
  if (const auto* memory = std::get_if<InMemory>(&place)) return of_memory(memory->at);
  if (const auto* behind = std::get_if<BehindPointer>(&place)) {
    Number number = behind->pointer;
    if (behind->offset != 0) number.steps.push_back(step_behind(*behind, text));
    return number;
  }
  if (const auto* pieces = std::get_if<InPieces>(&place)) {
    for (const Piece& piece : pieces->pieces) {
      if (pieces->offset < piece.offset || pieces->offset >= std::uint64_t{piece.offset} + piece.size) continue;
      if (std::holds_alternative<Unreadable>(piece.location)) return {piece.location};
      const auto* memory = std::get_if<Memory>(&piece.location);
      if (memory == nullptr || memory->is_value) continue;
      Memory at = *memory;
      at.displacement += pieces->offset - piece.offset;
      at.wraps_at_32_bits = arch.wraps_at_32_bits;
      return of_memory(at);
    }
  }
  return nowhere(std::string(kNoAddress));
}

}  // namespace usdt::resolve
