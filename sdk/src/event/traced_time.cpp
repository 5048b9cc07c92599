// SPDX-License-Identifier: BSD-2-Clause
#include "event/traced_time.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <set>
#include <string_view>

#include "sys/read.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/discover.hpp"

namespace usdt::event {
namespace {

constexpr double kSecond = 1e9;

/// As much of a small file of the kernel's as `room` has room for.
std::string_view contents(const std::filesystem::path& path, std::span<char> room) {
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd ? sys::read_some(fd.get(), room) : -1;
  return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

/// The number that `text` begins with.
double number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return static_cast<double>(value);
}

/// Returns the time of all threads of a process, ended ones included. (CPUCLOCK_SCHED of include/linux/posix-timers.h:
/// the clock's number is the complement of the pid, and three bits.)
std::optional<double> processor_time(pid_t pid) {
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | 2U);
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) * kSecond + static_cast<double>(time.tv_nsec);
}

/// Returns the time of the children that a process has waited for, and of theirs: fields 16 and 17 of /proc/PID/stat.
double reaped_time(pid_t pid) {
  std::array<char, 1024> room{};
  std::string_view text = contents(fmt::format("/proc/{}/stat", pid), room);
  const std::size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return 0;
  text.remove_prefix(name_end + 2);  // field 3
  double ticks = 0;
  for (int field = 3; field <= 17 && !text.empty(); ++field) {
    if (field >= 16) ticks += number(text);
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
  return ticks * kSecond / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// "usage_usec 123"
double cgroup_time(const std::filesystem::path& cgroup) {
  constexpr std::string_view key = "usage_usec ";
  std::array<char, 1024> room{};
  const std::string_view text = contents(cgroup / "cpu.stat", room);
  const std::size_t at = text.find(key);
  return at == text.npos ? 0 : number(text.substr(at + key.size())) * 1000;
}

}  // namespace

TracedTime::TracedTime(const AttachPlan& plan, const TraceOptions& options) {
  if (options.descendants_only || options.family_of) {
    kind_ = Kind::family;
    roots_count_ = !options.descendants_only;  // not the tracer itself
    roots_ = options.descendants_only ? std::vector{::getpid()} : options.family_of->pids();
  } else if (!options.cgroups.empty()) {
    kind_ = Kind::cgroups;
    cgroups_ = options.cgroups;
  } else if (const auto pids = pids_of(plan.scope); !pids.empty()) {
    kind_ = Kind::processes;
    for (const pid_t pid : pids) members_.try_emplace(pid);
  }
}

/// To look takes time of its own, of which this takes a hundredth at most.
void TracedTime::find_members() {
  constexpr int kShare = 100;
  const auto began = Clock::now();
  if (began < next_look_) return;
  std::set<pid_t> living;
  for (const pid_t root : roots_) {
    if (roots_count_) living.insert(root);
    for (const pid_t pid : descendants_of(root)) living.insert(pid);
  }
  // A member whose parent has ended is nobody's descendant any more, but still a member.
  std::erase_if(members_,
                [&](const auto& member) { return !living.contains(member.first) && !processor_time(member.first); });
  for (const pid_t pid : living) members_.try_emplace(pid);
  for (auto& [pid, member] : members_) member.reaped = reaped_time(pid);
  const auto now = Clock::now();
  next_look_ =
      now + std::clamp<Clock::duration>(kShare * (now - began), std::chrono::milliseconds(20), std::chrono::seconds(2));
}

double TracedTime::sum() {
  double sum = 0;
  for (auto& [pid, member] : members_) {
    member.used = processor_time(pid).value_or(member.used);
    sum += member.used + member.reaped;
  }
  for (const auto& cgroup : cgroups_) sum += cgroup_time(cgroup);
  return sum;
}

double TracedTime::read() {
  if (kind_ == Kind::everybody) return static_cast<double>(Clock::now().time_since_epoch().count());
  if (kind_ == Kind::family) find_members();
  const double now = sum();
  gone_ += std::max(last_ - now, 0.0);
  last_ = now;
  return gone_ + now;
}

}  // namespace usdt::event
