// SPDX-License-Identifier: BSD-2-Clause
// From a frame to its caller's, by what a file says of its frames: .eh_frame and .debug_frame.
//
// Sources: DWARF 5, section 6.4; the psABIs of the machines for what is not said.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"

namespace usdt::locate {

/// Registers of one frame by DWARF number; those that are not known have no value.
struct FrameRegisters {
  static constexpr std::size_t most = 33;
  std::array<std::optional<std::uint64_t>, most> values;
  std::uint64_t pc = 0;
};

/// The outcome of a step to the caller's frame.
enum class FrameStep : std::uint8_t {
  taken,
  outermost,   ///< the function has no caller, it says
  no_rule,     ///< nothing is said of this address
  lost_value,  ///< a register or memory that is needed is not known
};

/// The rules of one file. Move-only; one thread at a time.
class CallFrames {
 public:
  /// Errors: those of opening debug information; a file without rules is none.
  [[nodiscard]] static Result<CallFrames> open(const ElfFile& file);
  CallFrames(CallFrames&&) noexcept;
  CallFrames& operator=(CallFrames&&) noexcept;
  ~CallFrames();

  /// The `size` bytes (1 to 8) at an address of the process as a number; nothing: not known.
  using Memory = std::function<std::optional<std::uint64_t>(std::uint64_t address, unsigned size)>;
  /// Makes `registers` those of the caller. `at`: where the rules are looked up. `signal`: becomes whether the frame is
  /// one that a signal made, so that what it returns to is no return address.
  [[nodiscard]] FrameStep step(VirtAddr at, FrameRegisters& registers, const Memory& memory, bool& signal);
  /// The register that the frame's address is counted from at `at`; nothing: there is no rule, or another kind of one.
  [[nodiscard]] std::optional<unsigned> base_at(VirtAddr at);
  /// Whether the function at `at` says that it has no caller.
  [[nodiscard]] bool is_outermost(VirtAddr at);

 private:
  struct Impl;
  explicit CallFrames(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt::locate
