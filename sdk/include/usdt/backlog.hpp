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
  /// Batches that the server did not take, or not all of, and damaged ones: of events, and of numbers, which has none.
  std::uint64_t lost_batches = 0;
  std::string why = {};  ///< the last of these was lost
};

}  // namespace v1
}  // namespace usdt
