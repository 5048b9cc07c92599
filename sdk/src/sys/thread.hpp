// SPDX-License-Identifier: BSD-2-Clause
// The one place where the library starts threads that stay.
#pragma once

#include <cerrno>
#include <chrono>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "sys/blocked_signals.hpp"
#include "usdt/result.hpp"

namespace usdt::sys {

/// Runs `body` to its end. If memory runs out in it, it begins again after a moment, so that its subject is not left
/// unwatched: an exception that left a thread would end the application.
template <class Body>
void run_until_done(const Body& body) noexcept {
  constexpr std::chrono::milliseconds moment{100};
  while (true) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(moment);
    }
  }
}

/// Starts a thread that runs `body`, as run_until_done() does, with every signal blocked (BlockedSignals). `purpose`
/// goes into the message: "start a thread PURPOSE". Errors: limit (the system has no more threads, or no memory for
/// one).
template <class Body>
[[nodiscard]] Result<std::thread> start_thread(std::string_view purpose, Body body) {
  int error = ENOMEM;
  try {
    const BlockedSignals blocked;
    return std::thread([body = std::move(body)] { run_until_done(body); });
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  } catch (const std::bad_alloc&) {
    // As the system says it: ENOMEM.
  }
  return fail(os_failure(ErrorKind::limit, "start a thread " + std::string(purpose), error));
}

}  // namespace usdt::sys
