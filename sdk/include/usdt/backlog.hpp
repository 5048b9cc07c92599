// SPDX-License-Identifier: BSD-2-Clause
// The batches of a sink that wait on disk for their server (SinkOptions::spool, Sink::backlog()). A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace usdt {
inline namespace v1 {

/// Counts what is in a spool, and what became of what was in it. Events there are delivered as far as their question
/// knows: `lost` is the rest of the account.
struct Backlog {
  std::uint64_t batches = 0, events = 0, bytes = 0;  ///< that wait
  std::uint64_t sent = 0;  ///< events that were there and that the server has, since the sink was opened
  std::uint64_t lost = 0;  ///< those that the server did not take, or whose file was damaged
  std::string why = {};    ///< the last ones were lost
};

}  // namespace v1
}  // namespace usdt
