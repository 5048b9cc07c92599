// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// What kind of failure an Error is. Programs branch on this, people read the message.
enum class ErrorKind : std::uint8_t {
  invalid_argument,  ///< the caller passed something that cannot be meant
  syntax,            ///< text that does not parse; `Error::column` says where
  not_found,         ///< the named file, process, probe or symbol does not exist
  no_permission,     ///< the kernel or the file system refused for lack of privilege
  not_supported,     ///< this kernel, machine or file kind cannot do it
  malformed,         ///< a file whose bytes contradict its format
  changed,           ///< a file or process changed or vanished while it was being used
  limit,             ///< a resource or size limit was reached
  io,                ///< an operating system call failed for another reason
  type_mismatch,     ///< a value was asked for as another type than it has
  stopped,           ///< the caller asked to stop (OpenOptions::stop) before it was done
  verifier,          ///< the kernel's verifier refused a BPF program; `Error::log` has all it said
};

/// The kind's name as printed in messages and JSON: lower case, words joined by '_'.
[[nodiscard]] std::string_view to_string(ErrorKind kind) noexcept;

/// One failure. The message is never empty, starts in lower case, names the thing that failed
/// and carries its numbers with their base; where something can be done, it says what.
struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;
  /// The errno behind the failure (positive), 0 where there was none.
  int os_error = 0;
  /// Zero-based position in the text that was parsed, for ErrorKind::syntax.
  std::optional<std::uint32_t> column = std::nullopt;
  /// The verifier's whole log, for ErrorKind::verifier: thousands of lines at times, of which the message has the last.
  std::string log = {};

  /// This error seen from further out: "CONTEXT: message".
  [[nodiscard]] Error within(std::string_view context) const;
};

/// An Error of `kind` from errno value `os_error`: "MESSAGE: strerror text". EPERM and EACCES turn
/// into no_permission, ENOENT and ESRCH into not_found, whatever `kind` says.
[[nodiscard]] Error os_failure(ErrorKind kind, std::string_view message, int os_error);

}  // namespace v1
}  // namespace usdt
