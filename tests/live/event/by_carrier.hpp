// SPDX-License-Identifier: BSD-2-Clause
// Tests that are repeated with each carrier of specs, as root: TEST_P of a ByCarrier.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "usdt/usdt.hpp"

namespace usdt {

class ByCarrier : public testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    const bool by_cookie = GetParam() == Carrier::table || GetParam() == Carrier::per_link;
    if (by_cookie && probe_feature(Feature::attach_cookie).answer != Answer::yes)
      GTEST_SKIP() << "no attach cookies on this kernel";
  }
};

/// For INSTANTIATE_TEST_SUITE_P: the carriers, and the name of one.
inline auto each_carrier() {
  return testing::Values(Carrier::automatic, Carrier::table, Carrier::per_link, Carrier::ip_hash);
}
inline std::string carrier_name(const testing::TestParamInfo<Carrier>& tested) {
  std::string name(to_string(tested.param));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace usdt
