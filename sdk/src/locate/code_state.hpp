// SPDX-License-Identifier: BSD-2-Clause
// What registers and words of the frame have on the way through a function's code. Private to locate/.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "arch/effects.hpp"

namespace usdt::locate {

/// The part of one object that is followed: its address, or one of its words, which may be addresses of other memory.
struct Held {
  std::optional<std::int64_t> into;  ///< it points so far into the object
  std::optional<std::int64_t> word;  ///< it is the word that is so far in the object
  [[nodiscard]] bool is_something() const noexcept { return into || word; }
};

/// A place on the stack: bytes from the call frame address on, or from where the stack pointer was put by an
/// instruction that aligns it, which is no known distance from there.
struct FramePlace {
  unsigned base = 0;  ///< 0: the call frame address
  std::int64_t offset = 0;
  auto operator<=>(const FramePlace&) const = default;
};

/// The contents of registers and of the frame on some path from the function's beginning. The compiler saw each path,
/// too: where two come together, a register has what it has on either.
class CodeState {
 public:
  static constexpr std::size_t kMostRegisters = 16;

  struct Register {
    Held held;
    bool set = false;                 ///< by this function
    std::optional<FramePlace> frame;  ///< it points there
  };

  [[nodiscard]] const Register& at(std::size_t reg) const { return registers_[reg]; }
  /// `reg` has that here, as what is passed to the function.
  void pass(std::size_t reg, Held held) { registers_[reg].held = held; }
  /// `held` is passed to the function on the stack, `offset` bytes from the call frame address on.
  void pass_on_stack(std::int64_t offset, Held held) { kept_[{0, offset}] = held; }
  /// The register points so far from the call frame address. Of those that no code is followed for nothing is kept.
  void point(std::size_t reg, std::int64_t offset) {
    if (reg < kMostRegisters) registers_[reg].frame = FramePlace{0, offset};
  }

  /// The place of an access in the frame; nothing: elsewhere, or not known.
  [[nodiscard]] std::optional<FramePlace> place_of(const arch::Access& access) const;
  /// Goes on behind an instruction. `stack_pointer`: its number.
  void step(const arch::Effects& effects, std::size_t stack_pointer);
  /// Goes on behind a call that leaves these registers as they were, a bit each.
  void call(std::uint32_t keeps, std::size_t stack_pointer, bool keeps_stack_pointer);
  /// Another way comes together with this one.
  void join(const CodeState& other);

 private:
  using Registers = std::array<Register, kMostRegisters>;
  void move_word(const Registers& before, const arch::Effects& effects);
  void forget(std::uint32_t those);

  Registers registers_;
  std::map<FramePlace, Held> kept_;  ///< by words of the frame
  unsigned bases_ = 0;               ///< how often the stack pointer was aligned
};

}  // namespace usdt::locate
