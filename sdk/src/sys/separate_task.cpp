// SPDX-License-Identifier: BSD-2-Clause
#include "sys/separate_task.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

#include "sys/root_cgroup.hpp"

namespace usdt::sys {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kMostTasks = 32;

// ThreadSanitizer takes a task that shares our memory for a fork, and loses account of all threads: there the calling
// thread does everything.
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayClone = false;
#else
constexpr bool kMayClone = true;
#endif

/// Stacks for tasks, mapped at once; none where memory is short.
class Stacks {
 public:
  explicit Stacks(std::size_t count) : length_(count * kStackBytes) {
    void* start = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (start != MAP_FAILED) start_ = static_cast<std::byte*>(start);
  }
  ~Stacks() {
    if (start_ != nullptr) ::munmap(start_, length_);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  explicit operator bool() const noexcept { return start_ != nullptr; }
  /// Stacks grow downwards on every machine we know.
  [[nodiscard]] void* top(std::size_t number) const noexcept { return start_ + (number + 1) * kStackBytes; }
  [[nodiscard]] std::span<std::byte> of(std::size_t number) const noexcept {
    return {start_ + number * kStackBytes, kStackBytes};
  }

 private:
  std::byte* start_ = nullptr;
  std::size_t length_;
};

/// The calling thread's signals are blocked, and so are those of the tasks it makes: a handler of the application must
/// not run twice for one Ctrl-C, and never on a small stack.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Waits for a task that was cloned without a termination signal, so that no wait() of the application sees it.
void reap(pid_t task) noexcept {
  while (::waitpid(task, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
}

long make(const SeparateCall& call) noexcept {
  const long* w = call.words;
  const long result = ::syscall(call.number, w[0], w[1], w[2], w[3], w[4], w[5]);
  return result < 0 ? -errno : result;
}

/// The task's code. It runs on memory that it shares with a thread that waits for it, so that errno, which is that
/// thread's, may be written.
int call_and_exit(void* argument) {
  // Signals to our process group, those of a terminal or of timeout(1), are not for this task.
  ::syscall(SYS_setsid);
  auto& call = *static_cast<SeparateCall*>(argument);
  call.result = make(call);
  call.made = true;
  ::syscall(SYS_exit, 0);
  return 0;
}

/// What a task is to keep open until we have closed ours.
struct Handover {
  std::span<const int> keep;  ///< in ascending order: its share of the descriptors, and these two
  int ready = -1;             ///< where it says that it holds them
  int go = -1;                ///< what it waits for: a byte, or the end of our process
};

/// Its table of descriptors is a copy of ours: all but its share is closed, so that it holds back nothing else of this
/// process, least of all the pipe's other end.
int keep_share_then_exit(void* argument) {
  const auto& handover = *static_cast<const Handover*>(argument);
  unsigned next = 0;
  for (const int fd : handover.keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept > next) ::syscall(SYS_close_range, next, kept - 1, 0U);  // 5.9
    next = kept + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0U);
  char byte = 0;
  ::syscall(SYS_write, handover.ready, &byte, 1);
  ::syscall(SYS_read, handover.go, &byte, 1);
  ::syscall(SYS_exit, 0);
  return 0;
}

class ExitingTasks {
 public:
  explicit ExitingTasks(std::span<const int> descriptors)
      : descriptors_(descriptors), count_(std::min(descriptors.size(), kMostTasks)), stacks_(count_) {}
  ~ExitingTasks() {
    for (const int fd : {ready_[0], ready_[1], go_[0], go_[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }
  ExitingTasks(const ExitingTasks&) = delete;
  ExitingTasks& operator=(const ExitingTasks&) = delete;

  void run() noexcept {
    start();
    wait_until_ready();
    for (const int fd : descriptors_) ::close(fd);
    const char byte = 0;
    for (std::size_t i = 0; i < started_; ++i) [[maybe_unused]] const ssize_t told = ::write(go_[1], &byte, 1);
    for (std::size_t i = 0; i < started_; ++i) reap(tasks_[i]);
  }

 private:
  /// What cannot be started is done without: its share is then closed by this thread.
  void start() noexcept {
    if (!kMayClone || !stacks_ || ::pipe2(ready_.data(), O_CLOEXEC) != 0 || ::pipe2(go_.data(), O_CLOEXEC) != 0) return;
    for (; started_ < count_; ++started_) {
      keep(started_);
      const pid_t task = ::clone(keep_share_then_exit, stacks_.top(started_), CLONE_VM, &handovers_[started_]);
      if (task < 0) return;
      tasks_[started_] = task;
    }
  }
  void keep(std::size_t task) noexcept {
    std::vector<int>& kept = kept_[task];
    for (std::size_t i = task; i < descriptors_.size(); i += count_) kept.push_back(descriptors_[i]);
    kept.push_back(ready_[1]);
    kept.push_back(go_[0]);
    std::sort(kept.begin(), kept.end());
    handovers_[task] = {kept, ready_[1], go_[0]};
  }
  /// Or until none is left that could be: tasks that were killed are no more.
  void wait_until_ready() noexcept {
    ::close(std::exchange(ready_[1], -1));
    char byte = 0;
    for (std::size_t ready = 0; ready < started_;) {
      const ssize_t n = ::read(ready_[0], &byte, 1);
      if (n == 1) ++ready;
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }

  std::span<const int> descriptors_;
  std::size_t count_;
  std::size_t started_ = 0;
  Stacks stacks_;
  std::array<std::vector<int>, kMostTasks> kept_;
  std::array<Handover, kMostTasks> handovers_{};
  std::array<pid_t, kMostTasks> tasks_{};
  std::array<int, 2> ready_{-1, -1};
  std::array<int, 2> go_{-1, -1};
};

// CLONE_VFORK: the thread that starts a task stands still meanwhile, so that the task may use its thread-local memory.
constexpr int kSeparate = CLONE_VM | CLONE_FILES | CLONE_VFORK;

pid_t start_beyond_cgroup(SeparateCall& call, const Stacks& stack) noexcept {
  return clone_into_root_cgroup(call_and_exit, stack.of(0), kSeparate, &call);
}
pid_t start_in_cgroup(SeparateCall& call, const Stacks& stack) noexcept {
  return ::clone(call_and_exit, stack.top(0), kSeparate, &call);
}

}  // namespace

void make_in_separate_task(SeparateCall& call) noexcept {
  const int saved = errno;
  const Stacks stack(1);
  const SignalsBlocked blocked;
  for (const auto start : {start_beyond_cgroup, start_in_cgroup}) {
    if (!kMayClone || !stack || call.made) break;
    if (const pid_t task = start(call, stack); task >= 0) reap(task);
  }
  if (!call.made) call.result = make(call);
  errno = saved;
}

void close_in_exiting_tasks(std::span<const int> descriptors) noexcept {
  if (descriptors.empty()) return;
  const int saved = errno;
  const SignalsBlocked blocked;
  ExitingTasks(descriptors).run();
  errno = saved;
}

}  // namespace usdt::sys
