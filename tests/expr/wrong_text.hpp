// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace usdt::test {

/// What is refused, where (columns from zero) and with which words.
struct WrongText {
  const char* text;
  unsigned column;
  const char* reason;
};

}  // namespace usdt::test
