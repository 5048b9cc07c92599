// SPDX-License-Identifier: BSD-2-Clause
#include "sys/descriptor_room.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

std::size_t make_room_for_more(std::size_t descriptors) noexcept {
  const UniqueFd lowest(::open("/", O_PATH | O_CLOEXEC));
  if (!lowest) return 0;
  const auto used = static_cast<std::size_t>(lowest.get());
  make_room_for(used + descriptors);
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur) - used : 0;
}

Result<void> need_descriptors(std::size_t descriptors, std::string_view what) {
  const std::size_t room = make_room_for_more(descriptors);
  if (room >= descriptors) return {};
  return fail(ErrorKind::limit,
              fmt::format("{} takes {} descriptors, and {} are left: raise `ulimit -n`", what, descriptors, room));
}

}  // namespace usdt::sys
