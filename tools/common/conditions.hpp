// SPDX-License-Identifier: BSD-2-Clause
// Whether probes that a process has fire in it, as far as that can be seen from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/script.hpp"

namespace usdt::tools {

/// What is known of a process before its probes are traced.
struct Subject {
  std::vector<std::string> words = {};        ///< its command line
  std::vector<std::string> environment = {};  ///< NAME=VALUE, as it was started
};
/// Reads them of a process; what may not be read is empty. At most 1 MiB of each.
[[nodiscard]] Subject subject_of(pid_t pid);
/// Makes them of a command that this program starts with its own environment.
[[nodiscard]] Subject subject_of(const std::vector<std::string>& command);

enum class Fires : std::uint8_t { yes, no, unknown };
/// Judges whether one of the conditions holds; yes without any.
[[nodiscard]] Fires judge(const std::vector<Condition>& conditions, const Subject& subject);
/// Writes "it was started with --probes or -p, or with PROBES=1 in its environment"; empty: there are none.
[[nodiscard]] std::string describe(const std::vector<Condition>& conditions);

}  // namespace usdt::tools
