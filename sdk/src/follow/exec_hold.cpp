// SPDX-License-Identifier: BSD-2-Clause
#include "follow/exec_hold.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "base/try.hpp"
#include "follow/clock.hpp"
#include "follow/followed_processes.hpp"
#include "follow/hold_keeper.hpp"
#include "sys/mounts.hpp"
#include "sys/thread.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::follow {
namespace {

/// A file as it was looked at: an inode, and when it was written to.
using Looked = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

std::optional<Looked> looked(int file) noexcept {
  struct stat st {};
  if (::fstat(file, &st) != 0) return std::nullopt;
  return Looked(st.st_dev, st.st_ino, st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

/// "/memfd:NAME (deleted)", by which a link of /proc/PID/fd begins.
constexpr std::string_view kMemory = "/memfd:";

/// Nothing is run from these, or others decide how long a look takes.
bool holds_programs(const sys::Mount& mount) {
  constexpr std::string_view without[] = {"proc",    "sysfs",      "devpts",   "cgroup", "cgroup2", "debugfs",
                                          "tracefs", "securityfs", "pstore",   "bpf",    "mqueue",  "hugetlbfs",
                                          "autofs",  "configfs",   "efivarfs", "nsfs",   "fusectl", "binfmt_misc"};
  return !mount.type.starts_with("fuse") && std::ranges::find(without, mount.type) == std::end(without);
}

}  // namespace

std::vector<MemoryFile> memory_files_of(pid_t pid) {
  std::vector<MemoryFile> files;
  const std::filesystem::path directory = fmt::format("/proc/{}/fd", pid);
  std::error_code none;
  for (auto each = std::filesystem::directory_iterator(directory, none); !none && each != end(each);
       each.increment(none)) {
    std::error_code gone;
    const std::filesystem::path link = std::filesystem::read_symlink(each->path(), gone);
    if (!gone && link.native().starts_with(kMemory)) files.push_back({link, each->path()});
  }
  return files;
}

struct ExecHold::State {
  explicit State(FollowScope wanted) : scope(std::move(wanted)) {}
  ~State() {
    if (thread.joinable()) {
      const std::uint64_t one = 1;
      while (::write(stop.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
      }
      thread.join();
    }
    for (auto& [id, each] : held) answer(each.file.get());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> open() {
    fanotify.reset(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE,
                                   O_RDONLY | O_CLOEXEC | O_LARGEFILE));
    if (!fanotify) {
      const ErrorKind kind = errno == EPERM ? ErrorKind::no_permission : ErrorKind::not_supported;
      return fail(os_failure(kind, "hold programs at their start (fanotify, CAP_SYS_ADMIN)", errno));
    }
    mounts.reset(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    stop.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop) return fail(os_failure(ErrorKind::limit, "hold programs at their start", errno));
    if (const int error = mark_mounts(); marked.empty())
      return fail(
          os_failure(ErrorKind::not_supported, "hold programs at their start (FAN_OPEN_EXEC_PERM: Linux 5.0)", error));
    return {};
  }

  Result<void> start() {
    thread = TRY(sys::start_thread("that holds programs", [this] { run(); }));
    return {};
  }

  /// Marks every file system that was not marked yet; returns the last errno of one that cannot be marked.
  int mark_mounts() {
    int last = 0;
    for (const sys::Mount& mount : sys::mounts()) {
      if (!holds_programs(mount) || marked.contains(mount.device)) continue;
      if (::fanotify_mark(fanotify.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC_PERM, AT_FDCWD,
                          mount.place.c_str()) == 0)
        marked.insert(mount.device);
      else
        last = errno;
    }
    return last;
  }

  // --- in the thread ------------------------------------------------------------------------------------------------

  void run() {
    constexpr int look_every_ms = 100;
    std::array<pollfd, 3> fds{{{fanotify.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}, {mounts.get(), POLLPRI, 0}}};
    HoldKeeper keeper(fanotify.get());
    while (true) {
      keeper.beat();
      count_let_go(keeper);
      const int ready = ::poll(fds.data(), fds.size(), look_every_ms);
      if (ready < 0 && errno != EINTR) return;
      if (ready > 0 && fds[1].revents != 0) return;
      if (ready > 0 && (fds[2].revents & (POLLPRI | POLLERR)) != 0) mark_mounts();
      if (ready > 0 && fds[0].revents != 0) take_events(keeper);
      let_go_of_old();
    }
  }

  /// Counts the programs that the keeper has allowed to run while this process stood still.
  void count_let_go(const HoldKeeper& keeper) {
    const std::uint64_t all = keeper.let_go();
    if (counted == all) return;
    const std::lock_guard lock(mutex);
    for (; counted < all; ++counted) times.add_let_go();
  }

  void take_events(HoldKeeper& keeper) {
    alignas(fanotify_event_metadata) std::array<char, 8192> buffer;
    bool any = false;
    for (ssize_t length = 0; (length = ::read(fanotify.get(), buffer.data(), buffer.size())) > 0;) {
      keeper.beat();
      const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
      for (auto rest = static_cast<long>(length); FAN_EVENT_OK(event, rest); event = FAN_EVENT_NEXT(event, rest)) {
        if (event->fd < 0) continue;
        any |= take(sys::UniqueFd(event->fd), event->pid);
      }
    }
    if (any) on_held();
  }

  /// True: it is held.
  bool take(sys::UniqueFd file, pid_t pid) try {
    const std::uint64_t since = now();
    const auto what = looked(file.get());
    const std::lock_guard lock(mutex);
    const bool seen = what && known.contains(*what);
    if (!what || !is_followed(scope, pid) || (seen && memory_files_of(pid).empty())) {
      answer(file.get());
      if (seen) times.add(now() - since);
      return false;
    }
    // The place first: while there is none, `file` stays what the handler below answers by.
    held.try_emplace(next).first->second = Held{std::move(file), pid, since, false};
    ++next;
    return true;
  } catch (const std::bad_alloc&) {
    answer(file.get());  // nobody waits for memory of ours
    return false;
  }

  void let_go_of_old() {
    const std::lock_guard lock(mutex);
    const std::uint64_t until = now();
    for (auto each = held.begin(); each != held.end();) {
      if (until - each->second.since < kLongest) break;  // by their numbers they are by their times
      answer(each->second.file.get());
      times.add(until - each->second.since);
      times.add_let_go();
      each = held.erase(each);
    }
  }

  void answer(int file) const {
    fanotify_response response{};
    response.fd = file;
    response.response = FAN_ALLOW;
    while (::write(fanotify.get(), &response, sizeof(response)) < 0 && errno == EINTR) {
    }
  }

  struct Held {
    sys::UniqueFd file = {};
    pid_t pid = 0;
    std::uint64_t since = 0;
    bool told = false;
  };
  static constexpr std::size_t most_known = 1 << 16;

  FollowScope scope;
  std::function<void()> on_held;
  sys::UniqueFd fanotify, mounts, stop;
  std::set<std::string> marked;  ///< devices
  std::thread thread;
  std::uint64_t counted = 0;  ///< the thread's: of HoldKeeper::let_go()
  mutable std::mutex mutex;   ///< of what follows
  std::map<std::uint64_t, Held> held;
  std::uint64_t next = 1;
  std::set<Looked> known;
  HoldTimes times;
};

ExecHold::ExecHold(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
ExecHold::ExecHold(ExecHold&&) noexcept = default;
ExecHold& ExecHold::operator=(ExecHold&&) noexcept = default;
ExecHold::~ExecHold() = default;

Result<ExecHold> ExecHold::start(FollowScope scope, std::function<void()> on_held) {
  auto state = std::make_unique<State>(std::move(scope));
  state->on_held = std::move(on_held);
  TRY(state->open());
  TRY(state->start());
  return ExecHold(std::move(state));
}

std::vector<HeldExec> ExecHold::take() {
  const std::lock_guard lock(state_->mutex);
  std::vector<HeldExec> out;
  for (auto& [id, each] : state_->held) {
    if (!std::exchange(each.told, true))
      out.push_back({id, sys::UniqueFd(::fcntl(each.file.get(), F_DUPFD_CLOEXEC, 0)), each.pid});
  }
  return out;
}

void ExecHold::know(std::uint64_t id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->held.find(id);
  if (found == state_->held.end()) return;
  if (state_->known.size() >= State::most_known) state_->known.clear();
  if (const auto what = looked(found->second.file.get())) state_->known.insert(*what);
}

void ExecHold::release(std::uint64_t id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->held.find(id);
  if (found == state_->held.end()) return;
  state_->answer(found->second.file.get());
  state_->times.add(now() - found->second.since);
  state_->held.erase(found);
}

HoldTimes ExecHold::times() const {
  const std::lock_guard lock(state_->mutex);
  return state_->times;
}

}  // namespace usdt::follow
