// SPDX-License-Identifier: BSD-2-Clause
// One instruction, and what is known of the function it is in. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include "locate/entries.hpp"
#include "locate/state.hpp"

namespace usdt::locate {

/// When an instance of a function is at its first instruction, or at another one that somebody stops at.
struct Moment {
  Moment(State& of, const Instance& at, Dwarf_Die of_instance, Dwarf_Die of_frame)
      : state(of),
        info(*of.shared),
        arch(info.files.arch),
        instance(at),
        die(of_instance),
        inside(of_frame),
        at_entry(info.entry_of(inside) == at.pc) {}

  State& state;
  DebugState& info;
  const arch::Arch& arch;
  const Instance& instance;
  Dwarf_Die die;                ///< of the instance
  Dwarf_Die inside;             ///< of the function whose frame it has
  bool at_entry;                ///< of that function: its prologue has not run
  bool wants_arguments = true;  ///< what was passed is asked for, not what variables have become
};

}  // namespace usdt::locate
