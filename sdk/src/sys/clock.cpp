// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/clock.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "sys/read.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

/// Takes the number that `text` begins with, behind blanks, from it.
std::int64_t take_number(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

/// Returns how much CLOCK_MONOTONIC of this process's time namespace is ahead of the initial one's, ns. The file is
/// about the namespace of children to come (proc_timens_show_offsets() of kernel/time/namespace.c), which is this
/// process's unless it has just made another one for them.
std::int64_t namespace_offset() {
  constexpr ino_t initial = 0xEFFFFFFAu;  // PROC_TIME_INIT_INO, include/linux/proc_ns.h
  struct stat own {
  }, of_children{};
  if (::stat("/proc/self/ns/time", &own) != 0 || own.st_ino == initial) return 0;
  if (::stat("/proc/self/ns/time_for_children", &of_children) != 0 || of_children.st_ino != own.st_ino) return 0;
  const auto text = sys::read_text("/proc/self/timens_offsets", 4096);
  if (!text) return 0;
  constexpr std::string_view clock = "monotonic";
  const std::size_t line = text->find(clock);
  if (line == text->npos) return 0;
  std::string_view numbers = std::string_view(*text).substr(line + clock.size());
  const std::int64_t seconds = take_number(numbers);
  return seconds * kSecond + take_number(numbers);
}

/// A process does not change its time namespace but when it begins to run a program.
std::int64_t own_offset() {
  static const std::int64_t offset = namespace_offset();
  return offset;
}

}  // namespace

std::uint64_t event_clock() noexcept { return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC) - own_offset()); }

ClockReading read_clocks() noexcept {
  constexpr int most_tries = 8;
  constexpr std::uint64_t soon = 2'000;  // else something came between
  ClockReading reading;
  for (int i = 0; i < most_tries; ++i) {
    const std::uint64_t before = event_clock();
    const std::int64_t wall = nanoseconds(CLOCK_REALTIME);
    reading.event_clock = event_clock();
    const std::uint64_t took = reading.event_clock - before;
    reading.wall_offset = wall - static_cast<std::int64_t>(before + took / 2);
    if (took < soon) break;
  }
  return reading;
}

WallClock::WallClock(Reader read) : read_(read) {
  const ClockReading now = read_();
  eras_.push_back({0, now.wall_offset});
  known_until_ = now.event_clock;
  refined_until_ = now.event_clock + kSecond;
}

/// A clock that runs differently (adjtimex(2): by 500 ppm at most) is followed once a second, in the era there is; one
/// that was set begins another.
void WallClock::look(std::uint64_t timestamp) {
  constexpr std::int64_t step = 1'000'000;
  constexpr std::size_t most_eras = 64;
  const ClockReading now = read_();
  Era& last = eras_.back();
  const auto passed = static_cast<std::int64_t>(now.event_clock - known_until_);
  if (std::llabs(now.wall_offset - last.offset) > step + passed / 1000) {
    if (eras_.size() == most_eras) eras_.erase(eras_.begin());
    eras_.push_back({timestamp, now.wall_offset});
  } else if (now.event_clock >= refined_until_) {
    last.offset = now.wall_offset;
    refined_until_ = now.event_clock + kSecond;
  }
  known_until_ = now.event_clock;
}

std::int64_t WallClock::offset_at(std::uint64_t timestamp) {
  if (timestamp > known_until_) look(timestamp);
  for (std::size_t i = eras_.size(); i-- > 1;)
    if (timestamp >= eras_[i].since) return eras_[i].offset;
  return eras_.front().offset;
}

}  // namespace v1
}  // namespace usdt
