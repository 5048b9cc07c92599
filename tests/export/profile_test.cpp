// SPDX-License-Identifier: BSD-2-Clause
#include "export/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_message.hpp>
#include <string>
#include <vector>

namespace usdt::exports::pprof {
namespace {

/// What a profile comes to: the numbers of each sample, and how many places, functions and files there are.
struct Read {
  explicit Read(const std::string& encoded) {
    protozero::pbf_message<Profile> profile(encoded);
    while (profile.next()) {
      ++fields[static_cast<std::uint32_t>(profile.tag())];
      if (profile.tag() != Profile::sample) {
        profile.skip();
        continue;
      }
      protozero::pbf_message<Sample> sample = profile.get_message();
      while (sample.next(Sample::values)) {
        const auto range = sample.get_packed_int64();
        values.emplace_back(range.begin(), range.end());
      }
    }
  }
  [[nodiscard]] int count(Profile field) { return fields[static_cast<std::uint32_t>(field)]; }

  std::map<std::uint32_t, int> fields;
  std::vector<std::vector<std::int64_t>> values;
};

Stack stack_of(std::uint64_t address, const std::string& function) {
  Stack stack;
  stack.frames = {{.address = ProcessAddr(address + 1),
                   .inlined = true,
                   .function = "within",
                   .module = "/bin/x",
                   .offset = FileOffset(0x101),
                   .source = "x.c",
                   .line = 3},
                  {.address = ProcessAddr(address + 1),
                   .function = function,
                   .module = "/bin/x",
                   .offset = FileOffset(0x101),
                   .source = "x.c",
                   .line = 9}};
  return stack;
}

TEST(ProfileBuilder, HasEachThingOnce) {
  ProfileBuilder builder(1 << 20);
  for (int n = 0; n < 3; ++n) {
    builder.begin_stack();
    builder.add_frames(stack_of(0x1100, "f"));
    ASSERT_TRUE(builder.add_sample({}, {.hits = 2, .sum = -7}));
  }
  builder.begin_stack();
  builder.add_frames(stack_of(0x1100, "g"));
  ASSERT_TRUE(builder.add_sample({{"pid", std::int64_t{4}}}, {.hits = 1}));
  Read read(builder.encode({.types = {{"hits", "count"}, {"sum(x)", "count"}}}));
  EXPECT_THAT(read.values,
              ::testing::UnorderedElementsAre(std::vector<std::int64_t>{6, -21}, std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(read.count(Profile::location), 2);
  EXPECT_EQ(read.count(Profile::function), 3) << "within, f, g";
  EXPECT_EQ(read.count(Profile::mapping), 1);
}

TEST(ProfileBuilder, TakesNoMoreNewStacksThanThereIsRoomForAndGoesOnWithThoseItKnows) {
  ProfileBuilder builder(4000);
  int taken = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    builder.begin_stack();
    builder.add_frames(stack_of(0x1000 * n, "f" + std::to_string(n)));
    taken += builder.add_sample({}, {.hits = 1}) ? 1 : 0;
  }
  EXPECT_GT(taken, 3);
  EXPECT_LT(taken, 20);
  builder.begin_stack();
  builder.add_frames(stack_of(0, "f0"));
  EXPECT_TRUE(builder.add_sample({}, {.hits = 1}));
}

TEST(ProfileBuilder, SaysWhyThereIsNoStack) {
  ProfileBuilder builder(1 << 20);
  builder.begin_stack();
  ASSERT_TRUE(builder.add_sample({}, {.hits = 1}));
  const std::string encoded = builder.encode({.types = {{"hits", "count"}}});
  EXPECT_THAT(encoded, ::testing::HasSubstr("[no stack]"));
}

}  // namespace
}  // namespace usdt::exports::pprof
