// SPDX-License-Identifier: BSD-2-Clause
#include "follow/task_rings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/try.hpp"
#include "follow/clock.hpp"
#include "sys/kernel_counter.hpp"
#include "sys/syscalls.hpp"

namespace usdt::follow {

Result<TaskRings> TaskRings::open() {
  perf_event_attr attr = sys::task_record_attributes();
  attr.watermark = 1;  // each record wakes
  attr.wakeup_watermark = 1;
  auto rings = TRY(sys::open_task_record_rings(attr, PROT_READ | PROT_WRITE));
  TaskRings all;
  all.rings_ = std::move(rings);
  return all;
}

std::vector<int> TaskRings::descriptors() const {
  std::vector<int> all;
  for (const sys::TaskRecordRing& ring : rings_) all.push_back(ring.event.get());
  return all;
}

void TaskRings::read(const sys::TaskRecordRing& ring) {
  auto* page = static_cast<perf_event_mmap_page*>(ring.memory.get());
  const auto* data = static_cast<const std::byte*>(ring.memory.get()) + ::sysconf(_SC_PAGESIZE);
  const std::uint64_t head = sys::load_kernel_counter(page->data_head);
  std::uint64_t tail = page->data_tail;
  std::vector<std::byte> record;
  while (tail < head) {
    perf_event_header header;
    record.resize(sizeof(header));
    const auto copy = [&](std::size_t from) {
      for (std::size_t i = from; i < record.size(); ++i) record[i] = data[(tail + i) % sys::TaskRecordRing::bytes];
    };
    copy(0);
    std::memcpy(&header, record.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) break;
    record.resize(header.size);
    copy(sizeof(header));
    if (const auto told = sys::parse_task_record(record)) waiting_.emplace_back(*told);
    tail += header.size;
  }
  sys::store_kernel_counter(page->data_tail, head);
}

std::vector<TaskEvent> TaskRings::take(bool& more) {
  // An event after this moment may have an earlier one in a ring that was read already.
  const std::uint64_t until = now();
  for (const sys::TaskRecordRing& ring : rings_) read(ring);
  std::ranges::stable_sort(waiting_, {}, &TaskEvent::time);
  const auto later = std::ranges::upper_bound(waiting_, until, {}, &TaskEvent::time);
  std::vector<TaskEvent> out(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(later));
  waiting_.erase(waiting_.begin(), later);
  more = !waiting_.empty();
  return out;
}

}  // namespace usdt::follow
