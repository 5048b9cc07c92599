// SPDX-License-Identifier: BSD-2-Clause
#include "follow/hold_keeper.hpp"

#include <linux/time_types.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

#include "sys/direct_call.hpp"
#include "sys/thread_sanitizer.hpp"

namespace usdt::follow {

struct HoldKeeper::Shared {
  std::atomic<std::uint64_t> beats = 0;
  std::atomic<std::uint64_t> let_go = 0;
};

namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr int kLookEveryMs = 100;
// The call whose times have 64 bits: machines with times of 32 bits have a second one for those.
#ifdef SYS_ppoll_time64
constexpr long kPoll = SYS_ppoll_time64;
#else
constexpr long kPoll = SYS_ppoll;
#endif
constexpr rlim64_t kMostDescriptors = 1 << 20;  // sysctl fs.nr_open, where nobody has changed it

// ThreadSanitizer's run time does not live on in a process that was made behind its back.
constexpr bool kMayClone = !sys::kThreadSanitizer;

void* map_memory(std::size_t bytes, int flags) noexcept {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  return start == MAP_FAILED ? nullptr : start;
}

bool allow(int fanotify, int number) noexcept {
  fanotify_response response{};
  response.fd = number;
  response.response = FAN_ALLOW;
  return sys::direct_call(SYS_write, fanotify, &response, sizeof(response)) > 0;
}

}  // namespace

// The process is a copy of one with other threads, whose locks may stay taken for ever: it makes system calls, and
// nothing else. It makes them itself, so that it passes no probe of the C library.
struct HoldKeeper::Task {
  HoldKeeper::Shared* shared = nullptr;
  int fanotify = -1;
  pid_t starter = 0;

  static int main(void* argument) {
    auto& task = *static_cast<Task*>(argument);
    sys::direct_call(SYS_setsid);  // a terminal's signals are not for it
    sys::direct_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    sys::direct_call(SYS_prctl, PR_SET_NAME, "usdt-keeper");
    task.keep_descriptor();
    task.watch();
    sys::direct_call(SYS_exit_group, 0);
    return 0;
  }

  /// Closes all other descriptors: they are the starter's alone.
  void keep_descriptor() noexcept {
    const auto kept = static_cast<unsigned>(fanotify);
    if (kept > 0) sys::direct_call(SYS_close_range, 0U, kept - 1, 0U);
    sys::direct_call(SYS_close_range, kept + 1, ~0U, 0U);
  }

  void watch() noexcept {
    std::uint64_t seen = shared->beats;
    int still_ms = 0;
    while (sys::direct_call(SYS_getppid) == starter) {
      const bool stands_still = still_ms >= kPatienceMs;
      pollfd events{fanotify, static_cast<short>(stands_still ? POLLIN : 0), 0};
      __kernel_timespec wait{0, kLookEveryMs * 1'000'000};
      sys::direct_call(kPoll, &events, 1, &wait, nullptr, 0);
      if (const std::uint64_t beats = shared->beats; beats != seen) {
        seen = beats;
        still_ms = 0;
        continue;
      }
      if (stands_still) {
        answer_new();
      } else if ((still_ms += kLookEveryMs) >= kPatienceMs) {
        answer_known();
      }
    }
  }

  /// Answers the events that the starter has read and not answered. Only the starter knows their descriptors: all
  /// numbers are tried, and the kernel refuses wrong ones. When the starter goes on it finds, and counts, that they
  /// were held too long.
  void answer_known() const noexcept {
    rlimit64 room{};  // as the system call has it, on machines of 32 bits, too
    sys::direct_call(SYS_prlimit64, starter, RLIMIT_NOFILE, nullptr, &room);
    for (rlim64_t number = 0; number < std::min<rlim64_t>(room.rlim_cur, kMostDescriptors); ++number)
      allow(fanotify, static_cast<int>(number));
  }

  void answer_new() noexcept {
    alignas(fanotify_event_metadata) std::array<char, 4096> buffer;
    for (long length = 0; (length = sys::direct_call(SYS_read, fanotify, buffer.data(), buffer.size())) > 0;) {
      const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
      for (auto rest = length; FAN_EVENT_OK(event, rest); event = FAN_EVENT_NEXT(event, rest)) {
        if (event->fd < 0) continue;
        if (allow(fanotify, event->fd)) shared->let_go++;
        sys::direct_call(SYS_close, event->fd);
      }
    }
  }
};

HoldKeeper::HoldKeeper(int fanotify) {
  if (!kMayClone) return;
  auto* shared = static_cast<Shared*>(map_memory(sizeof(Shared), MAP_SHARED));
  stack_ = map_memory(kStackBytes, MAP_PRIVATE | MAP_STACK);
  if (shared != nullptr && stack_ != nullptr) {
    shared_ = new (shared) Shared;
    Task task{shared_, fanotify, ::getpid()};
    // Without a termination signal: no wait() of the application sees it.
    pid_ = ::clone(Task::main, static_cast<std::byte*>(stack_) + kStackBytes, 0, &task);
  }
}

HoldKeeper::~HoldKeeper() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
  }
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  if (stack_ != nullptr) ::munmap(stack_, kStackBytes);
}

void HoldKeeper::beat() noexcept {
  if (shared_ != nullptr) shared_->beats.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t HoldKeeper::let_go() const noexcept { return shared_ != nullptr ? shared_->let_go.load() : 0; }

}  // namespace usdt::follow
