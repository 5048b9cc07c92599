// SPDX-License-Identifier: BSD-2-Clause
#include "event/cgroup_filter.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "sys/mounts.hpp"

namespace usdt::event {
namespace {

/// PROC_CGROUP_INIT_INO, include/linux/proc_ns.h: the namespace that shows all of the tree.
constexpr ino_t kInitialNamespace = 0xEFFFFFFB;

}  // namespace

Result<void> check_cgroups(const std::vector<std::filesystem::path>& cgroups) {
  if (cgroups.empty()) return {};
  if (cgroups.size() > USDT_MAX_CGROUPS)
    return fail(ErrorKind::limit, fmt::format("{} cgroups: at most {}", cgroups.size(), USDT_MAX_CGROUPS));
  if (sys::cgroup_tree().empty()) return fail(ErrorKind::not_supported, "no cgroup v2 is mounted here");
  struct stat namespace_file {};
  if (::stat("/proc/self/ns/cgroup", &namespace_file) != 0 || namespace_file.st_ino != kInitialNamespace)
    return fail(ErrorKind::not_supported,
                "cgroups: this process is in a cgroup namespace, which hides how deep in the tree they are");
  return {};
}

usdt_cgroup cgroup_at(const std::filesystem::path& directory) {
  // The number of the directory is the cgroup's id (5.5).
  struct stat st {};
  if (::stat(directory.c_str(), &st) != 0) return {};
  const std::filesystem::path below = directory.lexically_relative(sys::cgroup_tree());
  usdt_cgroup out{};
  out.id = st.st_ino;
  out.level = below == "." ? 0 : static_cast<__u32>(std::distance(below.begin(), below.end()));
  return out;
}

}  // namespace usdt::event
