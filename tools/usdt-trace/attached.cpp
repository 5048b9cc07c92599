// SPDX-License-Identifier: BSD-2-Clause
#include "attached.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "notice.hpp"
#include "output.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::counted;

std::string by(const Flags& flags, usdt::Backend way) {
  return flags.verbose ? fmt::format(" by {}", to_string(way)) : std::string();
}

/// How many functions and tracepoints by each way.
std::map<usdt::Backend, std::size_t> attached_in_kernel(const usdt::Tracer& tracer) {
  const usdt::AttachPlan& plan = tracer.plan();
  std::vector<bool> refused(plan.probes.size());
  for (const usdt::SkippedSite& site : tracer.link().refused()) refused[site.probe.value] = true;
  std::map<usdt::Backend, std::size_t> counts;
  for (const usdt::AttachGroup& group : plan.groups) {
    if (!std::holds_alternative<usdt::KernelModule>(group.of)) continue;
    const auto attached = std::ranges::count_if(
        group.sites, [&](usdt::Index<usdt::PlannedSite> site) { return !refused[plan.sites[site].probe.value]; });
    if (attached > 0) counts[group.backend] += static_cast<std::size_t>(attached);
  }
  return counts;
}

}  // namespace

std::string attached_text(const Flags& flags, const usdt::Tracer& tracer) {
  const usdt::AttachPlan& plan = tracer.plan();
  std::vector<std::string> parts;
  std::size_t in_files = tracer.link().attached();
  std::map<std::string_view, std::size_t> in_kernel;
  for (const auto& [way, count] : attached_in_kernel(tracer)) {
    in_files -= count;
    const bool tracepoints = usdt::backend_info(way).points == usdt::PointKind::tracepoint;
    const std::string_view what = tracepoints ? "raw tracepoint" : "kernel function";
    in_kernel[what] += count;
    if (flags.verbose) parts.push_back(counted(count, what) + by(flags, way));
  }
  for (const auto& [what, count] : in_kernel)
    if (!flags.verbose) parts.push_back(counted(count, what));
  if (!plan.files.empty()) {
    const auto probes = std::count_if(plan.probes.begin(), plan.probes.end(),
                                      [](const usdt::PlannedProbe& probe) { return probe.file && !probe.span; });
    // Both sides of spans may be in one.
    std::set<std::filesystem::path> files;
    for (const usdt::PlannedFile& file : plan.files) files.insert(file.target.access);
    parts.insert(parts.begin(), fmt::format("{} of {} in {}{}", counted(in_files, "site"),
                                            counted(static_cast<std::size_t>(probes), "probe"),
                                            counted(plan.spans ? files.size() : plan.files.size(), "file"),
                                            by(flags, tracer.link().backend())));
  }
  return fmt::format("{}", fmt::join(parts, ", and "));
}

std::vector<usdt::SkippedSite> skipped_sites(const usdt::Tracer& tracer) {
  std::vector<usdt::SkippedSite> all = tracer.plan().skipped;
  const auto& refused = tracer.link().refused();
  all.insert(all.end(), refused.begin(), refused.end());
  return all;
}

void report_skipped(const Flags& flags, const usdt::Tracer& tracer) {
  constexpr std::size_t most = 10;
  const auto all = skipped_sites(tracer);
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    const usdt::PlannedProbe& probe = tracer.plan().probes[all[i].probe];
    const std::string where = probe.file && all[i].pc ? fmt::format(" at {:#x}", all[i].pc->value) : "";
    notice(flags, fmt::format("not attached: {}{}: {}", full_name(tracer.plan(), probe), where, all[i].reason));
  }
  if (all.size() <= most) return;
  std::map<std::string_view, std::size_t> by_reason;
  for (std::size_t i = most; i < all.size(); ++i) ++by_reason[all[i].reason];
  std::vector<std::pair<std::size_t, std::string_view>> reasons;
  for (const auto& [reason, count] : by_reason) reasons.emplace_back(count, reason);
  std::sort(reasons.begin(), reasons.end(), std::greater<>());
  std::size_t rest = 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (i < most)
      notice(flags, fmt::format("not attached: {} more: {}", reasons[i].first, reasons[i].second));
    else
      rest += reasons[i].first;
  }
  if (rest > 0) notice(flags, fmt::format("not attached: {} more, for other reasons", rest));
}

}  // namespace usdt_trace
