// SPDX-License-Identifier: BSD-2-Clause
// Link::missed_hits: hits that no program was run for.
#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/table.hpp"
#include "link/link_impl.hpp"
#include "link/return_depth.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Probes = std::vector<Index<PlannedProbe>>;

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

/// Probes of attached sites [first, first + count): sites of one probe follow each other.
Probes part(const Probes& sites, std::size_t first, std::size_t count) {
  const auto end = std::min(sites.size(), first + count);
  Probes probes(sites.begin() + static_cast<std::ptrdiff_t>(std::min(first, end)),
                sites.begin() + static_cast<std::ptrdiff_t>(end));
  std::ranges::sort(probes);
  probes.erase(std::unique(probes.begin(), probes.end()), probes.end());
  return probes;
}

}  // namespace

void Link::Impl::note_served(const backends::FileLinks& links, Backend attached_by, const Probes& probes) {
  std::size_t first = 0;
  for (const backends::LinkFd& link : links.fds) {
    const bool all = static_cast<bool>(link.deep_calls);
    served_by_links.push_back({attached_by, all ? part(probes, 0, probes.size()) : part(probes, first, link.sites)});
    first += link.sites;
  }
  // Loaded for one function each, or one for all.
  const bool one_each = links.programs.size() == probes.size();
  for (std::size_t i = 0; i < links.programs.size(); ++i)
    served_by_programs.push_back({attached_by, one_each ? Probes{probes[i]} : part(probes, 0, probes.size())});
}

void Link::Impl::note_program(std::size_t index, Backend attached_by, const Probes& probes,
                              std::optional<Index<PlannedFile>> file) {
  if (index == served_by_programs.size()) served_by_programs.push_back({attached_by, {}});
  if (file) served_by_programs[index].files.insert(*file);
  Probes& known = served_by_programs[index].probes;
  known.insert(known.end(), probes.begin(), probes.end());
  known = part(known, 0, known.size());
}

std::vector<MissedHits> Link::Impl::ask_links() const {
  std::vector<MissedHits> out;
  for (std::size_t i = 0; i < fds.size() && i < served_by_links.size(); ++i) {
    const Served& served = served_by_links[i];
    if (const auto deep = backends::deep_calls(fds[i].deep_calls)) out.push_back({served.backend, deep, served.probes});
    if (!is_kprobe(served.backend)) continue;
    const int fd = fds[i].get();
    const auto count = backends::row_of(served.backend).on_perf_event ? count_of<sys::PerfKprobeMissed>(fd)
                                                                      : count_of<sys::KprobeMultiMissed>(fd);
    out.push_back({served.backend, count, served.probes});
  }
  return out;
}

/// What they missed stays known. The first is kept: it tells whether the kernel counts at all.
void Link::Impl::close_programs(const std::set<Index<PlannedFile>>& files) {
  const std::lock_guard lock(mutex);
  for (std::size_t i = programs.size(); i-- > 1;) {
    const Served& served = served_by_programs[i];
    if (served.files.empty() || !std::ranges::includes(files, served.files)) continue;
    if (const auto count = count_of<sys::RecursionMisses>(programs[i].get()); count.value_or(0) > 0)
      missed_before.push_back({served.backend, count, served.probes});
    programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(i));
    served_by_programs.erase(served_by_programs.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<MissedHits> Link::missed_hits() const {
  std::unique_lock lock(impl_->mutex);
  std::vector<MissedHits> out = impl_->fds.empty() ? impl_->missed_by_links : impl_->ask_links();
  out.insert(out.end(), impl_->missed_before.begin(), impl_->missed_before.end());
  lock.unlock();
  for (std::size_t i = 0; i < impl_->programs.size(); ++i) {
    const Served& served = impl_->served_by_programs[i];
    out.push_back({served.backend, count_of<sys::RecursionMisses>(impl_->programs[i].get()), served.probes});
  }
  const bool counted = std::ranges::none_of(out, is_kprobe, &MissedHits::backend) || counts_misses_of_kprobes();
  for (MissedHits& missed : out) {
    if (!counted && is_kprobe(missed.backend)) missed.hits.reset();
  }
  return out;
}

std::optional<std::uint64_t> Link::missed() const {
  if (impl_->programs.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const MissedHits& missed : missed_hits()) {
    if (!missed.hits) return std::nullopt;
    sum += *missed.hits;
  }
  return sum;
}

}  // namespace v1
}  // namespace usdt
