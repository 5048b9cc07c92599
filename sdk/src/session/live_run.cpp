// SPDX-License-Identifier: BSD-2-Clause
#include "session/live_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/try.hpp"
#include "sys/thread.hpp"
#include "usdt/follow.hpp"
#include "usdt/probe_file.hpp"

namespace usdt::session {

Result<void> Arrival::open() {
  event_ = sys::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) return fail(os_failure(ErrorKind::io, "eventfd", errno));
  return {};
}

void Arrival::wakes(const Tracer* tracer) {
  const std::lock_guard lock(mutex_);
  tracer_ = tracer;
}

void Arrival::wake() {
  const std::lock_guard lock(mutex_);  // the tracer does not go meanwhile
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = ::write(event_.get(), &one, sizeof(one));
  if (tracer_ != nullptr) tracer_->wake();
}

void Arrival::wait(std::chrono::milliseconds longest) {
  pollfd entry{event_.get(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(longest.count()));
  clear();
}

void Arrival::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = ::read(event_.get(), &count, sizeof(count));
}

StopToken EndTeller::start(const std::function<bool()>& over) {
  if (thread_.joinable()) return told_.get_token();
  auto thread = sys::start_thread("that waits for the end", [this, over] {
    constexpr std::chrono::milliseconds moment{20};  // the end of a trace may wait for it so long
    while (!over() && !done_) std::this_thread::sleep_for(moment);
    if (over()) told_.request_stop();
  });
  if (thread) thread_ = std::move(*thread);
  return told_.get_token();
}

void EndTeller::stop() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
  done_ = false;
}

/// A process that has ended is no reason not to trace the others.
Result<void> LiveRun::find_subjects(AnswerConsumer& told) {
  const AskedProcesses& asked = question_.processes;
  subjects_.pids = watch_.living();
  if (subjects_.pids.empty() && !asked.pids.empty())
    return fail(ErrorKind::not_found, fmt::format("no process {}", fmt::join(asked.pids, ", ")));
  for (const pid_t pid : asked.pids) {
    if (std::ranges::find(subjects_.pids, pid) == subjects_.pids.end())
      told.notice({SessionNotice::Kind::missing_process, std::to_string(pid),
                   fmt::format("no process {}: only the others are traced", pid)});
  }
  if (!asked.command.empty()) {
    auto program = TRY(find_program(asked.command[0]));
    subjects_.program = std::move(program);
  }
  return find_cgroups(told);
}

Result<void> LiveRun::find_cgroups(AnswerConsumer& told) {
  constexpr std::chrono::milliseconds moment{50};
  bool waits = false;
  const auto find = [&](const std::string& name, auto&& by) -> Result<void> {
    while (true) {
      auto found = by(name);
      if (found) {
        subjects_.cgroups.push_back(std::move(*found));
        return {};
      }
      if (!question_.following.wait || found.error().kind != ErrorKind::not_found) return fail(found.error());
      if (!std::exchange(waits, true)) {
        told.notice({SessionNotice::Kind::waiting, name, fmt::format("waiting: {}", found.error().message)});
        begin_holding();
        begin_time();
      }
      if (over()) return {};
      arrival_.wait(moment);
    }
  };
  for (const std::string& name : question_.processes.cgroups) TRY(find(name, usdt::find_cgroup));
  for (const std::string& id : question_.processes.containers) TRY(find(id, usdt::find_container));
  return {};
}

void LiveRun::begin_holding() {
  if (!std::exchange(holds_, true) && options_.before_attaching) options_.before_attaching();
}

void LiveRun::begin_time() {
  if (!question_.limits.seconds) return;
  const auto given = std::chrono::duration<double>(*question_.limits.seconds);
  end_ = (Clock::now() + std::chrono::duration_cast<Clock::duration>(given)).time_since_epoch().count();
}

bool LiveRun::over() const {
  return ended_ || stop_ || options_.stop.stop_requested() || Clock::now() >= end_of_time();
}

StopToken LiveRun::told_over() {
  return teller_.start([this] { return over(); });
}

}  // namespace usdt::session
