// SPDX-License-Identifier: BSD-2-Clause
// What BPF programs know of the interpreters that processes run. Private to event/.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "event/expected_process.hpp"
#include "event/look_budget.hpp"
#include "find/thread_variable.hpp"
#include "interpreter/find.hpp"
#include "usdt/bpf/interpreter.h"
#include "usdt/bpf_object.hpp"
#include "usdt/event.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Tells the programs of a trace where a process has its interpreter. A process is looked at before the trace begins,
/// if it is known then, or at its first event: hits until then have no functions of scripts (USDT_SCRIPT_NONE).
class Interpreters {
 public:
  /// Processes with an interpreter at a time.
  static constexpr std::uint32_t most = 4096;

  /// Fills nothing in: scripts are not followed.
  Interpreters() = default;
  /// Fills the map of `object`.
  [[nodiscard]] static Result<Interpreters> of(const LoadedObject& object);

  /// Looks at a process. False: it runs no interpreter by now whose functions can be followed.
  bool look_at(pid_t pid);
  /// Looks at a process that has just begun, as a command has, at each call for some seconds or until it is known: it
  /// executes its program soon, perhaps before its first event.
  void expect(pid_t pid);
  /// How long nobody need call that, at most `longest`.
  [[nodiscard]] std::chrono::milliseconds until_due(std::chrono::milliseconds longest) const {
    return map_ < 0 ? longest : expected_.until_due(longest);
  }
  /// Looks at the process of an event, unless it is known. One that runs no interpreter is looked at again and again,
  /// more and more seldom: it may become another program.
  void see(const Event& event);
  /// Returns interpreters that were found since the last call and whose frames cannot be followed: why, in a sentence.
  [[nodiscard]] std::vector<std::string> take_unknown();

 private:
  struct Seen {
    std::uint64_t next = 0;   ///< when it is looked at again, ns
    std::uint64_t pause = 0;  ///< from the last time until then
  };

  /// Adds where the threads of a process have what leads to their functions. Errors: as ThreadVariableFinder::find().
  [[nodiscard]] Result<void> add_variable(pid_t pid, interpreter::Found& found);
  void say_unknown(pid_t pid, const std::string& interpreter, std::string_view why);
  void put(std::uint32_t pid, const usdt_interpreter& walk);
  void forget_ended();

  int map_ = -1;
  ExpectedProcess expected_;
  LookBudget budget_;
  find::ThreadVariableFinder ruby_variable_{interpreter::kRubyVariable, interpreter::kRubyMark};
  std::unordered_map<std::uint32_t, Seen> seen_;
  std::vector<std::string> unknown_;
  std::vector<std::string> told_;
};

}  // namespace usdt::event
