// SPDX-License-Identifier: BSD-2-Clause
#include "export/value_text.hpp"

#include <gtest/gtest.h>

namespace usdt::exports {
namespace {

TEST(ValueText, shows_bytes_escaped_in_digits_and_as_addresses) {
  const std::string bytes("GET\0\"\\\n\xff", 8);
  EXPECT_EQ(bytes_text(bytes), "GET\\x00\\x22\\x5c\\x0a\\xff");
  EXPECT_EQ(hex_digits(bytes), "47455400225c0aff");
  EXPECT_EQ(hex_digits(bytes, true), "47455400225C0AFF");
  EXPECT_EQ(address_text(std::string_view("\x7f\0\0\1", 4)), "127.0.0.1");
  EXPECT_EQ(address_text(std::string(15, '\0') + '\1'), "::1");
  EXPECT_EQ(address_text("12345"), "");
}

}  // namespace
}  // namespace usdt::exports
