// SPDX-License-Identifier: BSD-2-Clause
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

/// What asks a function to end early, from another thread: std::stop_token.
using StopToken = std::stop_token;
/// Who asks: std::stop_source.
using StopSource = std::stop_source;

#else  // libc++ before 18

/// What asks a function to end early, from another thread: std::stop_token, less the callbacks.
class StopToken {
 public:
  StopToken() = default;
  /// Whether request_stop() was called.
  [[nodiscard]] bool stop_requested() const noexcept { return requested_ && *requested_; }

 private:
  friend class StopSource;
  explicit StopToken(std::shared_ptr<const std::atomic<bool> > requested) noexcept : requested_(std::move(requested)) {}
  std::shared_ptr<const std::atomic<bool> > requested_;
};

/// Who asks: std::stop_source.
class StopSource {
 public:
  /// A token that hears of request_stop().
  [[nodiscard]] StopToken get_token() const noexcept { return StopToken(requested_); }
  /// False: it was called before.
  bool request_stop() noexcept { return !requested_->exchange(true); }

 private:
  std::shared_ptr<std::atomic<bool> > requested_ = std::make_shared<std::atomic<bool> >(false);
};

#endif

}  // namespace v1
}  // namespace usdt
