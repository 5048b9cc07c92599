// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include "common/report.hpp"
#include "flags.hpp"

namespace usdt_trace {

/// Prints a notice, unless --quiet.
inline void notice(const Flags& flags, const std::string& text) {
  if (!flags.output.quiet)
    usdt::tools::print_notice(flags.question.name.empty() ? text : flags.question.name + ": " + text);
}

}  // namespace usdt_trace
