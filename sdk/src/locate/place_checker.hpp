// SPDX-License-Identifier: BSD-2-Clause
// Whether what debug information says of a variable holds at one instruction, and what it comes to there. Private to
// locate/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "locate/locator.hpp"
#include "locate/moment.hpp"
#include "locate/stated_place.hpp"

namespace usdt::locate {

class PlaceChecker {
 public:
  /// `moment` must outlive the checker.
  explicit PlaceChecker(const Moment& moment) : moment_(moment), locator_(moment.arch) {}

  /// Makes each piece hold here; the reason why one does not.
  [[nodiscard]] std::string hold(StatedPlace& what, TypeKind kind) const;
  /// Turns what counts from a frame's base into what counts from the call frame address, where their distance is known.
  void to_cfa(Sum& sum) const;
  /// Bytes from the call frame address to something on the stack that only callers write before the function begins.
  /// Nothing: it is elsewhere, or that is not known. `at`: the instruction that `pieces` are stated for; nothing: the
  /// whole function.
  [[nodiscard]] std::optional<std::uint64_t> callers_bytes(const std::vector<WherePiece>& pieces,
                                                           std::optional<VirtAddr> at) const;

 private:
  [[nodiscard]] std::optional<std::uint64_t> from_cfa(Sum sum, std::optional<VirtAddr> at) const;
  [[nodiscard]] bool count_from_registers(Sum& sum, std::string& reason) const;
  void stack_frame_to_cfa(Sum& sum) const;
  [[nodiscard]] bool may_hold_argument(unsigned reg) const;
  [[nodiscard]] bool is_frame_address(const Sum& sum) const;
  [[nodiscard]] bool registers_hold(const Sum& sum, bool from_list) const;
  [[nodiscard]] bool slot_is_filled(const StatedPlace& what, bool is_structure) const;
  [[nodiscard]] bool is_behind_prologue() const;
  [[nodiscard]] unsigned stack_pointer_number() const;

  const Moment& moment_;
  Locator locator_;
};

}  // namespace usdt::locate
