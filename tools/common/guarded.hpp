// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <new>
#include <string_view>
#include <system_error>

namespace usdt::tools {

/// The exit code of a tool that could not do its work. Each tool defines its own.
extern const int kTroubleExitCode;

/// Prints that memory, or something else of the system, ran out.
void print_exhausted(std::string_view tool, const char* what);

/// Runs `body` for main() of a tool. Returns its exit code, or kTroubleExitCode with a message if memory, or something
/// else of the system, ran out. The work of `body` is undone on the way: commands are ended, links closed.
template <class Body>
[[nodiscard]] int guarded(std::string_view tool, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      print_exhausted(tool, "out of memory");
    } catch (const std::system_error& error) {
      print_exhausted(tool, error.what());
    }
  } catch (const std::bad_alloc&) {
    // Not even for the message.
  }
  return kTroubleExitCode;
}

}  // namespace usdt::tools
