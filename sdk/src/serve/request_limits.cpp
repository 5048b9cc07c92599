// SPDX-License-Identifier: BSD-2-Clause
#include "serve/request_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/try.hpp"
#include "event/kernel_offsets.hpp"
#include "serve/allowed_programs.hpp"
#include "usdt/clock.hpp"

namespace usdt::serve {
Result<usdt_stock_constants> make_constants(const broker::LoadRequest& request, const BrokerClient& client) {
  usdt_stock_constants constants{};
  if (request.constants.size() != sizeof(constants))
    return fail(ErrorKind::malformed, "constants of another version of the programs");
  std::memcpy(&constants, request.constants.data(), sizeof(constants));
  const auto refuse = [](std::string_view what) {
    return fail(ErrorKind::not_supported, fmt::format("usdt-broker gives nobody {}", what));
  };
  if (constants.record.stack_depth != 0 || constants.table.kernel_stack != 0) return refuse("stacks of the kernel");
  if (constants.record.context_at != 0) return refuse("what threads work for");
  if (constants.family.ancestors.count != 0) return refuse("processes by their descent");
  if (constants.may_sleep != 0) return refuse("programs that wait for pages");
  TRY(check_programs(request, constants));
  // Each of these makes programs read the kernel's memory.
  constants.family = {};
  constants.returns = constants.user_stack.depth > 0 ? event::find_replaced_returns() : usdt_return_offsets{};
  constants.scripts = {};
  constants.image = {};
  constants.threads = event::find_threads();
  if (constants.threads.start == 0) return refuse("programs on a kernel that does not say when threads began");
  constants.owner = TRY(event::count_owner_only(client.uid, client.gid));
  return constants;
}

void Pace::take_turn() {
  if (per_second_ == 0) return;
  constexpr std::uint64_t second = 1'000'000'000;
  const std::uint64_t now = event_clock();
  const std::uint64_t price = second / per_second_;
  earned_until_ = std::max(earned_until_, now - std::min(now, second)) + price;  // a second's worth may come at once
  if (earned_until_ <= now) return;
  const std::uint64_t wait = earned_until_ - now;
  const timespec pause{.tv_sec = static_cast<time_t>(wait / second), .tv_nsec = static_cast<long>(wait % second)};
  ::nanosleep(&pause, nullptr);
}

}  // namespace usdt::serve
