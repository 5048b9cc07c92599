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

template <class Info>
std::optional<std::uint64_t> missed_in(int fd) noexcept {
  Info info;
  if (sys::object_info(fd, info) < static_cast<int>(sizeof(info))) return std::nullopt;
  return info.missed;
}

}  // namespace

std::optional<std::uint64_t> missed_by(std::span<const backends::LinkFd> links) noexcept {
  std::uint64_t sum = 0;
  for (const backends::LinkFd& link : links) {
    if (!is_kprobe(link.backend)) continue;
    const auto missed = link.backend == Backend::perf_kprobe ? missed_in<sys::PerfKprobeInfo>(link.get())
                                                             : missed_in<sys::KprobeMultiInfo>(link.get());
    if (!missed) return std::nullopt;
    sum += *missed;
  }
  return sum;
}

std::optional<std::uint64_t> Link::missed() const {
  const auto kprobes = [](const auto& each) { return is_kprobe(each.first); };
  if (std::ranges::any_of(impl_->by_backend, kprobes) && !counts_misses_of_kprobes()) return std::nullopt;
  const auto by_links = impl_->fds.empty() ? impl_->missed_by_links : missed_by(impl_->fds);
  if (impl_->programs.empty() || !by_links) return std::nullopt;
  std::uint64_t sum = *by_links;
  for (const sys::UniqueFd& program : impl_->programs) {
    sys::ProgramInfo info;
    if (sys::object_info(program.get(), info) < static_cast<int>(sizeof(info))) return std::nullopt;
    sum += info.recursion_misses;
  }
  return sum;
}

}  // namespace usdt
