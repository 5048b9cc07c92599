// SPDX-License-Identifier: BSD-2-Clause
// Signals to a trace: the first one that asks for an end ends it in order.
#pragma once

#include "usdt/session.hpp"

namespace usdt_trace {

/// Undoes what whoever started the tool has set for all its children, and would stand in the way: SIGCHLD that is
/// ignored, so that nobody hears how the command ends, and blocked signals that ask for an end. Called first of all;
/// the command has it all back.
void take_inherited_signals();
/// From here on writing to nobody, or beyond the size limit of files, is an error instead of a signal.
void ignore_write_signals();
/// From here on SIGINT, SIGTERM and SIGHUP ask for an end; another one, a tenth of a second later or more, ends the
/// tool at once (the kernel then drops its links). To be called when there is something to detach: until then, while
/// files are read and planned for, the first one ends the program, however long somebody else's file makes that; a
/// command held back until then ends with us.
void catch_signals();
/// Signals that ask for an end ask that session, too, as long as this lives: one at a time.
class EndsBySignal {
 public:
  explicit EndsBySignal(usdt::Session& session);
  ~EndsBySignal();
  EndsBySignal(const EndsBySignal&) = delete;
  EndsBySignal& operator=(const EndsBySignal&) = delete;
};
/// From here on SIGUSR1 asks for an end, however often it comes.
void catch_dump_signal();
/// From here on no terminal stops the tool (Ctrl-Z): it holds programs, which nobody else lets go on.
void ignore_stop_signals();
/// Returns true once a signal has asked for an end.
[[nodiscard]] bool end_asked_for() noexcept;
/// Restores signals in a child before exec, as these functions found them, ignored and blocked ones included.
/// Async-signal-safe.
void restore_signals() noexcept;

}  // namespace usdt_trace
