// SPDX-License-Identifier: BSD-2-Clause
#include "link/family_members.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/try.hpp"
#include "proc/process_maps.hpp"
#include "sys/thread.hpp"

namespace usdt::backends {
namespace {

sys::UniqueFd hold(pid_t pid) { return sys::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool has_ended(const sys::UniqueFd& process) {
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 1;
}

/// How long this thread has had a processor.
std::chrono::nanoseconds thread_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

FamilyMembers::FamilyMembers(Family family) : family_(std::move(family)) {
  for (const pid_t root : family_.roots)
    if (root != ::getpid() || !family_.without_self) add(root, hold(root));
}

void FamilyMembers::look() {
  std::vector<pid_t> parents;
  for (const auto& [pid, process] : members_) parents.push_back(pid);
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const std::size_t before = members_.size();
    take_children_of(parents[i], false);
    // What was started by one that was just found.
    if (members_.size() > before)
      for (const auto& [pid, process] : members_)
        if (std::ranges::find(parents, pid) == parents.end()) parents.push_back(pid);
  }
  if (family_.without_self && std::ranges::find(family_.roots, ::getpid()) != family_.roots.end())
    take_children_of(::getpid(), true);
  std::erase_if(members_, [](const auto& member) { return has_ended(member.second); });
}

/// `loud_alone`: those whose end the parent is told of, which this library's own helpers are not.
void FamilyMembers::take_children_of(pid_t parent, bool loud_alone) {
  for (const pid_t child : proc::children_of(parent)) {
    if (members_.contains(child)) continue;
    sys::UniqueFd process = hold(child);
    // Asked once it is held: the number may have become another's before.
    if (process && proc::parent_of(child) == parent && !(loud_alone && proc::ends_silently(child)))
      add(child, std::move(process));
  }
}

void FamilyMembers::add(pid_t pid, sys::UniqueFd fd) {
  if (fd) members_.emplace(pid, std::move(fd));
}

std::set<pid_t> FamilyMembers::living() const {
  std::set<pid_t> pids;
  for (const auto& [pid, process] : members_) pids.insert(pid);
  return pids;
}

bool FamilyMembers::lives(pid_t pid) const {
  const auto member = members_.find(pid);
  return member != members_.end() && !has_ended(member->second);
}

Result<std::unique_ptr<FamilyWatch>> FamilyWatch::start(const Family& family, OnLook on_look) {
  std::unique_ptr<FamilyWatch> watch(new FamilyWatch(family, std::move(on_look)));
  watch->thread_ = TRY(sys::start_thread("that finds what processes start", [&it = *watch] { it.run(); }));
  return watch;
}

FamilyWatch::~FamilyWatch() {
  std::unique_lock lock(mutex_);
  ends_ = true;
  lock.unlock();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool FamilyWatch::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

/// Looks every few milliseconds, and for a fiftieth of one processor's time at most: that of the thread, which may wait
/// long for a processor.
void FamilyWatch::run() {
  constexpr std::chrono::nanoseconds often = std::chrono::milliseconds(4);
  constexpr int pauses_of_looks = 50;
  while (true) {
    const auto before = thread_time();
    members_.look();
    const auto took = thread_time() - before;
    on_look_(*this);
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::max(often, pauses_of_looks * took), [this] { return ends_; })) return;
  }
}

}  // namespace usdt::backends
