// SPDX-License-Identifier: BSD-2-Clause
#include "link/file_guard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/try.hpp"
#include "sys/bell.hpp"
#include "sys/thread.hpp"
#include "sys/unique_fd.hpp"

namespace usdt {
inline namespace v1 {

std::string_view to_string(FileChangeKind kind) noexcept {
  switch (kind) {
    case FileChangeKind::written:
      return "written";
    case FileChangeKind::replaced:
      return "replaced";
    case FileChangeKind::removed:
      return "removed";
  }
  return "unknown";
}

}  // namespace v1
}  // namespace usdt

namespace usdt::backends {
namespace {

constexpr int kLookEveryMs = 250;
constexpr unsigned kLooksOfLeased = 8;  ///< files with a lease are looked at each eighth time

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool same_attributes(const struct stat& a, const struct stat& b) {
  return a.st_nlink == b.st_nlink && a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

/// True for one of the last descriptors this process may have: they are for the application.
bool is_scarce(int fd) {
  constexpr rlim_t spare = 64;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) + spare >= limit.rlim_cur;
}

/// Nobody can write to it any more, nor make it longer or shorter: memory files of programs that make probes.
bool is_sealed(int fd) {
  constexpr int all = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & all) == all;
}

std::string self_fd(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

/// A path below /proc goes with its process, which says nothing about the file.
bool goes_with_a_process(const std::filesystem::path& path) { return path.native().starts_with("/proc/"); }

/// One watched file.
struct Watched {
  explicit Watched(GuardedFile guarded) : file(std::move(guarded)) {}

  GuardedFile file;
  struct stat seen {};
  sys::UniqueFd lease;       ///< an open file of its own, since a lease, and whom it tells, belong to that
  int watch = -1;            ///< inotify's
  bool other_ctime = false;  ///< inotify tells of what explains it: attributes were set, or it was renamed
  bool suspect = false;      ///< ctime is another, and nothing has explained it yet
  bool over = false;         ///< written to, which was reported, or forgotten: not watched any more
  bool gone = false;         ///< replaced or removed: reported

  /// Said rather than left to the closing of the descriptor, which a child made by fork() may have as well.
  void end_lease() const {
    if (lease) ::fcntl(lease.get(), F_SETLEASE, F_UNLCK);
  }
};

}  // namespace

struct FileGuard::State {
  State(std::vector<GuardedFile> files, OnChange sink)
      : on_change(std::move(sink)), owner(::getpid()), to_watch(std::move(files)) {}

  ~State() {
    if (!thread.joinable()) return;
    // In a child made by fork() there is no such thread, and the leases are its parent's.
    if (::getpid() != owner) {
      thread.detach();
      return;
    }
    stopping = true;
    wake();
    thread.join();
    for (const Watched& each : watched) each.end_lease();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> open_descriptors() {
    asked.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!asked) return fail(os_failure(ErrorKind::io, "watch the attached files", errno));
    // Without these two (their number is limited for each user) the file's times are left.
    inotify.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    sigset_t lease_break;
    ::sigemptyset(&lease_break);
    ::sigaddset(&lease_break, SIGIO);
    signals.reset(::signalfd(-1, &lease_break, SFD_CLOEXEC | SFD_NONBLOCK));
    return {};
  }

  Result<void> start() {
    TRY(open_descriptors());
    std::future<void> ready = armed.get_future();
    auto started = sys::start_thread("to watch the attached files", [this] {
      if (stopping) return;  // it begins again where memory runs out
      do_what_was_asked();
      run();
    });
    if (!started) return fail(started.error());
    thread = std::move(*started);
    ready.wait();
    return {};
  }

  void ask(std::vector<GuardedFile> watch, std::vector<std::size_t> forget) {
    std::unique_lock lock(mutex);
    // Behind what is still to be done: the thread may be detaching, and files are known by their numbers.
    std::ranges::move(watch, std::back_inserter(to_watch));
    std::ranges::move(forget, std::back_inserter(to_forget));
    armed = {};
    std::future<void> ready = armed.get_future();
    lock.unlock();
    wake();
    // Unless the thread has given up (poll(2): ENOMEM), at once.
    ready.wait_for(std::chrono::seconds(2));
  }

  void wake() const { sys::ring_eventfd(asked.get()); }

  /// In the thread.
  void do_what_was_asked() {
    const std::lock_guard lock(mutex);
    if (to_watch.empty() && to_forget.empty() && next_to_arm == watched.size()) return;
    // This begins again where memory runs out on the way, and misses no file.
    watched.reserve(watched.size() + to_watch.size());
    for (GuardedFile& file : std::exchange(to_watch, {})) watched.emplace_back(std::move(file));
    for (; next_to_arm < watched.size(); ++next_to_arm) arm(watched[next_to_arm]);
    for (const std::size_t number : std::exchange(to_forget, {})) {
      if (number >= watched.size()) continue;
      end_watch(watched[number]);
      watched[number].file.elf.reset();
    }
    armed.set_value();
  }

