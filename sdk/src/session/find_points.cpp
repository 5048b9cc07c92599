// SPDX-License-Identifier: BSD-2-Clause
#include "session/find_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "session/option_names.hpp"
#include "session/typed_values.hpp"
#include "usdt/discover.hpp"
#include "usdt/follow.hpp"

namespace usdt {
namespace session {
namespace {

bool means(const FunctionPattern& pattern, const FunctionPoint& point) {
  const auto is_meant = [&](const std::string& name) { return means_function(pattern, name); };
  return point.moment == pattern.moment && (is_meant(point.name) || std::ranges::any_of(point.aliases, is_meant));
}

bool has_one_of(const PointPattern& pattern, const ProbeFile& file) {
  if (const auto* probe = std::get_if<ProbePattern>(&pattern))
    return std::ranges::any_of(file.sites, [&](const Site& site) { return probe->matches(site.provider, site.name); });
  const auto& function = std::get<FunctionPattern>(pattern);
  return std::ranges::any_of(file.functions, [&](const FunctionPoint& point) { return means(function, point); });
}

/// A probe of whatever file is written without one.
std::string as_written(const PointPattern& pattern) {
  const auto* probe = std::get_if<ProbePattern>(&pattern);
  return probe && probe->target.empty() ? fmt::format("{}:{}", probe->provider, probe->name) : to_string(pattern);
}

/// A pattern that means nothing is a mistake that those beside it would hide.
void report_unmatched(const std::vector<PointPattern>& patterns, const Selection& selection, Notices& notices) {
  for (const PointPattern& pattern : patterns) {
    if (std::holds_alternative<KernelPattern>(pattern)) continue;
    if (std::ranges::none_of(selection.files, [&](const ProbeFile& file) { return has_one_of(pattern, file); }))
      notices.push_back({SessionNotice::Kind::unmatched, to_string(pattern),
                         fmt::format("nothing matches '{}'", as_written(pattern))});
  }
}

/// "3 out-of-line, 14 inlined, 2 refused: ...", where a function has copies.
void report_copies(const Selection& selection, Notices& notices) {
  std::size_t inlined = 0;
  std::size_t out_of_line = 0;
  std::size_t refused = 0;
  std::string why;
  for (const ProbeFile& file : selection.files) {
    for (const FunctionPoint& point : file.functions) {
      if (!point.refused.empty()) {
        if (++refused == 1) why = point.refused;
      } else {
        ++(point.inlined ? inlined : out_of_line);
      }
    }
  }
  if (inlined == 0) return;
  const std::string rest = refused == 0 ? "" : fmt::format(", {} refused: {}", refused, why);
  notices.push_back({SessionNotice::Kind::copies,
                     {},
                     fmt::format("places in code: {} out-of-line, {} inlined{}", out_of_line, inlined, rest)});
}

/// Both sides of spans may be in one file, of which each would say the same.
void add_once(SessionNotice notice, Notices& notices) {
  if (std::ranges::find(notices, notice.text, &SessionNotice::text) == notices.end())
    notices.push_back(std::move(notice));
}

}  // namespace

SearchScope search_scope(const Question& question, const Subjects& subjects) {
  SearchScope scope;
  scope.pids = subjects.pids;
  scope.program = subjects.program;
  scope.skip_unknown = question.points.skip_unknown;
  for (const auto& cgroup : subjects.cgroups) {
    const auto pids = processes_of_cgroup(cgroup);
    for (std::size_t i = 0; pids && i < pids->size(); ++i)
      if (files_of_process((*pids)[i])) scope.pids.push_back((*pids)[i]);
  }
  if (!question.processes.children) return scope;
  for (const pid_t pid : subjects.pids) {
    for (const pid_t child : descendants_of(pid))
      if (files_of_process(child)) scope.pids.push_back(child);
  }
  return scope;
}

Result<void> check_cgroups(const Question& question, const Subjects& subjects, const SearchScope& scope) {
  if (subjects.cgroups.empty() || !scope.pids.empty() ||
      std::ranges::none_of(question.points.patterns, looks_everywhere))
    return {};
  return fail(ErrorKind::not_found,
              fmt::format("no process that could be looked at is in {}", subjects.cgroups.front().string()));
}

Error with_hint_at_started(Error error, const Question& question, const std::vector<PointPattern>& patterns) {
  const bool of_command = !question.processes.command.empty() && std::ranges::any_of(patterns, looks_everywhere);
  if (of_command && !question.following.wait && question.following.follow && error.kind == ErrorKind::not_found)
    error.message += session::name_options(
        "; --wait waits for what comes while the command runs, and --wait --hold-exec for another program that it "
        "starts",
        question.option_prefix);
  return error;
}

void report_selection(const Question& question, const std::vector<PointPattern>& patterns, const Selection& selection,
                      Notices& notices) {
  using Kind = SessionNotice::Kind;
  report_unmatched(patterns, selection, notices);
  report_copies(selection, notices);
  for (const ProbeFile& file : selection.files) {
    const std::string path = file.target.path.string();
    for (const ScanWarning& warning : file.warnings)
      notices.push_back({Kind::file, path, fmt::format("{}: {}", path, warning.message)});
    if (!file.refused.empty())
      notices.push_back({Kind::missing, path, fmt::format("functions or types may be missing: {}", file.refused)});
    else if (!file.no_types.empty() && rests_on_types(question, file))
      add_once({Kind::missing, path, fmt::format("no types of functions: {}", file.no_types)}, notices);
  }
  for (const std::string& target : selection.unmapped)
    notices.push_back({Kind::missing, target,
                       fmt::format("{}: no traced process has mapped this file{}", target,
                                   question.following.follow ? "; what maps it later is traced" : "")});
  for (const std::string& why : selection.may_be_missing) notices.push_back({Kind::missing, {}, why});
  for (const std::string& unknown : selection.kernel.unknown)
    notices.push_back({Kind::left_out, unknown, fmt::format("left out: {}", unknown)});
}

ProbeFile side_of(const std::vector<PointPattern>& patterns, ProbeFile file) {
  const auto none_means = [&](const auto& means) {
    return std::ranges::none_of(patterns, [&](const PointPattern& pattern) {
      const std::string* target = target_of(pattern);
      return target != nullptr && (means_everything(*target) || target_means(*target, file.target)) && means(pattern);
    });
  };
  std::erase_if(file.sites, [&](const Site& site) {
    return none_means([&](const PointPattern& pattern) {
      const auto* probe = std::get_if<ProbePattern>(&pattern);
      return probe != nullptr && probe->matches(site.provider, site.name);
    });
  });
  std::erase_if(file.functions, [&](const FunctionPoint& point) {
    return none_means([&](const PointPattern& pattern) {
      const auto* function = std::get_if<FunctionPattern>(&pattern);
      return function != nullptr && means(*function, point);
    });
  });
  return file;
}

}  // namespace session

inline namespace v1 {

bool looks_everywhere(const PointPattern& pattern) {
  const std::string* target = target_of(pattern);
  return target != nullptr && means_everything(*target);
}

bool FoundPoints::lacks_something() const {
  const auto lacks = [](const Selection& side) { return side.files.empty() && side.kernel.entries.empty(); };
  return lacks(selection) || (ends && lacks(*ends));
}

}  // namespace v1
}  // namespace usdt
