// SPDX-License-Identifier: BSD-2-Clause
#include "session/notice_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/counted.hpp"
#include "usdt/link.hpp"

namespace usdt::session {
namespace {

std::string by(bool verbose, Backend way) { return verbose ? fmt::format(" by {}", to_string(way)) : std::string(); }

/// How many functions and tracepoints by each way.
std::map<Backend, std::size_t> attached_in_kernel(const Tracer& tracer) {
  const AttachPlan& plan = tracer.plan();
  std::vector<bool> refused(plan.probes.size());
  for (const SkippedSite& site : tracer.link().refused()) refused[site.probe.value] = true;
  std::map<Backend, std::size_t> counts;
  for (const AttachGroup& group : plan.groups) {
    if (!std::holds_alternative<KernelModule>(group.of)) continue;
    const auto attached = std::ranges::count_if(
        group.sites, [&](Index<PlannedSite> site) { return !refused[plan.sites[site].probe.value]; });
    if (attached > 0) counts[group.backend] += static_cast<std::size_t>(attached);
  }
  return counts;
}

}  // namespace

std::string attached_text(const Tracer& tracer, bool verbose) {
  const AttachPlan& plan = tracer.plan();
  std::vector<std::string> parts;
  std::size_t in_files = tracer.link().attached();
  std::map<std::string_view, std::size_t> in_kernel;
  for (const auto& [way, count] : attached_in_kernel(tracer)) {
    in_files -= count;
    const bool tracepoints = backend_info(way).points == PointKind::tracepoint;
    const std::string_view what = tracepoints ? "raw tracepoint" : "kernel function";
    in_kernel[what] += count;
    if (verbose) parts.push_back(counted(count, what) + by(verbose, way));
  }
  for (const auto& [what, count] : in_kernel)
    if (!verbose) parts.push_back(counted(count, what));
  if (!plan.files.empty()) {
    const auto probes = std::count_if(plan.probes.begin(), plan.probes.end(),
                                      [](const PlannedProbe& probe) { return probe.file && !probe.span; });
    // Both sides of spans may be in one.
    std::set<std::filesystem::path> files;
    for (const PlannedFile& file : plan.files) files.insert(file.target.access);
    parts.insert(parts.begin(), fmt::format("{} of {} in {}{}", counted(in_files, "site"),
                                            counted(static_cast<std::size_t>(probes), "probe"),
                                            counted(plan.spans ? files.size() : plan.files.size(), "file"),
                                            by(verbose, tracer.link().backend())));
  }
  return fmt::format("{}", fmt::join(parts, ", and "));
}

std::vector<SkippedSite> skipped_sites(const Tracer& tracer) {
  std::vector<SkippedSite> all = tracer.plan().skipped;
  const auto& refused = tracer.link().refused();
  all.insert(all.end(), refused.begin(), refused.end());
  return all;
}

namespace {

/// The sites that are left out for one reason.
struct LeftOut {
  std::string_view reason;
  std::size_t sites = 0;
  std::vector<std::string> names = {};  ///< each probe once
};

/// Groups sites by reason, in the order in which the reasons come first.
std::vector<LeftOut> by_reason(const AttachPlan& plan, const std::vector<SkippedSite>& all) {
  std::vector<LeftOut> reasons;
  std::map<std::string_view, std::size_t> places;
  for (const SkippedSite& site : all) {
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

}  // namespace

std::vector<SessionNotice> notices_of_reasons(const AttachPlan& plan, const std::vector<SkippedSite>& sites,
                                              SessionNotice::Kind kind, std::string_view what) {
  constexpr std::size_t most = 10;
  std::vector<SessionNotice> notices;
  std::size_t rest = 0;
  for (const LeftOut& each : by_reason(plan, sites)) {
    if (notices.size() >= most) {
      rest += each.sites;
      continue;
    }
    const SkippedSite& first = *std::ranges::find(sites, each.reason, &SkippedSite::reason);
    const bool has_place = plan.probes[first.probe].file && first.pc;
    std::string text;
    if (each.sites == 1)
      text = fmt::format("{}: {}{}: {}", what, each.names[0],
                         has_place ? fmt::format(" at {:#x}", first.pc->value) : "", each.reason);
    else
      text = fmt::format("{}: {} ({}): {}", what, counted(each.sites, "site"), names_text(each.names), each.reason);
    notices.push_back({kind, each.sites == 1 ? each.names[0] : std::string(), std::move(text)});
  }
  if (rest > 0) notices.push_back({kind, {}, fmt::format("{}: {} more, for other reasons", what, rest)});
  return notices;
}

SessionNotice notice_of_all(const AttachPlan& plan, const std::vector<SkippedSite>& sites) {
  const auto reasons = by_reason(plan, sites);
  const std::size_t more = reasons.size() - 1;
  return {SessionNotice::Kind::incomplete,
          {},
          fmt::format("not attached: {}: {}{}", counted(sites.size(), "site"), reasons.front().reason,
                      more > 0 ? fmt::format("; {} more", counted(more, "reason")) : "")};
}

namespace {

std::string what_came(const Followed& followed) {
  switch (followed.kind) {
    case FollowKind::library:
      return fmt::format("process {} opened {}", followed.pid, followed.file);
    case FollowKind::program:
      return fmt::format("process {} runs {}", followed.pid, followed.file);
    case FollowKind::runtime:
      return fmt::format("process {} made probes, in {}", followed.pid, followed.file);
    case FollowKind::file:
      return fmt::format("{} is a new file", followed.file);
    case FollowKind::gone:
      return fmt::format("{} is gone", followed.file);
    case FollowKind::unused:
      return fmt::format("{} is mapped by nobody", followed.file);
  }
  return followed.file;
}

}  // namespace

std::string followed_text(const Followed& followed) {
  const std::string what = what_came(followed);
  if (!followed.error.empty()) return fmt::format("not followed: {}: {}", what, followed.error);
  return fmt::format("followed: {}: {} of {} attached, {:.1f} ms after", what, counted(followed.attached, "site"),
                     counted(followed.probes, "probe"), static_cast<double>(followed.after_ns) / 1e6);
}

std::string half_came_text(const Followed& followed) {
  return fmt::format("waiting on: {}, which has one side of the spans", what_came(followed));
}

namespace {

/// "a file: NAME", "37 files: NAME, NAME, NAME, ..."; a name that was replaced again and again, once.
std::string files_text(const std::vector<std::string>& files) {
  constexpr std::size_t most = 3;
  std::vector<std::string> shown;
  for (const std::string& file : files)
    if (shown.size() < most && std::ranges::find(shown, file) == shown.end()) shown.push_back(file);
  return fmt::format("{}: {}{}", files.size() == 1 ? "a file" : fmt::format("{} files", files.size()),
                     fmt::join(shown, ", "), shown.size() < files.size() ? ", ..." : "");
}

/// "3 sites detached, its hits stay counted"
std::string detached_text(const std::vector<std::string>& files, std::size_t sites) {
  return fmt::format("{} detached, {} hits stay counted", counted(sites, "site"), files.size() == 1 ? "its" : "their");
}

}  // namespace

std::string let_go_text(const std::vector<std::string>& files, std::size_t sites) {
  return fmt::format("let go: {}, gone, and mapped by nobody: {}", files_text(files), detached_text(files, sites));
}

std::string made_room_text(const std::vector<std::string>& files, std::size_t sites) {
  return fmt::format(
      "let go, to make room for others: {}, mapped by nobody: {}; whoever maps one again has it traced again. "
      "This is not said again",
      files_text(files), detached_text(files, sites));
}

std::string crowded_text(std::uint32_t most, std::string_view option_prefix) {
  return fmt::format(
      "not followed: files of a user who has as many as one may have: half of {}max-followed, {}, at once, and half of "
      "{} in all. This is not said again",
      option_prefix, most, Tracer::kMostEver);
}

std::vector<std::string> lines_of(const FollowCounts& counts) {
  std::vector<std::string> lines;
  if (counts.too_short > 0)
    lines.push_back(
        fmt::format("  {} of processes too short-lived to be looked at", counted(counts.too_short, "mapping")));
  if (counts.lost > 0)
    lines.push_back(fmt::format("  {} the kernel had no room to tell what was mapped; everybody was looked at then",
                                counted(counts.lost, "time")));
  if (counts.dropped > 0) lines.push_back(fmt::format("  {} files came too fast to be followed", counts.dropped));
  if (counts.gone > 0)
    lines.push_back(fmt::format("  {} let go when {} gone", counted(counts.gone, "file"),
                                counts.gone == 1 ? "it was" : "they were"));
  if (counts.unused > 0)
    lines.push_back(
        fmt::format("  {} that nobody had mapped let go, to make room for others", counted(counts.unused, "file")));
  if (counts.crowded > 0)
    lines.push_back(fmt::format("  {} a file was not followed, since its owner had as many as one may have",
                                counted(counts.crowded, "time")));
  if (counts.held > 0)
    lines.push_back(fmt::format("  {} held at their start: 99 of 100 for at most {:.3f} ms, the longest {:.3f} ms",
                                counted(counts.held, "program"), static_cast<double>(counts.hold_p99_ns) / 1e6,
                                static_cast<double>(counts.hold_max_ns) / 1e6));
  if (counts.let_go > 0)
    lines.push_back(fmt::format("  {} went on after a second, traced or not", counted(counts.let_go, "program")));
  return lines;
}

}  // namespace usdt::session
