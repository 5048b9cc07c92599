// SPDX-License-Identifier: BSD-2-Clause
#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace usdt_trace {

usdt::ProbeCounts Summary::total() const {
  usdt::ProbeCounts sum;
  for (const usdt::ProbeCounts& probe : probes) {
    sum.hits += probe.hits;
    sum.delivered += probe.delivered;
    sum.ring_full += probe.ring_full;
    sum.calls_full += probe.calls_full;
    sum.unfinished += probe.unfinished;
    sum.discarded += probe.discarded;
  }
  return sum;
}

bool has_calls(const usdt::AttachPlan& plan) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [](const usdt::PlannedKernel& group) { return group.kind.moment == usdt::KernelMoment::call; });
}

Columns::Columns(const usdt::AttachPlan& plan, const PrintList& print) {
  for (const std::vector<usdt::Arg>& args : plan.args) {
    auto& row = positions_.emplace_back();
    for (const PrintItem& item : print) row.push_back(position_of(item, args));
  }
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
