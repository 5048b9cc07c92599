// SPDX-License-Identifier: BSD-2-Clause
// Parameters of code that is not optimised: debug information tells the slots that they have behind the prologue. What
// the prologue puts there shows where they are before it, whatever the calling convention is. Private to locate/.
#pragma once

#include <optional>
#include <vector>

#include "arch/spills.hpp"
#include "arch/user_calls.hpp"
#include "locate/moment.hpp"
#include "locate/stated_place.hpp"

namespace usdt::locate {

class SpilledPlaces {
 public:
  /// `moment` must outlive it.
  explicit SpilledPlaces(const Moment& moment) : moment_(moment) {}

  /// The place of a parameter of `size` bytes at the function's first instruction: the registers that are stored to its
  /// slots, one after the other. Nothing: the code does not show that. It may show a part of a struct.
  [[nodiscard]] std::optional<std::vector<WherePiece>> at_entry(const StatedPlace& told, std::uint64_t size,
                                                                bool is_structure);
  /// Whether what the prologue stores in a parameter's slot first shows that it was not passed at `place`.
  [[nodiscard]] bool contradict(const StatedPlace& told, const arch::UserPlace& place);
  /// Registers whose values the function uses before it sets them, as arch::first_uses() has it.
  [[nodiscard]] std::vector<RegisterId> used_registers() const;

 private:
  [[nodiscard]] const std::vector<arch::Spill>& spills();
  [[nodiscard]] std::vector<WherePiece> passed_on_stack(std::int64_t slot) const;
  [[nodiscard]] std::optional<std::int64_t> slot_of(Sum sum) const;
  [[nodiscard]] std::vector<std::uint8_t> first_code() const;
  [[nodiscard]] bool add_pieces(std::int64_t at, std::uint64_t size, std::vector<WherePiece>& pieces);
  [[nodiscard]] const arch::Spill* first_store_to(std::int64_t byte);
  /// The DWARF number of a register that arguments are passed in.
  [[nodiscard]] std::optional<unsigned> number_of(RegisterId reg) const;

  const Moment& moment_;
  std::optional<std::vector<arch::Spill>> spills_;
};

}  // namespace usdt::locate
