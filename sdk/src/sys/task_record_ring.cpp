// SPDX-License-Identifier: BSD-2-Clause
#include "sys/task_record_ring.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "sys/syscalls.hpp"

namespace usdt::sys {

void TaskRecordRing::Unmap::operator()(void* ring) const noexcept { ::munmap(ring, size); }

Result<std::vector<TaskRecordRing>> open_task_record_rings(perf_event_attr attr, int protection) {
  std::vector<TaskRecordRing> rings;
  const std::size_t size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + TaskRecordRing::bytes;
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < processors; ++cpu) {
    const int event = syscalls().perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (event == -ENODEV) continue;  // it is offline
    if (event < 0) return fail(os_failure(ErrorKind::io, "watch what processes map", -event));
    TaskRecordRing& ring = rings.emplace_back();
    ring.event.reset(event);
    void* memory = ::mmap(nullptr, size, protection, MAP_SHARED, event, 0);
    if (memory == MAP_FAILED) return fail(os_failure(ErrorKind::limit, "watch what processes map", errno));
    ring.memory = {memory, TaskRecordRing::Unmap{size}};
  }
  return rings;
}

}  // namespace usdt::sys
