// SPDX-License-Identifier: BSD-2-Clause
#include "locate/frame.hpp"

#include <algorithm>
#include <cstdlib>

namespace usdt::locate {
namespace {

/// Rows of one function that are looked at; real ones have up to some hundred.
constexpr unsigned kMostRows = 4096;

struct Free {
  void operator()(Dwarf_Frame* frame) const noexcept { std::free(frame); }
};

}  // namespace

Frames::Frames(Elf* code, Dwarf* dwarf, const arch::Arch& arch)
    : eh_frame_(code != nullptr ? dwarf_getcfi_elf(code) : nullptr), debug_frame_(dwarf_getcfi(dwarf)), arch_(arch) {}

std::optional<Frames::Row> Frames::row_at(VirtAddr pc) const {
  for (Dwarf_CFI* cfi : {eh_frame_.get(), debug_frame_}) {
    Dwarf_Frame* found = nullptr;
    if (cfi == nullptr || dwarf_cfi_addrframe(cfi, pc.value, &found) != 0) continue;
    const std::unique_ptr<Dwarf_Frame, Free> frame(found);
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    if (dwarf_frame_cfa(found, &ops, &count) != 0 || dwarf_frame_info(found, &start, &end, nullptr) < 0) continue;
    const auto pieces =
        evaluate({ops, count}, {.arch = arch_, .attribute = nullptr, .at_entry = false, .frame_base = {}});
    const auto* address = std::get_if<AtAddress>(&pieces.front().where);
    if (address == nullptr || address->address.loaded || address->address.width != 0) continue;
    const Sum& cfa = address->address.sum;
    if (!cfa.base || cfa.index || cfa.file || cfa.anchor != Anchor::none) continue;
    return Row{cfa, end};
  }
  return std::nullopt;
}

std::optional<Sum> Frames::cfa_at(VirtAddr pc) const {
  std::uint64_t end = 0;
  return cfa_until(pc, end);
}

std::optional<Sum> Frames::cfa_until(VirtAddr pc, std::uint64_t& end) const {
  auto row = row_at(pc);
  end = row ? row->end : pc.value + 1;
  if (!row) return std::nullopt;
  return row->cfa;
}

std::optional<std::uint64_t> Frames::known_distance(unsigned reg, VirtAddr start, VirtAddr end) const {
  std::optional<std::uint64_t> distance;
  VirtAddr pc = start;
  for (unsigned i = 0; i < kMostRows && pc < end; ++i) {
    const auto row = row_at(pc);
    if (!row || row->end <= pc.value) break;
    if (row->cfa.base == reg) distance = std::max(distance.value_or(0), row->cfa.displacement);
    pc = VirtAddr(row->end);
  }
  return distance;
}

/// Pushes for a call are taken back behind it. What is taken back below the distance at `body` is the end of a function
/// then; where more is pushed again from there, `body` was in the midst of a call's pushes.
std::optional<std::uint64_t> Frames::body_distance(unsigned reg, VirtAddr body, VirtAddr end) const {
  const auto first = row_at(body);
  if (!first || first->cfa.base != reg) return std::nullopt;
  const std::uint64_t distance = first->cfa.displacement;
  std::uint64_t last = distance;
  VirtAddr pc = body;
  for (unsigned i = 0; pc < end; ++i) {
    const auto row = row_at(pc);
    if (!row || row->end <= pc.value || i == kMostRows || row->cfa.base != reg) return std::nullopt;
    const std::uint64_t now = row->cfa.displacement;
    if (last < distance && now > last && now != distance) return std::nullopt;
    last = now;
    pc = VirtAddr(row->end);
  }
  return distance;
}

}  // namespace usdt::locate
