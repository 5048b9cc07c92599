// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <new>
#include <string_view>
#include <system_error>

#include "common/report.hpp"

namespace usdt::tools {

/// What main() of a tool returns: the exit code of `body`, or `failure` with a message where memory, or something else
/// of the system, ran out. What `body` had begun is undone on the way: commands are ended, links closed.
template <class Body>
[[nodiscard]] int guarded(std::string_view tool, int failure, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      print_error(tool, Error{.kind = ErrorKind::limit, .message = "out of memory"});
    } catch (const std::system_error& error) {
      print_error(tool, Error{.kind = ErrorKind::limit, .message = error.what()});
    }
  } catch (const std::bad_alloc&) {
    // Not even for the message.
  }
  return failure;
}

}  // namespace usdt::tools
