// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <new>
#include <string_view>
#include <system_error>

namespace usdt::tools {

/// The program. Each one defines its own, constinit: it is there before main().
struct Tool {
  std::string_view name;
  int trouble;  ///< the exit code where it could not do its work
};
extern const Tool kThisTool;

/// Prints that memory, or something else of the system, ran out.
void print_exhausted(const char* what);

/// Runs `body` for main(). Returns its exit code, or that of trouble with a message if memory, or something else of the
/// system, ran out. The work of `body` is undone on the way: commands are ended, links closed.
template <class Body>
[[nodiscard]] int guarded(const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      print_exhausted("out of memory");
    } catch (const std::system_error& error) {
      print_exhausted(error.what());
    }
  } catch (const std::bad_alloc&) {
    // Not even for the message.
  }
  return kThisTool.trouble;
}

}  // namespace usdt::tools
