// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <new>

#include "link/backend.hpp"

namespace usdt::backends {

void close_together(std::vector<LinkFd>& links, std::vector<sys::AttachedFd>& events) noexcept try {
  std::vector<int> descriptors;
  descriptors.reserve(links.size() + events.size());
  const auto take = [&](sys::AttachedFd& owner) {
    if (owner) descriptors.push_back(owner.release());  // not those that were moved elsewhere
  };
  std::ranges::for_each(links, take);
  std::ranges::for_each(events, take);
  links.clear();
  events.clear();
  sys::close_in_exiting_tasks(descriptors);
} catch (const std::bad_alloc&) {  // one by one, as each does by itself
  links.clear();
  events.clear();
}

}  // namespace usdt::backends
