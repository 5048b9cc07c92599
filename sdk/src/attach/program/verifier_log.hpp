// SPDX-License-Identifier: BSD-2-Clause
// The log of the kernel's verifier about a program it refuses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/error.hpp"

namespace usdt::backends {

/// The lines of `text` that are not empty.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// A program the verifier has refused, as libbpf reports it while it loads an object. Both are empty where a load
/// failed before the verifier came to say anything, as for lack of privilege.
struct VerifierReport {
  std::string program;
  std::string log;  ///< all of it
};
[[nodiscard]] VerifierReport find_verifier_report(std::string_view libbpf_text);

/// ErrorKind::verifier: "the kernel's verifier refuses the program 'NAME': its last lines before the statistics", with
/// the whole log. `os_error` is what the load returned: EACCES, EINVAL, EPERM and E2BIG all come from the verifier.
[[nodiscard]] Error verifier_refusal(std::string_view program, std::string log, int os_error);

}  // namespace usdt::backends
