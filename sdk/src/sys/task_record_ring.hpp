// SPDX-License-Identifier: BSD-2-Clause
// Rings of perf_event_open(2) with records of tasks, one for each processor.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::sys {

/// The ring of one processor: a page that describes it (struct perf_event_mmap_page), and `bytes` of records.
struct TaskRecordRing {
  static constexpr std::size_t bytes = 256 << 10;
  struct Unmap {
    std::size_t size;
    void operator()(void* ring) const noexcept;
  };
  UniqueFd event;
  std::unique_ptr<void, Unmap> memory;
};

/// Opens the rings of all processors that are online, with events of attributes `attr`. `protection`: that of mmap(2).
/// Errors: io (those of perf_event_open(2)), limit (they cannot be mapped).
[[nodiscard]] Result<std::vector<TaskRecordRing>> open_task_record_rings(perf_event_attr attr, int protection);

}  // namespace usdt::sys
