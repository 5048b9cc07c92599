// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace usdt {
inline namespace v1 {

std::string_view to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid_argument";
    case ErrorKind::syntax:
      return "syntax";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::no_permission:
      return "no_permission";
    case ErrorKind::not_supported:
      return "not_supported";
    case ErrorKind::malformed:
      return "malformed";
    case ErrorKind::changed:
      return "changed";
    case ErrorKind::limit:
      return "limit";
    case ErrorKind::io:
      return "io";
    case ErrorKind::type_mismatch:
      return "type_mismatch";
    case ErrorKind::stopped:
      return "stopped";
    case ErrorKind::verifier:
      return "verifier";
  }
  return "unknown";
}

Error Error::within(std::string_view context) const {
  Error outer = *this;
  outer.message = fmt::format("{}: {}", context, message);
  return outer;
}

Error os_failure(ErrorKind kind, std::string_view message, int os_error) {
  if (os_error == EPERM || os_error == EACCES) kind = ErrorKind::no_permission;
  if (os_error == ENOENT || os_error == ESRCH) kind = ErrorKind::not_found;
  // ENOTSUPP (524) is the kernel's own and has no text in the C library.
  if (os_error == EMFILE || os_error == ENFILE) {
    kind = ErrorKind::limit;
    return Error{kind, fmt::format("{}: out of descriptors: raise `ulimit -n`", message), os_error};
  }
  const char* text = os_error == 524 ? "Operation not supported (ENOTSUPP)" : std::strerror(os_error);
  return Error{kind, fmt::format("{}: {}", message, text), os_error};
}

}  // namespace v1
}  // namespace usdt
