// SPDX-License-Identifier: BSD-2-Clause
// Functions of scripts among the native ones that ran them. Private to stack/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stack/walk.hpp"
#include "usdt/bpf/event.h"
#include "usdt/stack.hpp"

namespace usdt::stack {

/// One place of a stack: a native function, or functions of scripts in place of the interpreter's loop that ran them.
struct Place {
  const Step* step = nullptr;  ///< native, or an issue of the walk; null: what follows
  std::span<const usdt_script_frame> scripts = {};
  FrameIssue issue = FrameIssue::none;  ///< not none: what is to be said here
};

/// Puts them in one order, innermost first. Each call of the loop has its activation within its frame on the native
/// stack, so that functions of a script are put where that is, and nowhere else: those of which it is not known come
/// last, behind what says so.
[[nodiscard]] std::vector<Place> place_scripts(const Walked& walked, std::span<const usdt_script_frame> scripts);

/// Does so where activations leave no mark (PHP): `is_loop` tells which steps are calls of the loop. They are as many
/// as activations on a whole stack; else it is not known which is whose, and functions of scripts come last.
[[nodiscard]] std::vector<Place> place_by_loops(const Walked& walked, std::span<const usdt_script_frame> scripts,
                                                const std::function<bool(const Step&)>& is_loop);

/// Does so where each function has a frame of its own elsewhere (Ruby): the loop has the address of the one that it
/// runs in the first register of Step::kept, and the next instruction in the second. Those that it calls may have both,
/// too.
[[nodiscard]] std::vector<Place> place_by_registers(const Walked& walked, std::span<const usdt_script_frame> scripts);

}  // namespace usdt::stack
