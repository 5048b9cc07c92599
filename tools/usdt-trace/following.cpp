// SPDX-License-Identifier: BSD-2-Clause
#include "following.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>
#include <variant>

#include "common/report.hpp"
#include "run.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

/// Paths whose next file is meant, too: those of traced files, and those that are named, whether they exist or not.
std::vector<std::filesystem::path> paths_of(const std::vector<usdt::PointPattern>& patterns,
                                            const std::vector<KnownFile>& known) {
  std::vector<std::filesystem::path> paths;
  for (const auto& [target, elf] : known)
    if (!target.deleted && target.access == target.path) paths.push_back(target.path);
  for (const usdt::PointPattern& pattern : patterns) {
    const std::string* target = usdt::target_of(pattern);
    if (target == nullptr || target->find('/') == target->npos || usdt::has_glob(*target)) continue;
    const std::filesystem::path path(*target);
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

std::string what_came(const usdt::Followed& followed) {
  switch (followed.kind) {
    case usdt::FollowKind::library:
      return fmt::format("process {} opened {}", followed.pid, followed.file);
    case usdt::FollowKind::program:
      return fmt::format("process {} runs {}", followed.pid, followed.file);
    case usdt::FollowKind::runtime:
      return fmt::format("process {} made probes, in {}", followed.pid, followed.file);
    case usdt::FollowKind::file:
      return fmt::format("{} is a new file", followed.file);
    case usdt::FollowKind::gone:
      return fmt::format("{} is gone", followed.file);
  }
  return followed.file;
}

}  // namespace

usdt::Followed followed(const usdt::FollowEvent& event) {
  usdt::Followed told;
  told.kind = event.kind;
  told.pid = event.pid;
  told.file = event.file.target.path.native();
  told.time = event.time;
  told.wall_time = usdt::read_clocks().wall_offset + static_cast<std::int64_t>(event.time);
  return told;
}

usdt::Followed followed_in_vain(const usdt::FollowEvent& event, const usdt::Error& error) {
  usdt::Followed told = followed(event);
  told.error = error.message;
  return told;
}

usdt::Followed followed_and_attached(const usdt::FollowEvent& event, const usdt::AttachPlan& part, std::size_t sites) {
  usdt::Followed told = followed(event);
  const std::uint64_t now = usdt::event_clock();
  told.after_ns = now - std::min(now, event.time);
  told.probes = static_cast<std::size_t>(
      std::ranges::count_if(part.probes, [](const usdt::PlannedProbe& probe) { return !probe.span; }));
  told.sites = part.places();
  told.attached = sites;
  return told;
}

std::string followed_text(const usdt::Followed& followed) {
  const std::string what = what_came(followed);
  if (!followed.error.empty()) return fmt::format("not followed: {}: {}", what, followed.error);
  return fmt::format("followed: {}: {} of {} attached, {:.1f} ms after", what,
                     usdt::tools::counted(followed.attached, "site"), usdt::tools::counted(followed.probes, "probe"),
                     static_cast<double>(followed.after_ns) / 1e6);
}

std::string half_came_text(const usdt::Followed& followed) {
  return fmt::format("waiting on: {}, which has one side of the spans", what_came(followed));
}

std::string let_go_text(const std::vector<std::string>& files, std::size_t sites) {
  constexpr std::size_t most = 3;
  const bool one = files.size() == 1;
  std::vector<std::string> shown;  // a name that was replaced again and again, once
  for (const std::string& file : files)
    if (shown.size() < most && std::ranges::find(shown, file) == shown.end()) shown.push_back(file);
  return fmt::format("let go: {}: {}{}, gone, and mapped by nobody: {} detached, {} hits stay counted",
                     one ? "a file" : fmt::format("{} files", files.size()), fmt::join(shown, ", "),
                     shown.size() < files.size() ? ", ..." : "", usdt::tools::counted(sites, "site"),
                     one ? "its" : "their");
}

usdt::Result<void> Following::open() {
  if (!flags_.question.following.follow) return {};
  if (std::ranges::none_of(usdt::all_patterns(flags_.question),
                           [](const auto& each) { return usdt::target_of(each) != nullptr; }))
    return {};
  auto follower = usdt::Follower::open();
  if (!follower) return usdt::fail(follower.error());
  follower_.emplace(std::move(*follower));
  return {};
}

usdt::Result<void> Following::begin(const usdt::Subjects& subjects, std::optional<pid_t> command,
                                    const std::vector<KnownFile>& known, std::function<void()> on_event) {
  if (!follower_ || begun_) return {};
  usdt::FollowOptions options{.patterns = usdt::all_patterns(flags_.question), .on_event = std::move(on_event)};
  options.scope.pids = subjects.pids;
  options.scope.cgroups = subjects.cgroups;
  if (command) options.scope.pids.push_back(*command);
  options.hold_exec = flags_.question.following.hold_exec;
  options.tell_gone = flags_.question.limits.max_overhead == 0;
  options.scope.descendants = command || flags_.question.processes.children;
  const bool of_processes = !options.scope.pids.empty() || !options.scope.cgroups.empty();
  // Of everybody's: where it was left open which files are meant.
  options.scope.processes = of_processes || flags_.question.following.wait || flags_.question.following.hold_exec ||
                            std::ranges::any_of(options.patterns, usdt::looks_everywhere);
  // The next file of a name is one of a process only once that maps it.
  if (subjects.pids.empty()) options.paths = paths_of(options.patterns, known);
  for (const auto& [target, elf] : known) options.known.push_back(elf);
  begun_ = true;
  if (flags_.question.following.hold_exec) ignore_stop_signals();
  return follower_->begin(std::move(options));
}

std::vector<usdt::FollowEvent> Following::take() {
  return begun_ ? follower_->take() : std::vector<usdt::FollowEvent>();
}

void Following::done(const usdt::FollowEvent& event) { follower_->done(event); }

void Following::refused(const usdt::FollowEvent& event) { follower_->refused(event); }

std::vector<std::string> Following::account() const {
  if (!begun_) return {};
  const usdt::FollowCounts counts = follower_->counts();
  std::vector<std::string> lines;
  if (counts.too_short > 0)
    lines.push_back(fmt::format("  {} of processes too short-lived to be looked at",
                                usdt::tools::counted(counts.too_short, "mapping")));
  if (counts.lost > 0)
    lines.push_back(fmt::format("  {} the kernel had no room to tell what was mapped; everybody was looked at then",
                                usdt::tools::counted(counts.lost, "time")));
  if (counts.dropped > 0) lines.push_back(fmt::format("  {} files came too fast to be followed", counts.dropped));
  if (counts.gone > 0)
    lines.push_back(fmt::format("  {} let go when {} gone", usdt::tools::counted(counts.gone, "file"),
                                counts.gone == 1 ? "it was" : "they were"));
  if (counts.held > 0)
    lines.push_back(fmt::format("  {} held at their start: 99 of 100 for at most {:.3f} ms, the longest {:.3f} ms",
                                usdt::tools::counted(counts.held, "program"),
                                static_cast<double>(counts.hold_p99_ns) / 1e6,
                                static_cast<double>(counts.hold_max_ns) / 1e6));
  if (counts.let_go > 0)
    lines.push_back(
        fmt::format("  {} went on after a second, traced or not", usdt::tools::counted(counts.let_go, "program")));
  return lines;
}

}  // namespace usdt_trace
