// SPDX-License-Identifier: BSD-2-Clause
#include "sys/descriptor_room.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

#include "sys/unique_fd.hpp"

namespace usdt::sys {

void make_room_for(std::size_t descriptors) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= descriptors) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, descriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptors_left() noexcept {
  rlimit limit{};
  const UniqueFd lowest(::open("/", O_PATH | O_CLOEXEC));
  if (!lowest || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(limit.rlim_cur) - static_cast<std::size_t>(lowest.get());
}

}  // namespace usdt::sys
