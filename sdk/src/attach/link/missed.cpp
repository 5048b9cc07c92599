// SPDX-License-Identifier: BSD-2-Clause
#include "link/missed.hpp"

#include <algorithm>

#include "backend/table.hpp"
#include "link/return_depth.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"

namespace usdt::backends {
namespace {

bool is_kprobe(Backend backend) noexcept { return backend_info(backend).misses == Misses::in_kprobe; }

/// Kernels since 6.7 count them, in programs (commits dd8657894c11 and f915fcb38553) and links; before, 0 is what they
/// say. That cannot be asked without a miss: what came soon after can.
bool counts_misses_of_kprobes() { return probe_feature(Feature::raw_tp_cookie).answer == Answer::yes; }

/// Nothing where the kernel's struct ends before the counter.
template <class Counter>
std::optional<std::uint64_t> count_of(int fd) noexcept {
  Counter counter;
  if (sys::object_info(fd, counter) < static_cast<int>(sizeof(counter))) return std::nullopt;
  return counter.count;
}

}  // namespace

std::optional<std::uint64_t> recursion_misses(int program_fd) noexcept {
  return count_of<sys::RecursionMisses>(program_fd);
}

std::vector<MissedHits> missed_by_links(const KernelLinks& links) {
  std::vector<MissedHits> out;
  const std::vector<LinkFd>& fds = links.fds();
  for (std::size_t i = 0; i < fds.size() && i < links.served().size(); ++i) {
    const Served& served = links.served()[i];
    if (const auto deep = deep_calls(fds[i].deep_calls)) out.push_back({served.backend, deep, served.probes});
    if (!is_kprobe(served.backend)) continue;
    const int fd = fds[i].get();
    const auto count = row_of(served.backend).on_perf_event ? count_of<sys::PerfKprobeMissed>(fd)
                                                            : count_of<sys::KprobeMultiMissed>(fd);
    out.push_back({served.backend, count, served.probes});
  }
  return out;
}

void leave_out_uncounted(std::vector<MissedHits>& all) {
  if (std::ranges::none_of(all, is_kprobe, &MissedHits::backend) || counts_misses_of_kprobes()) return;
  for (MissedHits& missed : all)
    if (is_kprobe(missed.backend)) missed.hits.reset();
}

}  // namespace usdt::backends
