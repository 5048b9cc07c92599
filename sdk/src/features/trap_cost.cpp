// SPDX-License-Identifier: BSD-2-Clause
#include "features/trap_cost.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/try.hpp"
#include "features/measured_code.hpp"
#include "features/trivial_program.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::features {
namespace {

constexpr int kCalls = 400;
constexpr int kRounds = 24;

/// The child's measurements: the processor time of its rounds, in ascending order.
struct Rounds {
  std::array<std::int64_t, kRounds> nanoseconds{};

  /// Nanoseconds of one call. Disturbances by the rest of the machine only make rounds longer: short ones have none.
  [[nodiscard]] double of_call() const { return static_cast<double>(nanoseconds[kRounds / 4]) / kCalls; }
};

std::int64_t own_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

Rounds run_rounds(TrappedFunction function) {
  Rounds rounds;
  for (std::int64_t& took : rounds.nanoseconds) {
    const std::int64_t began = own_time();
    for (int i = 0; i < kCalls; ++i) function();
    took = own_time() - began;
  }
  std::sort(rounds.nanoseconds.begin(), rounds.nanoseconds.end());
  return rounds;
}

/// A forked child that runs the rounds on request; it ends with this object, or with us. In the child of a process that
/// may have threads: system calls only.
class Caller {
 public:
  explicit Caller(TrappedFunction function) {
    std::array<int, 2> down{-1, -1}, up{-1, -1};
    if (::pipe2(down.data(), O_CLOEXEC) == 0 && ::pipe2(up.data(), O_CLOEXEC) == 0) pid_ = ::fork();
    if (pid_ == 0) {
      ::close(down[1]);
      serve(function, down[0], up[1]);
    }
    to_child_.reset(down[1]);
    from_child_.reset(up[0]);
    for (const int end : {down[0], up[1]})
      if (end >= 0) ::close(end);
  }
  ~Caller() { end(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// False: it is gone.
  [[nodiscard]] bool run(Rounds& rounds) {
    ssize_t n = ::write(to_child_.get(), "g", 1);
    while (n == 1 || (n < 0 && errno == EINTR)) n = ::read(from_child_.get(), &rounds, sizeof(rounds));
    return n == sizeof(rounds);
  }
  void end() {
    to_child_.reset();
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
  }

 private:
  [[noreturn]] static void serve(TrappedFunction function, int from_parent, int to_parent) {
    char word = 0;
    while (::read(from_parent, &word, 1) == 1) {
      const Rounds rounds = run_rounds(function);
      if (::write(to_parent, &rounds, sizeof(rounds)) != sizeof(rounds)) break;
    }
    ::_exit(0);
  }

  pid_t pid_ = -1;
  sys::UniqueFd to_child_, from_child_;
};

/// A probe of one function of one process, or -errno. `event` is below it where it is no link of its own.
struct Probe {
  sys::UniqueFd event, link;
};

int attach_link(int program, const FilePlace& place, pid_t pid, Probe& probe) {
  const int link = link_uprobe(program, place, pid);
  probe.link.reset(link < 0 ? -1 : link);
  return std::min(link, 0);
}

int attach_event(int program, const FilePlace& place, pid_t pid, Probe& probe) {
  const auto source = sys::probe_source("uprobe");
  if (!source) return -std::max(source.error().os_error, ENOENT);
  const int event = open_uprobe_event(source->type, place, pid);
  if (event < 0) return event;
  probe.event.reset(event);
  return sys::syscalls().perf_event_set_bpf(event, program);
}

}  // namespace

ProgramClocks::ProgramClocks() {
  std::uint32_t run_time = 0;  // enum bpf_stats_type
  const int fd = sys::syscalls().bpf(sys::kBpfEnableStatsCmd, &run_time, sizeof(run_time));
  fd_.reset(fd < 0 ? -1 : fd);
}

Result<ProgramTime> program_time(int program_fd) {
  sys::ProgramRuns info;
  const int size = sys::object_info(program_fd, info);
  if (size < static_cast<int>(sizeof(info)))
    return fail(size < 0 ? os_failure(ErrorKind::io, "ask how long a program ran", -size)
                         : Error{ErrorKind::not_supported, "this kernel does not tell how long programs run"});
  return ProgramTime{info.nanoseconds, info.runs};
}

Result<double> trap_cost(TrappedInstruction instruction, bool on_perf_event) {
  const TrappedFunction function = trapped_function(instruction);
  const auto place = TRY(file_place(reinterpret_cast<const void*>(function)));
  const int program =
      load_trivial_program(kInsnMoveR0, {.attach_type = on_perf_event ? 0 : sys::kBpfAttachTraceUprobeMulti});
  if (program < 0) return fail(os_failure(ErrorKind::io, "load a program to measure what a hit costs", -program));
  const sys::UniqueFd owner(program);
  Caller child(function);
  Rounds calm, trapped;
  Probe probe;
  if (child.pid() < 0 || !child.run(calm)) return fail(ErrorKind::io, "measure what a hit costs: no child to do so");
  if (const int error = (on_perf_event ? attach_event : attach_link)(program, place, child.pid(), probe); error < 0)
    return fail(os_failure(ErrorKind::io, "measure what a hit costs", -error));
  const auto before = program_time(program);
  if (!child.run(trapped)) return fail(ErrorKind::io, "measure what a hit costs: the child ended");
  const auto after = program_time(program);
  child.end();
  double cost = trapped.of_call() - calm.of_call();
  if (before && after && after->runs > before->runs)
    cost -=
        static_cast<double>(after->nanoseconds - before->nanoseconds) / static_cast<double>(after->runs - before->runs);
  return std::max(cost, 0.0);
}

}  // namespace usdt::features
