// SPDX-License-Identifier: BSD-2-Clause
// Uprobes of some processes and of what they fork, of nobody else, so that nothing has to be asked at a hit.
//
// A perf event of a task puts breakpoints into its address space alone, and `inherit` hands it on in fork(2) and
// clone(2), before the child runs: the copied memory has the breakpoints already, and what the child maps later gets
// them. The source of uprobes of its own (perf_uprobe.cpp) cannot be handed on, since the kernel would read the file's
// path again from the forking process; trace events can. A hit looks through the list of the event's tasks for the
// address space, some 8 ns each.
//
// Each site has a trace event of its own (sys/trace_event.hpp says why), whose last perf event takes the kernel some
// 45 ms to close.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "link/backend.hpp"
#include "proc/process_maps.hpp"
#include "sys/descriptor_room.hpp"
#include "sys/syscalls.hpp"
#include "usdt/discover.hpp"

namespace usdt::backends {
namespace {

/// Tasks in a list. Longer ones cost a hit more than to ask whose descendant a task is, and detaching takes seconds.
constexpr std::size_t kMostTasks = 256;
constexpr std::size_t kSpareDescriptors = 64;
/// To define an event that nobody removes before it is used.
constexpr int kMostTries = 20;

std::set<pid_t> with_descendants(pid_t process) {
  const std::vector<pid_t> all = descendants_of(process);
  std::set<pid_t> processes(all.begin(), all.end());
  processes.insert(process);
  return processes;
}

/// This process, and what the library starts to help it (sys/separate_task.hpp): children whose end is told to nobody.
std::set<pid_t> own_processes() {
  std::set<pid_t> own{::getpid()};
  for (const pid_t child : descendants_of(::getpid()))
    if (proc::ends_silently(child)) own.merge(with_descendants(child));
  return own;
}

/// The threads that are there now.
std::set<pid_t> tasks_of(const Family& family) {
  std::set<pid_t> processes(family.roots.begin(), family.roots.end());
  if (!family.held)
    for (const pid_t root : family.roots) processes.merge(with_descendants(root));
  if (family.without_self)
    for (const pid_t own : own_processes()) processes.erase(own);
  std::set<pid_t> tasks;
  for (const pid_t process : processes)
    for (const pid_t task : proc::numbers_in(fmt::format("/proc/{}/task", process))) tasks.insert(task);
  return tasks;
}

perf_event_attr event_attributes(std::uint64_t id) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = id;
  attr.sample_period = 1;
  attr.disabled = 1;  // the program runs all the same, and nothing is counted or recorded
  return attr;
}

/// The descriptor, or a negative errno. The program sits on an event that is not handed on: with the end of a task that
/// was given a copy of it, the kernel would take it from all (Linux 6.11: f11f10bfa1ca copies it).
int open_for_program(std::uint64_t id, pid_t task) {
  perf_event_attr attr = event_attributes(id);
  return sys::syscalls().perf_event_open(&attr, task, -1, -1, 0);
}

/// The same of the event that is handed on. Two tasks of equal events may otherwise exchange them when one is scheduled
/// after the other, and each event means the address space of the task that it was made for: the end of one would take
/// the other's breakpoints. Events that are read with samples are not exchanged (6.12, 7e8b255650fc).
int open_for_family(std::uint64_t id, pid_t task) {
  perf_event_attr attr = event_attributes(id);
  attr.inherit = 1;
  attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID;
  return sys::syscalls().perf_event_open(&attr, task, -1, -1, 0);
}

class FamilyAttachment {
 public:
  FamilyAttachment(const AttachTarget& target, bool returns, const SiteArrays& sites)
      : target_(target), returns_(returns), sites_(sites) {}

  Result<FileLinks> run() {
    const std::set<pid_t> tasks = tasks_of(*target_.family);
    TRY(check_size(tasks));
    for (std::size_t i = 0; i < sites_.offsets.size(); ++i) TRY(add(i, *tasks.begin()));
    TRY(hand_on(tasks));
    return std::move(links_);
  }

