// SPDX-License-Identifier: BSD-2-Clause
// Events of the tasks of all processors, in the order of their times. Private to follow/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sys/task_record_ring.hpp"
#include "sys/task_records.hpp"
#include "usdt/result.hpp"

namespace usdt::follow {

/// A record that owns its path.
struct TaskEvent : sys::TaskRecord {
  explicit TaskEvent(const sys::TaskRecord& record) : sys::TaskRecord(record), own_path(record.path) { path = {}; }
  std::string own_path;
  bool is_program = false;  ///< mapped: the first thing a process maps that became another program
};

/// perf events of every processor (perf_event_open(2)). A ring that is full loses what comes, and says so.
class TaskRings {
 public:
  /// Errors: those of perf_event_open(2).
  [[nodiscard]] static Result<TaskRings> open();

  /// Readable when something was recorded.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Takes the events recorded up to now, by time. Events that another processor may still have earlier ones for are
  /// kept for the next call; `more`: there are some.
  [[nodiscard]] std::vector<TaskEvent> take(bool& more);

 private:
  void read(const sys::TaskRecordRing& ring);

  std::vector<sys::TaskRecordRing> rings_;
  std::vector<TaskEvent> waiting_;
};

}  // namespace usdt::follow
