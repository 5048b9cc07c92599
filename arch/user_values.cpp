// SPDX-License-Identifier: BSD-2-Clause
#include "arch/user_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <variant>

namespace usdt::arch {
namespace {

std::optional<Location> side_by_side(const std::vector<Piece>& pieces) {
  if (const auto* first = std::get_if<Memory>(&pieces.front().location); first != nullptr && !first->is_value) {
    for (const Piece& each : pieces) {
      Memory expected = *first;
      expected.displacement += each.offset;
      const auto* memory = std::get_if<Memory>(&each.location);
      if (memory == nullptr || *memory != expected) return std::nullopt;
    }
    return *first;
  }
  if (pieces.size() != 2 || pieces[0].size != 4 || pieces[1].size != 4) return std::nullopt;
  const auto* low = std::get_if<usdt::Register>(&pieces[0].location);
  const auto* high = std::get_if<usdt::Register>(&pieces[1].location);
  if (low == nullptr || high == nullptr || pieces[0].dropped != 0 || pieces[1].dropped != 0) return std::nullopt;
  return usdt::Register{.id = low->id, .high = high->id};
}

Location location_of(const Arch& arch, const UserPart& part) {
  if (part.reg != RegisterId::none)
    return in_register(arch, part.reg, std::min<std::uint32_t>(part.size, arch.word_size));
  return usdt::Memory{
      .displacement = part.stack, .base = arch.stack_pointer, .wraps_at_32_bits = arch.wraps_at_32_bits};
}

}  // namespace

std::string why_unreadable(const Type& type) {
  if (type.kind == TypeKind::structure) return fmt::format("struct by value ({} bytes)", type.size);
  if (type.kind == TypeKind::array) return fmt::format("array by value ({} bytes)", type.size);
  if (type.size == 0) return "of a type that is not known";
  if (type.size > 8 || !std::has_single_bit(type.size) || (type.is_float() && type.size < 2))
    return fmt::format("{}-byte value: only values of 1, 2, 4 and 8 bytes can be read", type.size);
  return {};
}

bool is_place(const Location& location) { return !std::holds_alternative<Unreadable>(location); }

UserValue nowhere(const Type& type, std::string reason) { return {type, Unreadable{.reason = std::move(reason)}, {}}; }

Location in_register(const Arch& arch, RegisterId id, std::uint32_t size) {
  if (id == RegisterId::none) return Unreadable{.reason = "in a register that probes are not given"};
  const Register& reg = arch.reg(id);
  if (reg.reg_class == RegClass::fp)
    return Unreadable{.reason = fmt::format("in {}, a vector register, which probes are not given", reg.name)};
  if (reg.pt_regs_word < 0 || reg.reg_class != RegClass::gpr)
    return Unreadable{.reason = fmt::format("in {}, which probes are not given", reg.name)};
  if (size > arch.word_size) return Unreadable{.reason = fmt::format("{} bytes in one register", size)};
  return usdt::Register{.id = id};
}

UserValue joined(UserValue located, const std::string& unreadable) {
  auto& pieces = located.pieces;
  const auto bad = std::ranges::find_if(pieces, [](const Piece& each) { return !is_place(each.location); });
  const std::uint64_t total = pieces.empty() ? 0 : std::uint64_t{pieces.back().offset} + pieces.back().size;
  if (!unreadable.empty()) {
    located.location = Unreadable{.reason = unreadable};
  } else if (bad != pieces.end()) {
    located.location = Unreadable{.reason = fmt::format("{} of its {} bytes: {}", bad->size, located.type.size,
                                                        std::get<Unreadable>(bad->location).reason)};
  } else if (total != located.type.size) {
    located.location = Unreadable{.reason = "in pieces, of which some are optimised out"};
  } else if (auto whole = side_by_side(pieces)) {
    located.location = *std::move(whole);
    pieces.clear();
  } else {
    located.location = Unreadable{.reason = fmt::format("in {} pieces", pieces.size())};
  }
  return located;
}

UserValue value_at(const Arch& arch, const UserPlace& place, const Type& type) {
  using Place = UserPlace::Where;
  const std::string unreadable = why_unreadable(type);
  UserValue located{type, Unreadable{}, {}};
  const auto whole_at = [&](Memory memory) {
    memory.wraps_at_32_bits = arch.wraps_at_32_bits;
    if (unreadable.empty()) {
      located.location = memory;
    } else {
      located.pieces.push_back({0, type.size, memory});
      located.location = Unreadable{.reason = unreadable};
    }
  };
  switch (place.where) {
    case Place::unknown:
      return nowhere(type, "of a type, or behind one, whose place the calling convention does not tell");
    case Place::nowhere:
      return nowhere(type, "without a value: an empty class is not passed");
    case Place::stack:
      whole_at({.displacement = place.stack, .base = arch.stack_pointer});
      return located;
    case Place::address_in_register:
      whole_at({.base = place.parts.front().reg});
      return located;
    case Place::address_on_stack:
      return nowhere(type, "behind a pointer in memory");
    case Place::registers:
      break;
  }
  for (const UserPart& part : place.parts) located.pieces.push_back({part.offset, part.size, location_of(arch, part)});
  if (unreadable.empty() && place.parts.size() == 1) {
    located.location = std::move(located.pieces.front().location);
    located.pieces.clear();
    return located;
  }
  return joined(std::move(located), unreadable);
}

}  // namespace usdt::arch
