// SPDX-License-Identifier: BSD-2-Clause
#include "sys/task_records.hpp"

#include <time.h>

#include <cstring>

namespace usdt::sys {
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
/// PERF_RECORD_FORK and PERF_RECORD_EXIT.
struct ForkRecord {
  perf_event_header header;
  std::uint32_t pid, parent, tid, parent_tid;
  std::uint64_t time;
};

template <class T>
bool load(std::span<const std::byte> record, T& to) noexcept {
  if (record.size() < sizeof(T)) return false;
  std::memcpy(&to, record.data(), sizeof(T));
  return true;
}

std::uint64_t time_of(std::span<const std::byte> record) noexcept {
  std::uint64_t time = 0;
  if (record.size() >= sizeof(time)) std::memcpy(&time, record.last(sizeof(time)).data(), sizeof(time));
  return time;
}

std::optional<TaskRecord> parse_mapping(std::span<const std::byte> record) noexcept {
  MmapRecord map;
  if (!load(record, map) || map.inode == 0) return std::nullopt;
  const auto text = record.subspan(sizeof(map));
  std::string_view path(reinterpret_cast<const char*>(text.data()), text.size());
  path = path.substr(0, path.find('\0'));
  if (!path.starts_with('/')) return std::nullopt;
  return TaskRecord{.kind = TaskRecord::Kind::mapped,
                    .pid = static_cast<pid_t>(map.pid),
                    .time = time_of(record),
                    .start = map.start,
                    .size = map.size,
                    .offset = map.offset,
                    .major = map.major,
                    .minor = map.minor,
                    .inode = map.inode,
                    .generation = map.generation,
                    .path = path};
}

}  // namespace

perf_event_attr task_record_attributes() noexcept {
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
  return attr;
}

std::optional<TaskRecord> parse_task_record(std::span<const std::byte> record) noexcept {
  perf_event_header header;
  if (!load(record, header)) return std::nullopt;
  if (header.type == PERF_RECORD_MMAP2) return parse_mapping(record);
  if (header.type == PERF_RECORD_LOST) return TaskRecord{.kind = TaskRecord::Kind::lost, .time = time_of(record)};
  if (CommRecord comm; header.type == PERF_RECORD_COMM && load(record, comm)) {
    if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) return std::nullopt;
    return TaskRecord{.kind = TaskRecord::Kind::became, .pid = static_cast<pid_t>(comm.pid), .time = time_of(record)};
  }
  ForkRecord fork;
  if ((header.type != PERF_RECORD_FORK && header.type != PERF_RECORD_EXIT) || !load(record, fork)) return std::nullopt;
  const bool forked = header.type == PERF_RECORD_FORK;
  if (forked ? fork.pid == fork.parent : fork.pid != fork.tid) return std::nullopt;
  return TaskRecord{.kind = forked ? TaskRecord::Kind::forked : TaskRecord::Kind::ended,
                    .pid = static_cast<pid_t>(fork.pid),
                    .parent = static_cast<pid_t>(fork.parent),
                    .time = fork.time};
}

}  // namespace usdt::sys
