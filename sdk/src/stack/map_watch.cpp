// SPDX-License-Identifier: BSD-2-Clause
#include "stack/map_watch.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "sys/kernel_counter.hpp"
#include "sys/syscalls.hpp"

namespace usdt::stack {
namespace {

/// The records of perf_event_open(2), as far as they are looked at. Each ends in the time, as asked for by sample_type.
struct MmapRecord {
  perf_event_header header;
  std::uint32_t pid, tid;
  std::uint64_t start, size, offset;
  std::uint32_t major, minor;
  std::uint64_t inode, generation;
  std::uint32_t protection, flags;
};
struct CommRecord {
  perf_event_header header;
  std::uint32_t pid, tid;
};
struct ForkRecord {
  perf_event_header header;
  std::uint32_t pid, parent, tid, parent_tid;
  std::uint64_t time;
};

template <class T>
bool load(std::span<const std::byte> record, T& to) {
  if (record.size() < sizeof(T)) return false;
  std::memcpy(&to, record.data(), sizeof(T));
  return true;
}

std::uint64_t time_of(std::span<const std::byte> record) {
  std::uint64_t time = 0;
  if (record.size() >= sizeof(time)) std::memcpy(&time, record.last(sizeof(time)).data(), sizeof(time));
  return time;
}

perf_event_attr attributes() {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.write_backward = 1;  // 4.7
  return attr;
}

}  // namespace

void MapWatch::Unmap::operator()(void* ring) const noexcept { ::munmap(ring, size); }

Result<MapWatch> MapWatch::start() {
  MapWatch watch;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < processors; ++cpu) {
    perf_event_attr attr = attributes();
    const int event = sys::syscalls().perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (event == -ENODEV) continue;  // it is offline
    if (event < 0) return fail(os_failure(ErrorKind::io, "watch what processes map", -event));
    Ring& ring = watch.rings_.emplace_back();
    ring.event.reset(event);
    void* memory = ::mmap(nullptr, page + ring_bytes, PROT_READ, MAP_SHARED, event, 0);
    if (memory == MAP_FAILED) return fail(os_failure(ErrorKind::limit, "watch what processes map", errno));
    ring.memory = {memory, Unmap{page + ring_bytes}};
  }
  return watch;
}

void MapWatch::take() {
  for (Ring& ring : rings_) take(ring);
}

void MapWatch::take(Ring& ring) {
  const auto* page = static_cast<const perf_event_mmap_page*>(ring.memory.get());
  const auto newest = [page] { return sys::load_kernel_counter(page->data_head); };
  if (newest() == ring.read) return;
  // What is overwritten while it is read would be no record.
  if (::ioctl(ring.event.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, 1) != 0) return;
  const std::uint64_t from = newest();
  const auto* data = reinterpret_cast<const std::byte*>(page) + ::sysconf(_SC_PAGESIZE);
  const std::uint64_t all = std::min<std::uint64_t>(ring.read - from, ring_bytes);
  std::vector<std::byte> bytes(all);
  for (std::uint64_t i = 0; i < all; ++i) bytes[i] = data[(from + i) % ring_bytes];
  ring.read = from;
  ::ioctl(ring.event.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
  for (std::span<const std::byte> rest(bytes); rest.size() >= sizeof(perf_event_header);) {
    perf_event_header header;
    load(rest, header);
    if (header.size < sizeof(header) || header.size > rest.size()) break;  // the oldest one, overwritten in part
    add(rest.first(header.size));
    rest = rest.subspan(header.size);
  }
}

void MapWatch::add(std::span<const std::byte> record) {
  perf_event_header header;
  if (!load(record, header)) return;
  if (MmapRecord map; header.type == PERF_RECORD_MMAP2 && load(record, map)) {
    const auto text = record.subspan(sizeof(map));
    const std::string_view path(reinterpret_cast<const char*>(text.data()), text.size());
    if (map.inode == 0 || !path.starts_with('/')) return;
    add(static_cast<pid_t>(map.pid), {.time = time_of(record),
                                      .mapping = {.start = ProcessAddr(map.start),
                                                  .end = ProcessAddr(map.start + map.size),
                                                  .executable = true,
                                                  .offset = map.offset,
                                                  .major = map.major,
                                                  .minor = map.minor,
                                                  .inode = map.inode,
                                                  .path = std::string(path.substr(0, path.find('\0')))}});
  } else if (CommRecord comm; header.type == PERF_RECORD_COMM && load(record, comm)) {
    if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
      add(static_cast<pid_t>(comm.pid), {.time = time_of(record), .mapping = {}});
  } else if (ForkRecord fork; header.type == PERF_RECORD_FORK && load(record, fork)) {
    if (fork.pid != fork.parent)  // a thread otherwise
      add(static_cast<pid_t>(fork.pid), {.time = fork.time, .parent = static_cast<pid_t>(fork.parent), .mapping = {}});
  }
}

void MapWatch::add(pid_t pid, Change change) {
  if (!changes_.contains(pid) && changes_.size() >= most_processes) forget_half();
  auto& all = changes_[pid];
  if (all.size() >= most_changes) all.erase(all.begin(), all.begin() + most_changes / 2);
  // Each processor has a ring: they are read one after the other, newest record first.
  all.insert(std::ranges::upper_bound(all, change.time, {}, &Change::time), std::move(change));
}

/// Those of which nothing was heard for longest.
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
