// SPDX-License-Identifier: BSD-2-Clause
#include "follow/followed_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "proc/process_maps.hpp"
#include "sys/mounts.hpp"
#include "sys/read.hpp"

namespace usdt::follow {
namespace {

bool is_among(const std::vector<pid_t>& pids, pid_t pid) { return std::ranges::find(pids, pid) != pids.end(); }

/// "/system.slice/x.service": its place in the tree of cgroup v2; empty: not known.
std::string cgroup_of(pid_t pid) {
  const auto text = sys::read_text(fmt::format("/proc/{}/cgroup", pid), 1 << 16);
  if (!text) return {};
  const std::size_t at = text->starts_with("0::") ? 0 : text->find("\n0::");
  if (at == text->npos) return {};
  const std::size_t from = text->find("0::", at) + 3;
  return text->substr(from, text->find('\n', from) - from);
}

}  // namespace

bool is_in_cgroup(const std::vector<std::filesystem::path>& cgroups, pid_t pid) {
  if (cgroups.empty()) return false;
  static const std::string tree = sys::cgroup_tree();
  const std::string own = tree + cgroup_of(pid);
  return std::ranges::any_of(cgroups, [&](const std::filesystem::path& cgroup) {
    const std::string& wanted = cgroup.native();
    return own.starts_with(wanted) && (own.size() == wanted.size() || own[wanted.size()] == '/');
  });
}

bool is_followed(const FollowScope& scope, pid_t pid) {
  if (!scope.cgroups.empty()) return is_in_cgroup(scope.cgroups, pid);
  if (scope.pids.empty() || is_among(scope.pids, pid)) return true;
  constexpr int most_generations = 64;
  for (int i = 0; scope.descendants && pid > 1 && i < most_generations; ++i) {
    pid = proc::parent_of(pid);
    if (is_among(scope.pids, pid)) return true;
  }
  return false;
}

}  // namespace usdt::follow
