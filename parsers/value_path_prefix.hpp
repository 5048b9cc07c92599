// SPDX-License-Identifier: BSD-2-Clause
// The value paths within longer texts. Private to parsers/.
#pragma once

#include "usdt/value_path.hpp"

namespace usdt::parsers {

/// The path at the beginning of a text.
struct PathPrefix {
  ValuePath path = {};
  const char* end = nullptr;  ///< behind it, and behind blanks there; where nothing matched, how far it did
  bool matched = false;
  bool too_long = false;  ///< it has more operators than a path may have
};

/// The longest path (parse_value_path()) that the text from `at` to `end` begins with.
[[nodiscard]] PathPrefix value_path_prefix(const char* at, const char* end);

}  // namespace usdt::parsers
