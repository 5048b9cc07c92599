// SPDX-License-Identifier: BSD-2-Clause
#include "sys/trace_event.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "sys/pid_namespace.hpp"
#include "sys/read.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::sys {
namespace {

constexpr std::string_view kGroups = "usdt_family_";

/// Mounts tracefs where no path leads to it: nothing of the machine changes. fsopen(2) and its like have no wrappers in
/// older C libraries.
Result<UniqueFd> open_tracefs() {
#if defined(SYS_fsopen) && defined(SYS_fsconfig) && defined(SYS_fsmount)
  constexpr unsigned close_on_exec = 1, create = 6;
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tracefs", close_on_exec)));
  if (!context || ::syscall(SYS_fsconfig, context.get(), create, nullptr, nullptr, 0) != 0)
    return fail(os_failure(ErrorKind::io, "tracefs", errno));
  UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), close_on_exec, 0)));
  if (!mount) return fail(os_failure(ErrorKind::io, "tracefs", errno));
  return mount;
#else
  return fail(os_failure(ErrorKind::not_supported, "tracefs", ENOSYS));
#endif
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

/// Null: it cannot be listed.
Directory open_directory(UniqueFd fd) {
  Directory opened(fd ? ::fdopendir(fd.get()) : nullptr, ::closedir);
  if (opened) static_cast<void>(fd.release());  // closed with it
  return opened;
}

/// Writes a command; returns 0 or an errno. Several threads of a process may define events at once.
int tell(int tracefs, const std::string& command) {
  const UniqueFd events(::openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!events) return errno;
  return ::write(events.get(), command.data(), command.size()) < 0 ? errno : 0;
}

/// Returns when a process began, in ticks since the machine did: no other process has both its number and its start.
/// Empty: there is no such process.
std::string start_of(std::string_view pid) {
  const auto stat = read_text(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return {};
  // "PID (NAME) STATE PPID ...": the name may hold anything, ')' too; the time is the 22nd field.
  std::size_t at = stat->rfind(')');
  constexpr int fields_behind = 20;
  for (int i = 0; at != stat->npos && i < fields_behind; ++i) at = stat->find(' ', at + 1);
  if (at == stat->npos) return {};
  return stat->substr(at + 1, stat->find(' ', at + 1) - at - 1);
}

/// The pid namespace of a process, by its number; 0: that cannot be read.
ino_t pid_namespace_of(std::string_view pid) {
  struct stat found {};
  return ::stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &found) == 0 ? found.st_ino : 0;
}

/// Whether some process is in a pid namespace, among those that can be seen.
bool is_inhabited(ino_t pid_namespace) {
  const auto processes = open_directory(UniqueFd(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  while (const dirent* each = processes ? ::readdir(processes.get()) : nullptr)
    if (std::isdigit(static_cast<unsigned char>(each->d_name[0])) != 0 &&
        pid_namespace_of(each->d_name) == pid_namespace)
      return true;
  return false;
}

/// Whether the process may live that a group "usdt_family_NAMESPACE_PID_START" belongs to. Those of another pid
/// namespace have other numbers here: only the initial one, which sees all processes, can tell that none of it is left.
bool may_be_of_living(std::string_view group) {
  group.remove_prefix(kGroups.size());
  const std::size_t pid = group.find('_'), start = group.rfind('_');
  ino_t ns = 0;
  if (pid == group.npos || pid == start ||
      std::from_chars(group.data(), group.data() + pid, ns).ptr != group.data() + pid)
    return false;
  const auto nested = nested_pid_namespace();
  if (!nested) return true;
  if (ns != pid_namespace_of("self")) return nested->has_value() || is_inhabited(ns);
  return start_of(group.substr(pid + 1, start - pid - 1)) == group.substr(start + 1);
}

/// Removes the groups of processes that have ended. Processes of another time namespace seem to have ended, too: the
/// kernel refuses to remove events that they use (EBUSY), since each event has one place.
void remove_left_ones(int tracefs) {
  const auto groups = open_directory(UniqueFd(::openat(tracefs, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  while (const dirent* each = groups ? ::readdir(groups.get()) : nullptr) {
    const std::string_view name(each->d_name);
    if (name.starts_with(kGroups) && !may_be_of_living(name))
      static_cast<void>(tell(tracefs, fmt::format("-:{}/\n", name)));
  }
}

}  // namespace

Result<TraceEvent> TraceEvent::define(bool returns, const std::string& path, std::uint64_t offset,
                                      std::uint64_t semaphore) {
  static std::atomic<unsigned> defined{0};
  const unsigned number = defined++;
  auto tracefs = TRY(open_tracefs());
  if (number == 0) remove_left_ones(tracefs.get());
  const std::string name =
      fmt::format("{}{}_{}_{}/e{}", kGroups, pid_namespace_of("self"), ::getpid(), start_of("self"), number);
  const std::string reference = semaphore != 0 ? fmt::format("(0x{:x})", semaphore) : std::string();
  const std::string command = fmt::format("{}:{} {}:0x{:x}{}\n", returns ? 'r' : 'p', name, path, offset, reference);
  if (const int error = tell(tracefs.get(), command))
    return fail(os_failure(ErrorKind::io, "define a trace event", error));
  return TraceEvent(name);
}

TraceEvent& TraceEvent::operator=(TraceEvent&& other) noexcept {
  if (this == &other) return *this;
  remove();
  name_ = std::exchange(other.name_, {});
  return *this;
}

Result<std::uint64_t> TraceEvent::id() const {
  const auto tracefs = TRY(open_tracefs());
  const UniqueFd file(::openat(tracefs.get(), fmt::format("events/{}/id", name_).c_str(), O_RDONLY | O_CLOEXEC));
  char text[32] = {};
  const ssize_t length = file ? read_some(file.get(), text) : -1;
  std::uint64_t id = 0;
  if (length <= 0 || std::from_chars(text, text + length, id).ec != std::errc())
    return fail(os_failure(ErrorKind::io, fmt::format("the trace event {}", name_), errno));
  return id;
}

bool TraceEvent::has_id(std::uint64_t number) const {
  const auto there = id();
  return there && *there == number;
}

void TraceEvent::remove() noexcept {
  if (name_.empty()) return;
  if (const auto tracefs = open_tracefs()) static_cast<void>(tell(tracefs->get(), fmt::format("-:{}\n", name_)));
}

}  // namespace usdt::sys
