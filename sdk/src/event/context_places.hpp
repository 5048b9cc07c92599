// SPDX-License-Identifier: BSD-2-Clause
// Tells the stock program where the threads of processes have their thread context (usdt/bpf/thread_context.h). Private
// to event/.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "event/expected_process.hpp"
#include "event/look_budget.hpp"
#include "find/thread_variable.hpp"
#include "proc/process_context.hpp"
#include "proc/process_image.hpp"
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
  /// Processes that a question may wait for at once.
  static constexpr std::uint32_t kMostWanted = 256;
  /// The stock program's maps.
  static constexpr const char* kMap = "usdt_context_places";
  static constexpr const char* kWanted = "usdt_context_wanted";

  /// Asks the kernel for what the program needs. Errors: not_supported.
  [[nodiscard]] static Result<void> check_kernel();
  /// Makes room in the program's maps. Before the load. Errors: as set_max_entries().
  [[nodiscard]] static Result<void> size(BpfObject& object);
  /// The maps of a loaded object. With `attributes` it is also known what processes call those of their threads.
  /// Errors: io.
  [[nodiscard]] static Result<ContextPlaces> open(const LoadedObject& object, bool attributes);

  /// Looks at these processes; at all there are, for at most a second, where none are named.
  void look_at(const std::vector<pid_t>& named);
  /// Looks at a process that has just begun, as a command has, at each call for some seconds or until it is known.
  void expect(pid_t pid);
  /// How long nobody need call that, at most `longest`.
  [[nodiscard]] std::chrono::milliseconds until_due(std::chrono::milliseconds longest) const {
    return expected_.until_due(longest);
  }
  /// Looks at processes that questions were asked about which had no answer, since there was no place for them; at some
  /// of them, where that takes long, and not at more than takes a part of the time.
  void look_at_wanted();
  /// Looks at the process of an event, if it was not looked at, or there was no place for it; unless that was just
  /// done.
  void look_again(const Event& event);
  /// Gives the attributes of an event, if it has any, the names that they have in its process, valid until the next
  /// call. Looks at the process again where it has published those anew.
  void name_attributes(Event& event) {
    if (event.layout().attributes) event.name_attributes(keys_of(event));
  }

 private:
  struct Seen {
    std::chrono::steady_clock::time_point at = {};
    std::chrono::steady_clock::duration pause = {};  ///< until it may be looked at again
    std::uint64_t key = 0;                           ///< in the map
    std::uint64_t number = 0;                        ///< in named_
  };
  /// What one execution of a program calls its attributes. Names are added, and none is ever another's (OTEP 4947).
  struct Named {
    static constexpr std::size_t kMostPublished = 64;

    pid_t pid = 0;
    proc::ProcessImage image = {};
    ProcessAddr page = ProcessAddr(0);  ///< 0: not known
    /// When those were published that were read, the last ones of them. What a process published in between, and took
    /// back, is not taken for these.
    std::vector<std::uint64_t> published = {};
    std::uint64_t read_at = 0;  ///< when the last ones were, on event_clock()
    bool was_other = false;     ///< a name was taken away
    std::shared_ptr<const AttributeKeys> keys = std::make_shared<const AttributeKeys>();

    [[nodiscard]] bool is_of(const proc::ProcessImage& other) const noexcept;
    [[nodiscard]] bool has_read(std::uint64_t published_at) const noexcept;
    void take(Result<proc::PublishedContext> read, std::uint64_t now);
  };
  ContextPlaces(sys::UniqueFd map, sys::UniqueFd wanted, bool attributes);
  [[nodiscard]] const std::shared_ptr<const AttributeKeys>& keys_of(const Event& event);
  /// False: it has no context by now.
  bool look(pid_t pid);
  bool look(pid_t pid, Seen& seen);
  /// Whether it was not looked at just now, and there is time for it.
  [[nodiscard]] bool is_due(pid_t pid);
  /// Returns where its header was; 0: that is not known.
  [[nodiscard]] ProcessAddr page_of(const Seen& seen, const proc::ProcessImage& image) const;
  /// Returns what is known of a process, perhaps nothing yet.
  Named& named(Seen& seen, pid_t pid, const proc::ProcessImage& image);
  void forget_ended();

  sys::UniqueFd map_;
  sys::UniqueFd wanted_;
  bool attributes_;
  find::ThreadVariableFinder finder_;
  ExpectedProcess expected_;
  LookBudget budget_;
  std::map<pid_t, Seen> seen_;
  std::map<std::uint64_t, Named> named_;  ///< by usdt_context_place::number
  std::uint64_t last_number_ = 0;
  std::shared_ptr<const AttributeKeys> unknown_;  ///< the names of processes that were not looked at
};

}  // namespace usdt::event
