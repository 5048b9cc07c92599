// SPDX-License-Identifier: BSD-2-Clause
// Error, the one type of failure in this library: a kind for programs to branch on, a message for people.
// Error::kind tells what to do next, Error::within() adds the caller's context, os_failure() makes an Error of an
// errno.
//     if (plan.error().kind == usdt::ErrorKind::no_permission) ask_for_root(plan.error().message);
// Threads: an Error is a plain value that owns its strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// Tells kinds of failures apart. Programs branch on the kind, people read the message.
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

/// Returns the kind's name as it is printed in messages and JSON: lower case, words joined by '_'.
[[nodiscard]] std::string_view to_string(ErrorKind kind) noexcept;

/// Describes one failure. The message is never empty, starts in lower case, names the thing that failed and carries its
/// numbers with their base. If something can be done, it says what.
struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;
  /// The errno behind the failure (positive); 0: there was none.
  int os_error = 0;
  /// Zero-based position in the text that was parsed, for ErrorKind::syntax.
  std::optional<std::uint32_t> column = std::nullopt;
  /// The verifier's whole log, for ErrorKind::verifier: thousands of lines at times, of which the message has the last.
  std::string log = {};

  /// Returns a copy of this error whose message is "CONTEXT: message": the error as seen from further out.
  [[nodiscard]] Error within(std::string_view context) const;
};

/// Makes an Error of an errno: "MESSAGE: text of strerror(3)". EPERM and EACCES turn into no_permission, ENOENT and
/// ESRCH into not_found, EMFILE and ENFILE into limit, whatever `kind` says.
///     if (fd < 0) return fail(os_failure(ErrorKind::io, "open /proc/kallsyms", errno));
[[nodiscard]] Error os_failure(ErrorKind kind, std::string_view message, int os_error);

}  // namespace v1
}  // namespace usdt