  void arm(Watched& each) const {
    const int fd = each.file.elf->fd();
    if (is_sealed(fd) && each.file.elf->unchanged()) {
      each.over = true;  // there are thousands of them: neither a lease nor a look each
      return;
    }
    const std::string path = self_fd(fd);
    each.watch = ::inotify_add_watch(inotify.get(), path.c_str(),
                                     IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
    take_lease(each, path);
    each.gone = ::fstat(fd, &each.seen) != 0 || each.seen.st_nlink == 0;
    if (!each.file.elf->is_unwritten()) report_written(each);
  }

  /// The signal goes to this thread, where it is blocked: the application's handlers never see it.
  void take_lease(Watched& each, const std::string& path) const {
    if (!signals) return;
    sys::UniqueFd own(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    const f_owner_ex me{F_OWNER_TID, ::gettid()};
    if (!own || is_scarce(own.get())) return;
    if (::fcntl(own.get(), F_SETOWN_EX, &me) != 0 || ::fcntl(own.get(), F_SETLEASE, F_RDLCK) != 0) return;
    each.lease = std::move(own);
  }

  void run() {
    std::array<pollfd, 3> fds{{{asked.get(), POLLIN, 0}, {inotify.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    for (unsigned look = 0;;) {
      const int ready = ::poll(fds.data(), fds.size(), kLookEveryMs);
      if (ready < 0 && errno != EINTR) return;
      if (ready > 0 && fds[0].revents != 0 && !go_on()) return;
      if (ready > 0 && fds[2].revents != 0) see_leases();
      if (ready > 0 && fds[1].revents != 0) see_events();
      if (ready != 0) continue;
      see_leases();
      // Nobody writes to a file with a lease unseen, and inotify tells of most that happens to its name.
      const bool at_all = ++look % kLooksOfLeased == 0;
      for (Watched& each : watched)
        if (at_all || !each.lease) look_at(each);
    }
  }

  /// Does what the thread was asked to do; false: it was asked to end.
  bool go_on() {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t n = ::read(asked.get(), &times, sizeof(times));
    if (stopping) return false;
    do_what_was_asked();
    return true;
  }

  /// A lease that somebody waits for asks to become none.
  void see_leases() {
    signalfd_siginfo ignored;
    while (::read(signals.get(), &ignored, sizeof(ignored)) == sizeof(ignored)) {
    }
    for (Watched& each : watched) {
      if (each.lease && ::fcntl(each.lease.get(), F_GETLEASE) != F_RDLCK) report_written(each);
    }
  }

  void see_events() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    const ssize_t length = ::read(inotify.get(), buffer.data(), buffer.size());
    inotify_event event;
    for (ssize_t at = 0; at + static_cast<ssize_t>(sizeof(event)) <= length;) {
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      for (Watched& each : watched) {
        if (each.watch == event.wd || (event.mask & IN_Q_OVERFLOW) != 0) take(each, event.mask);
      }
    }
  }

  void take(Watched& each, std::uint32_t mask) {
    each.other_ctime |= (mask & (IN_ATTRIB | IN_MOVE_SELF)) != 0;
    if ((mask & IN_MODIFY) != 0) report_written(each);
    look_at(each);
  }

  void look_at(Watched& each) {
    if (each.over) return;
    struct stat now {};
    if (::fstat(each.file.elf->fd(), &now) != 0) return;
    if (was_written(each, now)) return report_written(each);
    if (!each.suspect) each.seen = now;
    each.other_ctime = false;
    look_at_path(each, now);
  }

  static bool was_written(Watched& each, const struct stat& now) {
    if (now.st_size != each.seen.st_size || !same_time(now.st_mtim, each.seen.st_mtim)) return true;
    // Times can be set back, but for ctime, which other things change as well: links, names, owner, mode, extended
    // attributes.
    const bool explained =
        same_time(now.st_ctim, each.seen.st_ctim) || each.other_ctime || !same_attributes(now, each.seen);
    // The event that explains it may come after it.
    const bool again = each.suspect;
    each.suspect = !explained;
    return !explained && again;
  }

  void look_at_path(Watched& each, const struct stat& now) {
    if (each.gone) return;
    struct stat there {};
    const bool exists = !goes_with_a_process(each.file.path) && ::stat(each.file.path.c_str(), &there) == 0;
    if (exists && (there.st_dev != now.st_dev || there.st_ino != now.st_ino)) {
      report_gone(each, FileChangeKind::replaced);
    } else if (!exists && now.st_nlink == 0) {
      report_gone(each, FileChangeKind::removed);
    }
  }

  void report_gone(Watched& each, FileChangeKind kind) {
    each.gone = true;
    on_change(number_of(each), kind);
  }

  void report_written(Watched& each) const {
    if (each.over) return;
    each.over = true;
    on_change(number_of(each), FileChangeKind::written);
    end_watch(each);
  }

  void end_watch(Watched& each) const {
    each.over = true;
    if (each.watch >= 0) ::inotify_rm_watch(inotify.get(), std::exchange(each.watch, -1));
    each.end_lease();  // whoever waits to write goes on
    each.lease.reset();
  }

  [[nodiscard]] std::size_t number_of(const Watched& each) const {
    return static_cast<std::size_t>(&each - watched.data());
  }

  OnChange on_change;
  pid_t owner;
  std::vector<Watched> watched;  ///< the thread's
  std::size_t next_to_arm = 0;   ///< the thread's: the first of `watched` that is not watched yet
  std::mutex mutex;              ///< of the next three
  std::vector<GuardedFile> to_watch;
  std::vector<std::size_t> to_forget;
  std::promise<void> armed;  ///< that it is done
  std::atomic<bool> stopping = false;
  sys::UniqueFd asked, inotify, signals;
  std::thread thread;
};

void FileGuard::add(std::vector<GuardedFile> files) {
  if (!files.empty()) state_->ask(std::move(files), {});
}

void FileGuard::forget(std::vector<std::size_t> files) {
  if (!files.empty()) state_->ask({}, std::move(files));
}

FileGuard::FileGuard(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FileGuard::FileGuard(FileGuard&&) noexcept = default;
FileGuard& FileGuard::operator=(FileGuard&&) noexcept = default;
FileGuard::~FileGuard() = default;

Result<FileGuard> FileGuard::start(std::vector<GuardedFile> files, OnChange on_change) {
  auto state = std::make_unique<State>(std::move(files), std::move(on_change));
  TRY(state->start());
  return FileGuard(std::move(state));
}

}  // namespace usdt::backends
