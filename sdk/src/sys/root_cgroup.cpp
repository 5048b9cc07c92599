// SPDX-License-Identifier: BSD-2-Clause
#include "sys/root_cgroup.hpp"

#include <fcntl.h>

#include <string>

#include "sys/clone_task.hpp"
#include "sys/mounts.hpp"
#include "sys/read.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::sys {
namespace {

bool is_at_root() {
  const auto cgroups = read_text("/proc/self/cgroup", 1 << 16);
  return !cgroups || cgroups->find("0::/\n") != cgroups->npos;
}

UniqueFd open_root() {
  if (is_at_root()) return {};
  const std::string place = cgroup_tree();
  return place.empty() ? UniqueFd() : UniqueFd(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

pid_t clone_into_root_cgroup(int (*run)(void*), std::span<std::byte> stack, std::uint64_t flags,
                             void* argument) noexcept {
  static const UniqueFd root = open_root();
  if (!root) return -1;
  return clone_task(run, stack, flags, argument, root.get());
}

}  // namespace usdt::sys
