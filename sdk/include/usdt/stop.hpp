// SPDX-License-Identifier: BSD-2-Clause
// Ending long work early, from another thread: StopSource::request_stop() asks, StopSource::get_token() gives the
// StopToken that options take, and what was asked to stop returns ErrorKind::stopped.
//     usdt::StopSource source;
//     std::thread work([token = source.get_token()] { auto found = usdt::select(patterns, {.stop = token}); ... });
//     source.request_stop();
// Threads: both may be copied and used by any thread; copies share one request, and tokens may outlive the source.
#pragma once

#include <version>

#if defined(__cpp_lib_jthread)
#include <stop_token>
#else
#include <atomic>
#include <memory>
#include <utility>
#endif

namespace usdt {
inline namespace v1 {

#if defined(__cpp_lib_jthread)

/// Tells a function whether it was asked to end early: std::stop_token.
using StopToken = std::stop_token;
/// Asks functions to end early: std::stop_source.
using StopSource = std::stop_source;

#else  // libc++ before 18

/// Tells a function whether it was asked to end early: std::stop_token, less the callbacks.
class StopToken {
 public:
  StopToken() = default;
  /// Returns whether request_stop() was called.
  [[nodiscard]] bool stop_requested() const noexcept { return requested_ && *requested_; }

 private:
  friend class StopSource;
  explicit StopToken(std::shared_ptr<const std::atomic<bool> > requested) noexcept : requested_(std::move(requested)) {}
  std::shared_ptr<const std::atomic<bool> > requested_;
};

/// Asks functions to end early: std::stop_source.
class StopSource {
 public:
  /// Returns a token that sees request_stop().
  [[nodiscard]] StopToken get_token() const noexcept { return StopToken(requested_); }
  /// Asks all holders of tokens to stop. Returns false if that was asked before.
  bool request_stop() noexcept { return !requested_->exchange(true); }

 private:
  std::shared_ptr<std::atomic<bool> > requested_ = std::make_shared<std::atomic<bool> >(false);
};

#endif

}  // namespace v1
}  // namespace usdt
