// SPDX-License-Identifier: BSD-2-Clause
// Hits that the kernel ran no program for, in words.
#include "missed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace usdt_trace {
namespace {

using usdt::Misses;
using usdt::PointKind;

/// Mechanisms that miss hits for one reason.
struct Cause {
  Misses misses;
  PointKind points;
  std::string_view because;
  std::string_view counted_since;
};

constexpr std::array<Cause, 4> kCauses = {
    Cause{
        Misses::in_program, PointKind::kernel_function,
        "a task was preempted or interrupted within the program, which is not run again on that processor until it is "
        "through (kprobe names miss none so)",
        "5.12"},
    Cause{
        Misses::in_program, PointKind::tracepoint,
        "a task was preempted or interrupted within the program, which is not run again on that processor until it is "
        "through",
        "5.12"},
    Cause{Misses::in_kprobe, PointKind::kernel_function,
          "the processor was within a BPF program or map call, or more calls were under way than the kernel remembers",
          "6.10"},
    Cause{Misses::none, PointKind::file,
          "a thread was in more calls than the kernel's return probes remember, or a program was hit within itself",
          "5.12"}};

}  // namespace

std::string missed_text(std::span<const usdt::MissedHits> missed) {
  std::string text;
  for (const Cause& cause : kCauses) {
    std::uint64_t hits = 0;
    bool known = true;
    for (const usdt::MissedHits& counter : missed) {
      const usdt::BackendInfo& backend = backend_info(counter.backend);
      if (backend.misses != cause.misses || backend.points != cause.points) continue;
      hits += counter.hits.value_or(0);
      known = known && counter.hits;
    }
    // At functions of processes, only the kernel's return probes miss calls that are in no other number.
    if (!known && cause.points == PointKind::file) continue;
    if (!known)
      text += fmt::format("; this kernel does not say whether it missed any (Linux {} does)", cause.counted_since);
    else if (hits > 0)
      text += fmt::format("; {} missed: {}", hits, cause.because);
  }
  return text;
}

std::string missed_text(const usdt::ProbeCounts& probe) {
  return probe.missed.value_or(0) > 0 ? fmt::format(", {} missed", *probe.missed) : std::string();
}

bool any_missed(std::span<const usdt::MissedHits> missed) {
  return std::ranges::any_of(missed, [](const usdt::MissedHits& counter) { return counter.hits.value_or(0) > 0; });
}

}  // namespace usdt_trace
