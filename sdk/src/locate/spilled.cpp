// SPDX-License-Identifier: BSD-2-Clause
#include "locate/spilled.hpp"

#include <algorithm>

#include "arch/instructions.hpp"
#include "dwarf/compiler.hpp"
#include "dwarf/line_table.hpp"
#include "elf/elf_impl.hpp"
#include "locate/locator.hpp"

namespace usdt::locate {
namespace {

/// Bytes of a prologue that stores all arguments.
constexpr std::uint64_t kLongestPrologue = 512;

}  // namespace

std::optional<std::vector<WherePiece>> SpilledPlaces::at_entry(const StatedPlace& told, std::uint64_t size,
                                                               bool is_structure) {
  if (told.from_list || !moment_.at_entry || moment_.instance.inlined || told.pieces.size() != 1) return std::nullopt;
  if (!moment_.state.traits.is_surely_unoptimised(moment_.inside) || size == 0) return std::nullopt;
  if (told.pieces.front().size != 0 && told.pieces.front().size < size) return std::nullopt;
  const auto* place = std::get_if<AtAddress>(&told.pieces.front().where);
  constexpr std::uint64_t most = 64;
  if (place == nullptr || (!place->address.loaded && size > most)) return std::nullopt;
  if (place->address.width != 0 && place->address.width != moment_.arch.word_size) return std::nullopt;
  const auto slot = slot_of(place->address.sum);
  if (!slot) return std::nullopt;
  if (!place->address.loaded && *slot >= moment_.arch.entry_frame) return passed_on_stack(*slot);
  std::vector<WherePiece> pieces;
  const bool behind_pointer = place->address.loaded;
  if (!add_pieces(*slot, behind_pointer ? moment_.arch.word_size : size, pieces)) return std::nullopt;
  const bool whole = std::ranges::none_of(
      pieces, [](const WherePiece& piece) { return std::holds_alternative<Nowhere>(piece.where); });
  if (!whole && (behind_pointer || !is_structure)) return std::nullopt;
  if (!behind_pointer) return pieces;
  const auto* pointer = pieces.size() == 1 ? std::get_if<InRegister>(&pieces.front().where) : nullptr;
  if (pointer == nullptr) return std::nullopt;
  Value address;
  address.sum.base = pointer->number;
  return std::vector<WherePiece>{{0, AtAddress{address}}};
}

/// Above the return address only callers write before the function begins.
std::vector<WherePiece> SpilledPlaces::passed_on_stack(std::int64_t slot) const {
  const auto& all = moment_.arch.dwarf_registers;
  Value address;
  address.sum.base = static_cast<unsigned>(std::ranges::find(all, moment_.arch.stack_pointer) - all.begin());
  address.sum.displacement = static_cast<std::uint64_t>(slot);
  return {{0, AtAddress{address}}};
}

/// Bytes from the stack pointer at the first instruction. Slots count from a register as it is behind the prologue.
std::optional<std::int64_t> SpilledPlaces::slot_of(Sum sum) const {
  if (sum.index || sum.file) return std::nullopt;
  const auto from_entry = [this](std::uint64_t from_cfa) {
    return static_cast<std::int64_t>(from_cfa + moment_.arch.entry_frame);
  };
  if (sum.anchor == Anchor::cfa && !sum.base) return from_entry(sum.displacement);
  if (!sum.base || sum.anchor == Anchor::cfa) return std::nullopt;
  const auto body = function_lines(moment_.inside).body();
  const auto cfa = body ? moment_.state.frames().cfa_at(*body) : std::nullopt;
  if (!cfa || cfa->base != sum.base || cfa->index) return std::nullopt;
  return from_entry(sum.displacement - cfa->displacement);
}

/// The first store to each byte counts: what is stored there later is another value. Between the members of a struct
/// there may be bytes that nothing fills.
bool SpilledPlaces::add_pieces(std::int64_t at, std::uint64_t size, std::vector<WherePiece>& pieces) {
  const std::int64_t end = at + static_cast<std::int64_t>(size);
  bool any = false;
  while (at < end) {
    const arch::Spill* first = first_store_to(at);
    const auto number = first != nullptr && first->at == at ? number_of(first->reg) : std::nullopt;
    std::int64_t bytes = 1;
    if (number) bytes = std::min<std::int64_t>(first->size, end - at);
    bool own = number.has_value();
    for (std::int64_t byte = at + 1; own && byte < at + bytes; ++byte) own = first_store_to(byte) == first;
    if (own) {
      WherePiece& filled = pieces.emplace_back();
      filled.size = static_cast<std::uint64_t>(bytes);
      filled.where = InRegister{*number};
      any = true;
      at += bytes;
    } else {
      if (pieces.empty() || !std::holds_alternative<Nowhere>(pieces.back().where))
        pieces.emplace_back().where = Nowhere{"not filled by the first instructions of the function"};
      ++pieces.back().size;
      ++at;
    }
  }
  return any;
}

const arch::Spill* SpilledPlaces::first_store_to(std::int64_t byte) {
  const auto& all = spills();
  const auto covers = [byte](const arch::Spill& each) { return each.at <= byte && byte < each.at + each.size; };
  const auto found = std::ranges::find_if(all, covers);
  return found == all.end() ? nullptr : &*found;
}

const std::vector<arch::Spill>& SpilledPlaces::spills() {
  if (!spills_) spills_ = arch::first_spills(moment_.arch, first_code());
  return *spills_;
}

std::vector<RegisterId> SpilledPlaces::used_registers() const { return arch::first_uses(moment_.arch, first_code()); }

std::vector<std::uint8_t> SpilledPlaces::first_code() const {
  const elf::OpenedFile& opened = *moment_.info.files.opened;
  const auto offset = elf::code_offset(opened.image, moment_.instance.pc);
  if (!offset || !arch::knows_instructions(moment_.arch.machine)) return {};
  const std::uint64_t size = std::min(code_size(moment_.inside, moment_.instance.pc, moment_.info.shared_reads),
                                      elf::code_bytes_from(opened.image, moment_.instance.pc));
  return opened.file.bytes(offset->value, std::min(size, kLongestPrologue));
}

bool SpilledPlaces::contradict(const StatedPlace& told, const arch::UserPlace& place) {
  using Place = arch::UserPlace::Where;
  if (told.from_list || told.pieces.size() != 1 || !moment_.state.traits.is_surely_unoptimised(moment_.inside))
    return false;
  const auto* address = std::get_if<AtAddress>(&told.pieces.front().where);
  if (address == nullptr || (address->address.width != 0 && address->address.width != moment_.arch.word_size))
    return false;
  const auto slot = slot_of(address->address.sum);
  const arch::Spill* first = slot && *slot < 0 ? first_store_to(*slot) : nullptr;
  if (first == nullptr || first->at != *slot) return false;
  if (first->from_memory) return place.where == Place::registers || place.where == Place::stack;
  if (first->reg == RegisterId::none) return false;
  if (place.where == Place::stack) return true;
  const bool in_register = place.where == Place::registers || place.where == Place::address_in_register;
  return in_register && !place.parts.empty() && place.parts.front().reg != first->reg;
}

std::optional<unsigned> SpilledPlaces::number_of(RegisterId reg) const {
  const auto& arguments = moment_.arch.user_calls.arguments;
  if (std::ranges::find(arguments, reg) == arguments.end()) return std::nullopt;
  const auto& all = moment_.arch.dwarf_registers;
  const auto found = std::ranges::find(all, reg);
  return found == all.end() ? std::nullopt : std::optional(static_cast<unsigned>(found - all.begin()));
}

}  // namespace usdt::locate
