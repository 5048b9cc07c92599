// SPDX-License-Identifier: BSD-2-Clause
#include "attached.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "notice.hpp"
#include "output.hpp"
#include "usdt/shortened.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::counted;

std::string by(const Flags& flags, usdt::Backend way) {
  return flags.output.verbose ? fmt::format(" by {}", to_string(way)) : std::string();
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
    if (flags.output.verbose) parts.push_back(counted(count, what) + by(flags, way));
  }
  for (const auto& [what, count] : in_kernel)
    if (!flags.output.verbose) parts.push_back(counted(count, what));
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

namespace {

/// What was left out for one reason.
struct LeftOut {
  std::string_view reason;
  std::size_t sites = 0;
  std::vector<std::string> names = {};  ///< each probe once
};

/// In the order in which the reasons come first.
std::vector<LeftOut> by_reason(const usdt::AttachPlan& plan, const std::vector<usdt::SkippedSite>& all) {
  std::vector<LeftOut> reasons;
  std::map<std::string_view, std::size_t> places;
  for (const usdt::SkippedSite& site : all) {
    const auto [place, fresh] = places.try_emplace(site.reason, reasons.size());
    if (fresh) reasons.push_back({site.reason});
    LeftOut& left_out = reasons[place->second];
    ++left_out.sites;
    std::string name = full_name(plan, plan.probes[site.probe]);
    if (left_out.names.empty() || left_out.names.back() != name) left_out.names.push_back(std::move(name));
  }
  return reasons;
}

/// "a, b, c and 27 more"
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  const std::size_t shown = names.size() <= most + 1 ? names.size() : most;
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

/// What became of sites: a line for each of the first reasons.
void tell_reasons(const Flags& flags, const usdt::AttachPlan& plan, const std::vector<usdt::SkippedSite>& all,
                  std::string_view what) {
  constexpr std::size_t most = 10;
  const auto reasons = by_reason(plan, all);
  std::size_t rest = 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const LeftOut& each = reasons[i];
    if (i >= most) {
      rest += each.sites;
      continue;
    }
    const usdt::SkippedSite& first = *std::ranges::find(all, each.reason, &usdt::SkippedSite::reason);
    const bool has_place = plan.probes[first.probe].file && first.pc;
    if (each.sites == 1)
      notice(flags, fmt::format("{}: {}{}: {}", what, each.names[0],
                                has_place ? fmt::format(" at {:#x}", first.pc->value) : "", each.reason));
    else
      notice(flags,
             fmt::format("{}: {} ({}): {}", what, counted(each.sites, "site"), names_text(each.names), each.reason));
  }
  if (rest > 0) notice(flags, fmt::format("{}: {} more, for other reasons", what, rest));
}

}  // namespace

void report_skipped(const Flags& flags, const usdt::Tracer& tracer) {
  const auto all = skipped_sites(tracer);
  const auto reasons = by_reason(tracer.plan(), all);
  const bool asks = flags.question.where != nullptr || flags.question.view.question != nullptr;
  if (flags.output.quiet && asks && !all.empty())  // the answer is not about all that was named
    usdt::tools::print_notice(
        fmt::format("not attached: {}: {}{}", counted(all.size(), "site"), reasons.front().reason,
                    reasons.size() > 1 ? fmt::format("; {} more", counted(reasons.size() - 1, "reason")) : ""));
  tell_reasons(flags, tracer.plan(), all, "not attached");
}

std::size_t report_shortened(const Flags& flags, const usdt::Tracer& tracer, std::size_t told) {
  const std::vector<usdt::SkippedSite> all = usdt::shortened_sites(tracer.plan());
  if (told < all.size())
    tell_reasons(flags, tracer.plan(), {all.begin() + static_cast<std::ptrdiff_t>(told), all.end()}, "not all values");
  return all.size();
}

}  // namespace usdt_trace
