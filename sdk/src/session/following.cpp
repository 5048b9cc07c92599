// SPDX-License-Identifier: BSD-2-Clause
#include "session/following.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "base/try.hpp"
#include "usdt/clock.hpp"
#include "usdt/select.hpp"

namespace usdt::session {
namespace {

/// Paths whose next file is meant, too: those of traced files, and those that are named, whether they exist or not.
std::vector<std::filesystem::path> paths_of(const std::vector<PointPattern>& patterns,
                                            const std::vector<KnownFile>& known) {
  std::vector<std::filesystem::path> paths;
  for (const auto& [target, elf] : known)
    if (!target.deleted && target.access == target.path) paths.push_back(target.path);
  for (const PointPattern& pattern : patterns) {
    const std::string* target = target_of(pattern);
    if (target == nullptr || target->find('/') == target->npos || has_glob(*target)) continue;
    const std::filesystem::path path(*target);
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

}  // namespace

Followed followed(const FollowEvent& event) {
  Followed told;
  told.kind = event.kind;
  told.pid = event.pid;
  told.file = event.file.target.path.native();
  told.time = event.time;
  told.wall_time = read_clocks().wall_offset + static_cast<std::int64_t>(event.time);
  return told;
}

Followed followed_in_vain(const FollowEvent& event, const Error& error) {
  Followed told = followed(event);
  told.error = error.message;
  return told;
}

Followed followed_and_attached(const FollowEvent& event, const AttachPlan& part, std::size_t sites) {
  Followed told = followed(event);
  const std::uint64_t now = event_clock();
  told.after_ns = now - std::min(now, event.time);
  told.probes = static_cast<std::size_t>(
      std::ranges::count_if(part.probes, [](const PlannedProbe& probe) { return !probe.span; }));
  told.sites = part.places();
  told.attached = sites;
  return told;
}

Result<void> Following::open() {
  if (!question_.following.follow) return {};
  if (std::ranges::none_of(all_patterns(question_), [](const auto& each) { return target_of(each) != nullptr; }))
    return {};
  auto follower = TRY(Follower::open());
  follower_.emplace(std::move(follower));
  return {};
}

Result<void> Following::begin(const Subjects& subjects, std::optional<pid_t> command,
                              const std::vector<KnownFile>& known, std::function<void()> on_event) {
  if (!follower_ || begun_) return {};
  FollowOptions options{.patterns = all_patterns(question_), .on_event = std::move(on_event)};
  options.scope.pids = subjects.pids;
  options.scope.cgroups = subjects.cgroups;
  if (command) options.scope.pids.push_back(*command);
  options.hold_exec = question_.following.hold_exec;
  options.tell_gone = question_.limits.max_overhead == 0;
  options.most_files = std::min<std::size_t>(question_.following.max_followed, Tracer::kMostAdditions);
  options.most_files_ever = Tracer::kMostEver;
  options.scope.descendants = command || question_.processes.children;
  const bool of_processes = !options.scope.pids.empty() || !options.scope.cgroups.empty();
  // Without chosen processes those of everybody are followed, if the question leaves open which files it is about.
  options.scope.processes = of_processes || question_.following.wait || question_.following.hold_exec ||
                            std::ranges::any_of(options.patterns, looks_everywhere);
  // A process uses the next file of a name only once it maps it: with chosen processes, names are not watched.
  if (subjects.pids.empty()) options.paths = paths_of(options.patterns, known);
  for (const auto& [target, elf] : known)
    if (elf) options.known.push_back(elf);
  begun_ = true;
  return follower_->begin(std::move(options));
}

std::vector<FollowEvent> Following::take() { return begun_ ? follower_->take() : std::vector<FollowEvent>(); }

void Following::done(const FollowEvent& event) { follower_->done(event); }

void Following::refused(const FollowEvent& event, bool for_want_of_room) {
  follower_->refused(event, for_want_of_room);
}

}  // namespace usdt::session
