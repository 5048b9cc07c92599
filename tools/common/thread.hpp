// SPDX-License-Identifier: BSD-2-Clause
// The one place where tools start threads.
#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace usdt::tools {

/// Starts a thread that is a convenience, such as one that says what takes long. If the system has no more threads
/// there is none: the tool does without, and result.joinable() is false.
template <class Body>
[[nodiscard]] std::jthread start_helper(Body body) noexcept {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return {};
}

}  // namespace usdt::tools
