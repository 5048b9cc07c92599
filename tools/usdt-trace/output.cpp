// SPDX-License-Identifier: BSD-2-Clause
#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace usdt_trace {

usdt::ProbeCounts Summary::total() const {
  usdt::ProbeCounts sum;
  for (const usdt::ProbeCounts& probe : probes) {
    sum.hits += probe.hits;
    sum.delivered += probe.delivered;
    sum.ring_full += probe.ring_full;
    sum.discarded += probe.discarded;
  }
  return sum;
}

std::string full_name(const usdt::AttachPlan& plan, const usdt::PlannedProbe& probe) {
  if (probe.file == usdt::kNone) return fmt::format("{}:{}", probe.provider, probe.name);
  return usdt::probe_name(plan.files[probe.file].target, probe.provider, probe.name);
}

bool write_out(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace usdt_trace
