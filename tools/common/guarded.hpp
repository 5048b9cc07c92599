// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <new>
#include <string_view>
#include <system_error>

#include "common/report.hpp"

namespace usdt::tools {

/// Runs `body` for main() of a tool. Returns its exit code, or `failure` with a message if memory, or something else of
/// the system, ran out. The work of `body` is undone on the way: commands are ended, links closed.
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
