// SPDX-License-Identifier: BSD-2-Clause
// Code mappings of processes, told by the kernel as they are made: for processes that end before /proc is read. Private
// to stack/.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "proc/maps.hpp"
#include "sys/task_record_ring.hpp"
#include "usdt/result.hpp"

namespace usdt::stack {

/// The mappings of one process at one time.
struct MapHistory {
  std::vector<proc::Mapping> mappings;  ///< the later ones of one place are the ones that count
  pid_t parent = 0;                     ///< it has besides what this process had mapped; 0: nobody's, or not known
};

/// perf events of every processor (perf_event_open(2): PERF_RECORD_MMAP2, COMM, FORK), in rings that keep what is
/// newest.
class MapWatch {
 public:
  /// Opens the events. Errors: those of perf_event_open(2); CAP_PERFMON is wanted where sysctl
  /// kernel.perf_event_paranoid is above 0.
  [[nodiscard]] static Result<MapWatch> start();

  /// Returns the mappings of `pid` at `time` (CLOCK_MONOTONIC, ns), as far as they were seen.
  [[nodiscard]] MapHistory at(pid_t pid, std::uint64_t time);

  /// Adds one record of a ring, with the fields that follow its header. Public for tests.
  void add(std::span<const std::byte> record);

 private:
  static constexpr std::size_t most_processes = 4096;
  static constexpr std::size_t most_changes = 4096;  ///< of one process

  struct Ring : sys::TaskRecordRing {
    std::uint64_t read = 0;  ///< where the last reading began: the kernel writes downwards
  };
  /// Something that became of a process. No path: it was forked from `parent`, or (0) became another program.
  struct Change {
    std::uint64_t time = 0;
    pid_t parent = 0;
    proc::Mapping mapping = {};
  };

  void take();
  void take(Ring& ring);
  void add(pid_t pid, Change change);
  void forget_half();

  std::vector<Ring> rings_;
  std::map<pid_t, std::vector<Change>> changes_;  ///< by time
};

}  // namespace usdt::stack
