// SPDX-License-Identifier: BSD-2-Clause
// From a recorded stack to the addresses on it. Private to stack/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "stack/process.hpp"
#include "stack/script_names.hpp"
#include "usdt/event.hpp"
#include "usdt/machine.hpp"
#include "usdt/table.hpp"

namespace usdt::stack {

/// One frame, or what is to be said between two.
struct Step {
  std::uint64_t address = 0;
  bool return_address = false;
  bool signal = false;                     ///< the code that a signal handler returns to: nobody called it
  bool resumed = false;                    ///< nobody called it, either: V8 made the frame of code that it gave up
  FrameIssue issue = FrameIssue::none;     ///< not none: this is no frame
  std::uint64_t stack = 0;                 ///< where the function's frame begins on the stack; 0: not known
  std::array<std::uint64_t, 2> kept = {};  ///< Hit::kept, as the function has them; 0: not known

  /// Returns the address to look up: a return address is behind its call, perhaps already in the next function.
  [[nodiscard]] std::uint64_t lookup() const noexcept {
    return return_address && !signal && !resumed ? address - 1 : address;
  }
};

struct Walked {
  std::vector<Step> steps;
  FrameIssue end = FrameIssue::none;
};

/// The moment of a hit, as its record tells.
struct Hit {
  Machine machine = {};
  bool returns = false;                    ///< a function has returned: the hit's address is the one it returned to
  bool at_entry = false;                   ///< at the first instruction of a function
  bool on_return = false;                  ///< at the instruction that returns: all but that was undone
  std::optional<KeptRegisters> kept = {};  ///< registers whose values each step tells
  Period when = {};
};

/// The stack, innermost first, at most layout.user_stack_depth frames.
[[nodiscard]] Walked walk_stack(Process& process, const RecordedStack& stack, const EventLayout& layout,
                                const Hit& hit);

/// The same of a chain of frame pointers and nothing else: a key of a table. `adds_caller`: the kernel does, at the
/// first instruction of functions that begin as compilers write them.
[[nodiscard]] Walked walk_chain(Process& process, const TableStack& stack, const Hit& hit, bool adds_caller);

}  // namespace usdt::stack
