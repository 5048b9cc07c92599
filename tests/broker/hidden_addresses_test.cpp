// SPDX-License-Identifier: BSD-2-Clause
// What the verifier says is told to clients without the addresses in it.
#include "serve/hidden_addresses.hpp"

#include <gtest/gtest.h>

#include <string>

namespace usdt::serve {
namespace {

TEST(HiddenAddresses, AreThoseOfMaps) {
  // As Linux 6.18 has written them.
  EXPECT_EQ(
      without_addresses("1: (18) r1 = 0xffffc900026cb180       ; R1=map_value(map=usdt.rodata,ks=4,vs=9136,off=8576)\n"
                        "9: (18) r6 = 0xffffc900026c9008"),
      "1: (18) r1 = 0x(hidden)       ; R1=map_value(map=usdt.rodata,ks=4,vs=9136,off=8576)\n"
      "9: (18) r6 = 0x(hidden)");
  EXPECT_EQ(without_addresses("R1=0xffff888101234567 R2=0x8000000000000000"), "R1=0x(hidden) R2=0x(hidden)");
  EXPECT_EQ(without_addresses("2: (18) r1 = 0xc1234567"), "2: (18) r1 = 0x(hidden)") << "a kernel of 32 bits";
  EXPECT_EQ(without_addresses("0xffffc900026cb180"), "0x(hidden)");
}

TEST(HiddenAddresses, AreNotOtherNumbers) {
  for (const std::string text :
       {"", "0x", "651: (7b) *(u64 *)(r0 +16) = r6", "R1=scalar(umax=0xffffffff,var_off=(0x0; 0xffffffff))",
        "3: (b7) r1 = 0x10", "0x7fffffffffffffff", "(18) r1 = r2; 0x12", "file.c @ 0xdead"})
    EXPECT_EQ(without_addresses(text), text);
}

TEST(HiddenAddresses, AreInNeitherPartOfAnError) {
  const Error error{.kind = ErrorKind::verifier,
                    .message = "1: (18) r1 = 0xffffc900026cb180",
                    .os_error = 13,
                    .log = "R1=0xffff888101234567\n"};
  const Error hidden = without_addresses(error);
  EXPECT_EQ(hidden.message, "1: (18) r1 = 0x(hidden)");
  EXPECT_EQ(hidden.log, "R1=0x(hidden)\n");
  EXPECT_EQ(hidden.kind, error.kind);
  EXPECT_EQ(hidden.os_error, error.os_error);
}

}  // namespace
}  // namespace usdt::serve