 private:
  Result<void> check_size(const std::set<pid_t>& tasks) const {
    if (tasks.empty()) return fail(ErrorKind::not_found, "the processes to trace have ended");
    if (tasks.size() > kMostTasks)
      return fail(ErrorKind::not_supported, fmt::format("it is {} threads, more than {}", tasks.size(), kMostTasks));
    const std::size_t needed = sites_.offsets.size() * (tasks.size() + 3) + kSpareDescriptors;
    if (const std::size_t room = sys::make_room_for_more(needed); room < needed)
      return fail(ErrorKind::limit, fmt::format("it needs {} descriptors, and {} are left", needed, room));
    return {};
  }

  /// Defines an event, and attaches the program to it in the first task's process.
  Result<void> add(std::size_t site, pid_t first) {
    for (int tries = 0; tries < kMostTries; ++tries) {
      auto definition =
          sys::TraceEvent::define(returns_, target_.path, sites_.offsets[site], sites_.ref_ctr_offsets[site]);
      if (!definition) return refuse(site, definition.error());
      const auto id = definition->id();
      if (!id) continue;
      const int opened = open_for_program(*id, first);
      sys::AttachedFd event(opened);
      // Somebody else has removed it, and what was opened may be his.
      if (!definition->has_id(*id)) continue;
      if (opened < 0) return refuse(site, os_failure(ErrorKind::io, "open a trace event", -opened));
      links_.definitions.push_back(std::move(*definition));
      ids_.push_back(*id);
      if (const int error = link_perf_event(target_.program_fd, std::move(event), sites_.cookies[site], links_))
        return fail(os_failure(ErrorKind::io, "attach to a trace event", error));
      return {};
    }
    return fail(ErrorKind::io, "others remove trace events of this process again and again");
  }

  Result<void> refuse(std::size_t site, Error why) {
    if (why.os_error == 0 || concerns_all_sites(why.os_error)) return fail(std::move(why));
    links_.refused.push_back({site, why.os_error});
    return {};
  }

  /// Until no task is left that has none: those that were there when the last one was given its events hand them on.
  Result<void> hand_on(std::set<pid_t> tasks) {
    std::set<pid_t> done;
    while (!tasks.empty()) {
      for (const pid_t task : tasks) TRY(open_all(task));
      done.merge(tasks);
      if (target_.family->held) return {};
      tasks = tasks_of(*target_.family);
      std::erase_if(tasks, [&](pid_t task) { return done.contains(task); });
      if (done.size() > 4 * kMostTasks) return fail(ErrorKind::not_supported, "it grows faster than can be attached");
    }
    return {};
  }

  Result<void> open_all(pid_t task) {
    for (const std::uint64_t id : ids_) {
      const int fd = open_for_family(id, task);
      if (fd == -ESRCH) return {};  // it has ended
      if (fd == -EINVAL) return fail(ErrorKind::not_supported, "this kernel cannot hand them on safely (Linux 6.12)");
      if (fd < 0) return fail(os_failure(ErrorKind::io, "open an event of a family", -fd));
      links_.events.emplace_back(fd);
    }
    return {};
  }

  const AttachTarget& target_;
  bool returns_;
  const SiteArrays& sites_;
  FileLinks links_;
  std::vector<std::uint64_t> ids_;
};

Result<FileLinks> attach(const AttachTarget& target, bool returns, const SiteArrays& sites) {
  if (target.family == nullptr) return fail(ErrorKind::invalid_argument, "no family is named");
  return FamilyAttachment(target, returns, sites).run();
}

}  // namespace

Result<FileLinks> attach_uprobe_family(const AttachTarget& target, const SiteArrays& sites) {
  return attach(target, false, sites);
}

Result<FileLinks> attach_uprobe_family_return(const AttachTarget& target, const SiteArrays& sites) {
  return attach(target, true, sites);
}

}  // namespace usdt::backends
