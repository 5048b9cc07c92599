// SPDX-License-Identifier: BSD-2-Clause
// Names of options in messages: who asks on a command line writes "--where", who asks in a file or a program "where".
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::session {

/// Returns `text`, a sentence of ours, with `prefix` in the place of the "--" before each option in it.
[[nodiscard]] std::string name_options(std::string_view text, std::string_view prefix);

/// Fails with invalid_argument and a sentence of ours, whose options name_options() names.
[[nodiscard]] inline tl::unexpected<Error> refuse(std::string_view text, std::string_view prefix) {
  return fail(ErrorKind::invalid_argument, name_options(text, prefix));
}

}  // namespace usdt::session
