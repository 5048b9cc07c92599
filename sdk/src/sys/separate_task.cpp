// SPDX-License-Identifier: BSD-2-Clause
#include "sys/separate_task.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "sys/address_sanitizer.hpp"
#include "sys/clone_task.hpp"
#include "sys/direct_call.hpp"
#include "sys/root_cgroup.hpp"
#include "sys/thread_sanitizer.hpp"

namespace usdt::sys {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kMostBelow = 32;  // tasks that one task starts

// False under ThreadSanitizer: a task that shares our memory would write to the sanitizer's account of the thread whose
// thread-local memory it has. There the calling thread does everything.
constexpr bool kMayClone = !kThreadSanitizer;

/// Stacks for tasks, mapped at once; none where memory is short.
class Stacks {
 public:
  explicit Stacks(std::size_t count) : length_(count * kStackBytes) {
    void* start = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (start != MAP_FAILED) start_ = static_cast<std::byte*>(start);
  }
  ~Stacks() {
    if (start_ == nullptr) return;
    forget_stack(start_, length_);
    ::munmap(start_, length_);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  explicit operator bool() const noexcept { return start_ != nullptr; }
  [[nodiscard]] std::span<std::byte> of(std::size_t number) const noexcept {
    return {start_ + number * kStackBytes, kStackBytes};
  }

 private:
  std::byte* start_ = nullptr;
  std::size_t length_;
};

/// Blocks the signals of the calling thread, and so those of the tasks it makes: a handler of the application must not
/// run twice for one Ctrl-C, and never on a small stack.
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
  long reaped = 0;
  do reaped = direct_call(SYS_wait4, task, nullptr, __WCLONE, nullptr);
  while (reaped < 0 && reaped != -ECHILD);
}

long make(const SeparateCall& call) noexcept {
  const long* w = call.words;
  return direct_call(call.number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

/// The task's code.
int call_and_exit(void* argument) {
  // Signals to our process group, those of a terminal or of timeout(1), are not for this task.
  direct_call(SYS_setsid);
  auto& call = *static_cast<SeparateCall*>(argument);
  call.result = make(call);
  call.made = true;
  direct_call(SYS_exit, 0);
  return 0;
}

/// Signals between tasks on one memory. It needs no descriptor: there may be none left to have.
class Bell {
 public:
  /// Returns how often it was rung.
  [[nodiscard]] std::uint32_t times() const noexcept { return value_.load(); }
  void ring() noexcept {
    value_.fetch_add(1);
    direct_call(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  /// Waits until it was rung more than `seen` times, or for a moment.
  void wait(std::uint32_t seen) const noexcept {
    const struct { long seconds, nanoseconds; } moment{0, 20'000'000};
    direct_call(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, &moment, nullptr, 0);
  }

 private:
  std::atomic<std::uint32_t> value_ = 0;
};

/// A task that keeps its share of the descriptors open, by a table of its own, until who started it has closed theirs.
/// Tasks below it keep shares of its share. It allocates nothing and takes no lock: its thread-local memory is that of
/// the thread that waits for it.
struct Keeper {
  std::span<const int> listed = {};  ///< the first keeper's share, in ascending order;
  unsigned begin = 0, end = 0;       ///< others': these numbers, of their starter's
  std::span<Keeper> below = {};
  std::span<std::byte> stack = {};
  Bell* changed = nullptr;   ///< it keeps its share now
  const Bell* go = nullptr;  ///< what it waits for, or the end of who started it
  long starter = 0;          ///< a pid
  pid_t task = -1;
  std::atomic<bool> keeps = false;
  std::atomic<bool> ended = false;  ///< and those below it
};

void close_numbers(unsigned begin, unsigned end) noexcept {
  if (begin < end) direct_call(SYS_close_range, begin, end - 1, 0U);  // 5.9
}

/// Moves a descriptor to `number`, which is free or its own.
void move_descriptor(unsigned from, unsigned number) noexcept {
  if (from == number) return;
  direct_call(SYS_dup3, from, number, 0);
  direct_call(SYS_close, from);
}

/// The task's table of descriptors is a copy of its starter's: all but its share is closed, so that it holds back
/// nothing else of this process. Descriptors that are shared further get the lowest numbers: tables are as large as
/// their highest number wants.
void keep_share(const Keeper& keeper) noexcept {
  if (keeper.listed.empty()) {
    close_numbers(0, keeper.begin);
    close_numbers(keeper.end, ~0U);
    for (unsigned fd = keeper.begin; !keeper.below.empty() && fd < keeper.end; ++fd)
      move_descriptor(fd, fd - keeper.begin);
    return;
  }
  unsigned next = 0;
  for (const int fd : keeper.listed) {
    close_numbers(next, static_cast<unsigned>(fd));
    next = static_cast<unsigned>(fd) + 1;
  }
  close_numbers(next, ~0U);
  for (unsigned i = 0; i < keeper.listed.size(); ++i) move_descriptor(static_cast<unsigned>(keeper.listed[i]), i);
}

/// Starts keepers, one after the other, and waits until they keep their shares. Keepers that cannot be started, or are
/// killed, keep nothing.
class Starter {
 public:
  explicit Starter(std::span<Keeper> keepers) noexcept : keepers_(keepers) {}

  void start() noexcept;
  /// Closes the calling task's own descriptors of what is kept by keepers that are not the first.
  void close_kept() noexcept {
    for (const Keeper& each : keepers_)
      if (each.keeps) close_numbers(each.begin, each.end);
  }
  void let_end() noexcept { go_.ring(); }
  void wait_for_end() noexcept {
    for (const Keeper& each : keepers_)
      if (each.task > 0) reap(each.task);
  }

 private:
  void look_for_dead() noexcept {
    for (Keeper& each : keepers_) {
      if (each.task <= 0 || each.keeps) continue;
      if (direct_call(SYS_wait4, each.task, nullptr, WNOHANG | __WCLONE, nullptr) == each.task) each.task = 0;
    }
  }
  [[nodiscard]] bool any_awaited() const noexcept {
    return std::any_of(keepers_.begin(), keepers_.end(),
                       [](const Keeper& each) { return each.task > 0 && !each.keeps; });
  }

  std::span<Keeper> keepers_;
  Bell changed_;
  Bell go_;
};

int keep_then_exit(void* argument) {
  auto& keeper = *static_cast<Keeper*>(argument);
  keep_share(keeper);
  Starter below(keeper.below);
  below.start();
  below.close_kept();  // what is not is closed by our exit
  keeper.keeps = true;
  keeper.changed->ring();
  while (keeper.go->times() == 0 && direct_call(SYS_getppid) == keeper.starter) keeper.go->wait(0);
  below.let_end();
  below.wait_for_end();
  keeper.ended = true;
  direct_call(SYS_exit, 0);
  return 0;
}

void Starter::start() noexcept {
  const long self = direct_call(SYS_getpid);
  for (Keeper& each : keepers_) {
    each.changed = &changed_;
    each.go = &go_;
    each.starter = self;
    each.task = clone_task(keep_then_exit, each.stack, CLONE_VM, &each);
    if (each.task < 0) break;
  }
  while (true) {
    const std::uint32_t seen = changed_.times();
    if (!any_awaited()) return;
    changed_.wait(seen);
    if (changed_.times() == seen) look_for_dead();
  }
}

/// One keeper of all descriptors, with up to 32 below it, and as many below each of those: a link's closing waits for
/// grace periods of the kernel, and tasks wait together.
class Keepers {
 public:
  /// `descriptors`: in ascending order.
  explicit Keepers(std::vector<int> descriptors)
      : descriptors_(std::move(descriptors)), all_(count()), stacks_(all_.size()) {
    if (!stacks_) return;
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].stack = stacks_.of(i);
    std::span<Keeper> rest(all_);
    all_[0].listed = descriptors_;
    all_[0].end = size();
    rest = divide(all_[0], rest.subspan(1));
    for (Keeper& each : all_[0].below) rest = divide(each, rest);
  }

  /// None where memory is short.
  [[nodiscard]] std::span<Keeper> first() noexcept { return std::span(all_).first(stacks_ && kMayClone ? 1 : 0); }
  /// False where one that others are below was killed: those may still run, on this memory.
  [[nodiscard]] bool all_ended() const noexcept {
    return std::all_of(all_.begin(), all_.end(), [](const Keeper& each) { return each.task < 0 || each.ended; });
  }

 private:
  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(descriptors_.size()); }
  static unsigned parts_of(unsigned share) { return share > 1 ? std::min(share, kMostBelow) : 0; }
  /// Returns where part `number` of a share begins.
  static unsigned begin_of(unsigned number, unsigned share) {
    return static_cast<unsigned>(std::uint64_t{share} * number / parts_of(share));
  }
  [[nodiscard]] std::size_t count() const {
    std::size_t all = 1 + parts_of(size());
    for (unsigned i = 0; i < parts_of(size()); ++i) all += parts_of(begin_of(i + 1, size()) - begin_of(i, size()));
    return all;
  }
  /// Divides its share among keepers of `unused`; returns those that are left.
  static std::span<Keeper> divide(Keeper& keeper, std::span<Keeper> unused) {
    const unsigned share = keeper.end - keeper.begin;
    keeper.below = unused.first(parts_of(share));
    for (unsigned i = 0; i < keeper.below.size(); ++i) {
      keeper.below[i].begin = begin_of(i, share);
      keeper.below[i].end = begin_of(i + 1, share);
    }
    return unused.subspan(keeper.below.size());
  }

  std::vector<int> descriptors_;
  std::vector<Keeper> all_;
  Stacks stacks_;
};

/// Null: there is no memory for them, and the descriptors are closed without.
std::unique_ptr<Keepers> make_keepers(std::span<const int> descriptors) noexcept try {
  std::vector<int> sorted(descriptors.begin(), descriptors.end());
  std::sort(sorted.begin(), sorted.end());
  return std::make_unique<Keepers>(std::move(sorted));
} catch (const std::bad_alloc&) {
  return nullptr;
}

// CLONE_VFORK: the thread that starts a task stands still meanwhile, so that the task may use its thread-local memory.
constexpr int kSeparate = CLONE_VM | CLONE_FILES | CLONE_VFORK;

pid_t start_beyond_cgroup(SeparateCall& call, const Stacks& stack) noexcept {
  return clone_into_root_cgroup(call_and_exit, stack.of(0), kSeparate, &call);
}
pid_t start_in_cgroup(SeparateCall& call, const Stacks& stack) noexcept {
  return clone_task(call_and_exit, stack.of(0), kSeparate, &call);
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
  auto keepers = make_keepers(descriptors);
  Starter starter(keepers ? keepers->first() : std::span<Keeper>());
  {
    const SignalsBlocked blocked;
    starter.start();
  }
  for (const int fd : descriptors) ::close(fd);
  starter.let_end();
  starter.wait_for_end();
  if (keepers && !keepers->all_ended()) static_cast<void>(keepers.release());
  errno = saved;
}

}  // namespace usdt::sys
