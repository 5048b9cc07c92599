// SPDX-License-Identifier: BSD-2-Clause
#include "event/thread_ends.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "event/kernel_offsets.hpp"
#include "event/stock_objects.hpp"
#include "program/object_copy.hpp"
#include "sys/blocked_signals.hpp"
#include "sys/pid_namespace.hpp"
#include "sys/read.hpp"
#include "usdt/bpf/constants.h"

namespace usdt::event {
namespace {

/// When a thread of that number began, ns since the machine was booted; nothing: there is none. (proc_pid_stat(5))
std::optional<std::uint64_t> start_of(std::uint32_t tid) {
  const auto text = sys::read_text(fmt::format("/proc/{}/stat", tid), 4096);
  if (!text) return std::nullopt;
  constexpr int before = 19;  // fields between the name, which may have any character, and the start
  std::size_t at = text->rfind(')');
  for (int field = 0; field <= before && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  std::uint64_t ticks = 0;
  if (at == std::string::npos ||
      std::from_chars(text->data() + at + 1, text->data() + text->size(), ticks).ec != std::errc())
    return std::nullopt;
  return ticks * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

/// By how much CLOCK_BOOTTIME, which goes on while the machine sleeps, is ahead of CLOCK_MONOTONIC.
std::uint64_t slept() {
  timespec boot{}, monotonic{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  const auto ns = [](const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ns(boot) - ns(monotonic), 0));
}

Result<void> set_namespace(const backends::ObjectCopy& object) {
  const auto nested = TRY(sys::nested_pid_namespace());
  if (!nested) return {};
  usdt_kernel_constants constants{};
  constants.pidns_dev = nested->device;
  constants.pidns_ino = nested->inode;
  return object.set_constant("usdt_kernel_constants", constants);
}

/// Whether there is no thread of that number that began before `time`.
bool is_gone_since(std::uint32_t tid, std::uint64_t time) {
  if (tid == 0) return false;
  const auto start = start_of(tid);
  return !start || *start > time + slept();
}

}  // namespace

Result<ThreadEnds> ThreadEnds::start() {
  auto object = TRY(backends::ObjectCopy::open(ends_programs(), "usdt_ends"));
  TRY(set_namespace(object));
  TRY(object.set_constant("usdt_thread_ends_constants", find_ends()));
  const sys::BlockedSignals blocked;  // as ObjectCopy::load()
  if (const int error = bpf_object__load(object.get()))
    return fail(os_failure(ErrorKind::io, "load the programs that see threads end", -error));
  ThreadEnds out;
  out.ends_ = sys::UniqueFd(::fcntl(bpf_map__fd(object.map("usdt_ends")), F_DUPFD_CLOEXEC, 0));
  if (!out.ends_) return fail(os_failure(ErrorKind::io, "keep the map of threads that end", errno));
  constexpr std::array<std::pair<const char*, const char*>, 2> programs = {
      {{"usdt_on_exit", "sched_process_exit"}, {"usdt_on_exec", "sched_process_exec"}}};
  for (const auto& [program, tracepoint] : programs) {
    const int fd = bpf_program__fd(bpf_object__find_program_by_name(object.get(), program));
    sys::UniqueFd link(bpf_raw_tracepoint_open(tracepoint, fd));
    if (!link) return fail(os_failure(ErrorKind::io, fmt::format("attach to {}", tracepoint), errno));
    out.links_.push_back(std::move(link));
  }
  return out;
}

bool ThreadEnds::exists(std::uint32_t pid) { return start_of(pid).has_value(); }

std::optional<usdt_thread_end> ThreadEnds::end_of(std::uint32_t tid) const {
  usdt_thread_end end{};
  if (tid == 0 || !ends_ || bpf_map_lookup_elem(ends_.get(), &tid, &end) != 0) return std::nullopt;
  return end;
}

std::optional<std::uint64_t> ThreadEnds::end_of_last_process() const {
  const auto end = end_of(last_process_);
  return end && end->ended % 2 == 1 && is_gone_since(last_process_, 0) ? std::optional(end->ended) : std::nullopt;
}

bool ThreadEnds::process_ended(const usdt_event& event) const {
  return event.pid != last_process_ && is_gone_since(event.pid, event.ts);
}

bool ThreadEnds::has_ended(const usdt_event& event, const std::optional<usdt_thread_end>& end) const {
  if (end && end->ended >= event.ts) return event.pid != last_process_ || end->ended % 2 == 0;
  return is_gone_since(event.tid, event.ts);  // /proc knows threads by their numbers, too
}

bool ThreadEnds::thread_ended(const usdt_event& event) const { return has_ended(event, end_of(event.tid)); }

bool ThreadEnds::thread_left(const usdt_event& event) const {
  const auto end = end_of(event.tid);
  return (end && end->executed >= event.ts) || has_ended(event, end);
}

}  // namespace usdt::event
