// SPDX-License-Identifier: BSD-2-Clause
// Tells the stock program where the threads of processes have their thread context (usdt/bpf/thread_context.h). Private
// to event/.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "event/expected_process.hpp"
#include "find/thread_variable.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/bpf/thread_context.h"
#include "usdt/bpf_object.hpp"
#include "usdt/event.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Looks at processes, each when it is first seen and when it may have changed since. One thread at a time.
class ContextPlaces {
 public:
  /// The places of more processes than this are not kept: the kernel has room for so many.
  static constexpr std::uint32_t kMost = 16384;
  /// The stock program's map.
  static constexpr const char* kMap = "usdt_context_places";

  /// Makes room in the program's map. Before the load. Errors: as set_max_entries().
  [[nodiscard]] static Result<void> size(BpfObject& object);
  /// The map of a loaded object. Errors: io.
  [[nodiscard]] static Result<ContextPlaces> open(const LoadedObject& object);

  /// Looks at these processes; at all there are, for at most a second, where none are named.
  void look_at(const std::vector<pid_t>& named);
  /// Looks at a process that has just begun, as a command has, at each call for some seconds or until it is known.
  void expect(pid_t pid);
  /// Looks at the process of an event, if it was not looked at, or there was no place for it; unless that was just
  /// done.
  void look_again(const Event& event);

 private:
  struct Seen {
    std::chrono::steady_clock::time_point at = {};
    std::uint64_t key = 0;  ///< in the map
  };
  explicit ContextPlaces(sys::UniqueFd map) : map_(std::move(map)), finder_(USDT_CONTEXT_VARIABLE) {}
  /// False: it has no context by now.
  bool look(pid_t pid);
  void forget_ended();

  sys::UniqueFd map_;
  find::ThreadVariableFinder finder_;
  ExpectedProcess expected_;
  std::map<pid_t, Seen> seen_;
};

}  // namespace usdt::event
