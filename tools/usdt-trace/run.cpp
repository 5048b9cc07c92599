// SPDX-License-Identifier: BSD-2-Clause
#include "run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/report.hpp"
#include "common/thread.hpp"
#include "notice.hpp"
#include "signals.hpp"

namespace usdt_trace {

void Arrival::wakes(const usdt::Tracer* tracer) {
  const std::lock_guard lock(mutex_);
  tracer_ = tracer;
}

void Arrival::wake() {
  const std::lock_guard lock(mutex_);  // the tracer does not go meanwhile
  came_ = true;
  changed_.notify_one();
  if (tracer_) tracer_->wake();
}

void Arrival::wait() {
  constexpr std::chrono::milliseconds moment{50};
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, moment, [this] { return came_; });
  came_ = false;
}

usdt::Result<void> Run::hold_command() {
  if (flags_.question.processes.command.empty()) return {};
  auto program = usdt::find_program(flags_.question.processes.command[0]);
  if (!program) return usdt::fail(program.error());
  program_ = *program;
  auto child = Child::fork(*program, flags_.question.processes.command);
  if (!child) return usdt::fail(child.error());
  child_.emplace(std::move(*child));
  return {};
}

/// A process that has ended is no reason not to trace the others.
usdt::Result<void> Run::find_subjects() {
  subjects_ = {.pids = watch_.living(), .program = program_};
  if (subjects_.pids.empty() && !flags_.question.processes.pids.empty())
    return usdt::fail(usdt::ErrorKind::not_found,
                      fmt::format("no process {}", fmt::join(flags_.question.processes.pids, ", ")));
  for (const pid_t pid : flags_.question.processes.pids) {
    if (std::ranges::find(subjects_.pids, pid) == subjects_.pids.end())
      usdt::tools::print_notice("usdt-trace", fmt::format("no process {}: only the others are traced", pid));
  }
  return find_cgroups();
}

/// Of --cgroup and --container; with --wait when there are such.
usdt::Result<void> Run::find_cgroups() {
  bool told = false;
  const auto find = [&](const std::string& name, auto&& by) -> usdt::Result<void> {
    while (true) {
      auto found = by(name);
      if (found) {
        subjects_.cgroups.push_back(std::move(*found));
        return {};
      }
      if (!flags_.question.following.wait || found.error().kind != usdt::ErrorKind::not_found)
        return usdt::fail(found.error());
      if (!std::exchange(told, true)) {
        notice(flags_, fmt::format("waiting: {}", found.error().message));
        catch_signals();
        begin_time();
      }
      if (over()) return {};
      arrival_.wait();
    }
  };
  for (const std::string& name : flags_.question.processes.cgroups)
    if (auto found = find(name, usdt::find_cgroup); !found) return found;
  for (const std::string& id : flags_.question.processes.containers)
    if (auto found = find(id, usdt::find_container); !found) return found;
  return {};
}

usdt::Result<void> Run::release_command() {
  if (!child_ || std::exchange(released_, true)) return {};
  auto released = child_->release();
  return released ? released : usdt::fail(released.error().within(flags_.question.processes.command[0]));
}

void Run::begin_time() {
  if (!flags_.question.limits.seconds) return;
  const auto given = std::chrono::duration<double>(*flags_.question.limits.seconds);
  end_ = (Clock::now() + std::chrono::duration_cast<Clock::duration>(given)).time_since_epoch().count();
}

bool Run::over() const { return end_asked_for() || ended_ || Clock::now() >= end_of_time(); }

usdt::StopToken Run::told_over() {
  if (!teller_.joinable()) {
    teller_ = usdt::tools::start_helper([this](const std::stop_token& done) {
      constexpr std::chrono::milliseconds moment{20};  // the end of a trace may wait for it so long
      while (!over() && !done.stop_requested()) std::this_thread::sleep_for(moment);
      if (over()) told_.request_stop();
    });
  }
  return told_.get_token();
}

void Run::stop_telling() { teller_ = {}; }

bool Run::patient() {
  constexpr std::chrono::seconds grace{1};
  if (!over()) return true;
  if (!last_patience_) last_patience_ = Clock::now() + grace;
  return Clock::now() < *last_patience_;
}

bool Run::target_ended() { return (child_ && child_->ended()) || (!subjects_.pids.empty() && watch_.living().empty()); }

}  // namespace usdt_trace
