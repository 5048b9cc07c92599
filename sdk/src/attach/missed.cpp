// SPDX-License-Identifier: BSD-2-Clause
// Link::missed: hits that no program was run for.
#include <algorithm>

#include "attach/link_impl.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"

namespace usdt {
namespace {

bool is_kprobe(Backend backend) noexcept {
  return backend == Backend::perf_kprobe || backend == Backend::kprobe_multi || backend == Backend::kprobe_session;
}

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

/// Nothing if one of them does not count.
template <class Each, class Count>
std::optional<std::uint64_t> sum_of(const Each& each, const Count& count) noexcept {
  std::uint64_t sum = 0;
  for (const auto& one : each) {
    const std::optional<std::uint64_t> more = count(one);
    if (!more) return std::nullopt;
    sum += *more;
  }
  return sum;
}

}  // namespace

std::optional<std::uint64_t> missed_by(std::span<const backends::LinkFd> links) noexcept {
  return sum_of(links, [](const backends::LinkFd& link) -> std::optional<std::uint64_t> {
    if (!is_kprobe(link.backend)) return 0;
    return link.backend == Backend::perf_kprobe ? count_of<sys::PerfKprobeMissed>(link.get())
                                                : count_of<sys::KprobeMultiMissed>(link.get());
  });
}

std::optional<std::uint64_t> Link::missed() const {
  const auto kprobes = [](const auto& each) { return is_kprobe(each.first); };
  if (impl_->programs.empty()) return std::nullopt;
  if (std::ranges::any_of(impl_->by_backend, kprobes) && !counts_misses_of_kprobes()) return std::nullopt;
  const auto by_links = impl_->fds.empty() ? impl_->missed_by_links : missed_by(impl_->fds);
  const auto by_programs = sum_of(
      impl_->programs, [](const sys::UniqueFd& program) { return count_of<sys::RecursionMisses>(program.get()); });
  if (!by_links || !by_programs) return std::nullopt;
  return *by_links + *by_programs;
}

}  // namespace usdt
