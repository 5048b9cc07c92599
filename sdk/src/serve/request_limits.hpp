// SPDX-License-Identifier: BSD-2-Clause
// What of a request is refused for what it says, before anything is done. Private to serve/.
#pragma once

#include "broker/messages.hpp"
#include "usdt/bpf/stock_constants.h"
#include "usdt/broker_service.hpp"
#include "usdt/result.hpp"

namespace usdt::serve {

/// Makes the constants that programs are loaded with: what the client wants of its records, and what is not a client's
/// to say. Errors: malformed (another layout), not_supported (what is not the client's alone), those of
/// event::count_owner_only().
[[nodiscard]] Result<usdt_stock_constants> make_constants(const broker::LoadRequest& request,
                                                          const BrokerClient& client);

/// Lets clients ask so many times a second; more wait.
class Pace {
 public:
  explicit Pace(std::uint32_t per_second) noexcept : per_second_(per_second) {}
  void take_turn();

 private:
  std::uint32_t per_second_;
  std::uint64_t earned_until_ = 0;  ///< ns of CLOCK_MONOTONIC
};

}  // namespace usdt::serve
