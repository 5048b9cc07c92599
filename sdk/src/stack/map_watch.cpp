// SPDX-License-Identifier: BSD-2-Clause
#include "stack/map_watch.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/try.hpp"
#include "sys/kernel_counter.hpp"
#include "sys/syscalls.hpp"
#include "sys/task_records.hpp"

namespace usdt::stack {

Result<MapWatch> MapWatch::start() {
  perf_event_attr attr = sys::task_record_attributes();
  attr.write_backward = 1;  // 4.7: what is newest is kept
  auto rings = TRY(sys::open_task_record_rings(attr, PROT_READ));
  MapWatch watch;
  for (sys::TaskRecordRing& ring : rings) watch.rings_.push_back({{std::move(ring)}});
  return watch;
}

void MapWatch::take() {
  for (Ring& ring : rings_) take(ring);
}

void MapWatch::take(Ring& ring) {
  const auto* page = static_cast<const perf_event_mmap_page*>(ring.memory.get());
  const auto newest = [page] { return sys::load_kernel_counter(page->data_head); };
  if (newest() == ring.read) return;
  // A record that is overwritten while it is read would be useless: the ring is paused.
  if (::ioctl(ring.event.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, 1) != 0) return;
  const std::uint64_t from = newest();
  const auto* data = reinterpret_cast<const std::byte*>(page) + ::sysconf(_SC_PAGESIZE);
  const std::uint64_t all = std::min<std::uint64_t>(ring.read - from, Ring::bytes);
  std::vector<std::byte> bytes(all);
  for (std::uint64_t i = 0; i < all; ++i) bytes[i] = data[(from + i) % Ring::bytes];
  ring.read = from;
  ::ioctl(ring.event.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
  for (std::span<const std::byte> rest(bytes); rest.size() >= sizeof(perf_event_header);) {
    perf_event_header header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > rest.size()) break;  // the oldest one, overwritten in part
    add(rest.first(header.size));
    rest = rest.subspan(header.size);
  }
}

void MapWatch::add(std::span<const std::byte> record) {
  const auto told = sys::parse_task_record(record);
  if (!told) return;
  if (told->kind == sys::TaskRecord::Kind::mapped) {
    add(told->pid, {.time = told->time,
                    .mapping = {.start = ProcessAddr(told->start),
                                .end = ProcessAddr(told->start + told->size),
                                .executable = true,
                                .offset = told->offset,
                                .major = told->major,
                                .minor = told->minor,
                                .inode = told->inode,
                                .path = std::string(told->path)}});
  } else if (told->kind == sys::TaskRecord::Kind::became) {
    add(told->pid, {.time = told->time, .mapping = {}});
  } else if (told->kind == sys::TaskRecord::Kind::forked) {
    add(told->pid, {.time = told->time, .parent = told->parent, .mapping = {}});
  }
}

void MapWatch::add(pid_t pid, Change change) {
  if (!changes_.contains(pid) && changes_.size() >= most_processes) forget_half();
  auto& all = changes_[pid];
  if (all.size() >= most_changes) all.erase(all.begin(), all.begin() + most_changes / 2);
  // Each processor has a ring: they are read one after the other, newest record first.
  all.insert(std::ranges::upper_bound(all, change.time, {}, &Change::time), std::move(change));
}

/// Forgets the processes whose last record is oldest.
void MapWatch::forget_half() {
  std::vector<std::uint64_t> heard;
  for (const auto& [pid, all] : changes_) heard.push_back(all.back().time);
  const auto middle = heard.begin() + static_cast<std::ptrdiff_t>(heard.size() / 2);
  std::nth_element(heard.begin(), middle, heard.end());
  std::erase_if(changes_, [&](const auto& each) { return each.second.back().time <= *middle; });
}

MapHistory MapWatch::at(pid_t pid, std::uint64_t time) {
  take();
  MapHistory history;
  const auto found = changes_.find(pid);
  if (found == changes_.end()) return history;
  for (const Change& change : found->second) {
    if (change.time > time) break;
    if (change.mapping.path.empty()) {
      history = {.mappings = {}, .parent = change.parent};
    } else {
      history.mappings.push_back(change.mapping);
    }
  }
  return history;
}

}  // namespace usdt::stack
