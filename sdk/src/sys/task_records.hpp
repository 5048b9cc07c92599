// SPDX-License-Identifier: BSD-2-Clause
// Records of perf_event_open(2) about tasks: files mapped as code, programs begun, forks, ends.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace usdt::sys {

struct TaskRecord {
  enum class Kind : std::uint8_t {
    mapped,  ///< PERF_RECORD_MMAP2: a file, executable
    became,  ///< PERF_RECORD_COMM of an execve(2)
    forked,  ///< PERF_RECORD_FORK of a process, not of a thread
    ended,   ///< PERF_RECORD_EXIT of a process's first thread
    lost,    ///< PERF_RECORD_LOST: there was no room for some
  };
  Kind kind = Kind::lost;
  pid_t pid = 0;           ///< the process, in the pid namespace of who opened the event
  pid_t parent = 0;        ///< forked
  std::uint64_t time = 0;  ///< CLOCK_MONOTONIC, ns
  std::uint64_t start = 0, size = 0, offset = 0;
  std::uint32_t major = 0, minor = 0;
  std::uint64_t inode = 0, generation = 0;
  std::string_view path = {};  ///< mapped: as /proc/PID/maps has it; valid as long as the record
};

/// Attributes of an event that records these and nothing else, with times of CLOCK_MONOTONIC.
[[nodiscard]] perf_event_attr task_record_attributes() noexcept;

/// One record of such an event's ring; nothing: another one, of a thread, or of a mapping that is no file.
[[nodiscard]] std::optional<TaskRecord> parse_task_record(std::span<const std::byte> record) noexcept;

}  // namespace usdt::sys
