// SPDX-License-Identifier: BSD-2-Clause
#include "export/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <protozero/pbf_message.hpp>
#include <set>
#include <string>
#include <utility>
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

/// A profile with one sample of these frames.
std::string profile_of(std::vector<Frame> frames) {
  ProfileBuilder builder(1 << 20);
  builder.begin_stack();
  Stack stack;
  stack.frames = std::move(frames);
  builder.add_frames(stack);
  EXPECT_TRUE(builder.add_sample({}, {.hits = 1}));
  return builder.encode({.types = {{"hits", "count"}}});
}

/// The addresses from where to where each file is, in the order of the profile.
std::vector<std::pair<std::uint64_t, std::uint64_t>> mappings_of(const std::string& encoded) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  protozero::pbf_message<Profile> profile(encoded);
  while (profile.next(Profile::mapping)) {
    protozero::pbf_message<Mapping> mapping = profile.get_message();
    auto& [start, limit] = all.emplace_back();
    while (mapping.next()) switch (mapping.tag()) {
        case Mapping::start:
          start = mapping.get_uint64();
          break;
        case Mapping::limit:
          limit = mapping.get_uint64();
          break;
        default:
          mapping.skip();
      }
  }
  return all;
}

TEST(ProfileBuilder, TellsAddressesOfOneFunctionApart) {
  ProfileBuilder builder(1 << 20);
  for (const std::uint64_t address : {0x1100U, 0x1104U, 0x1104U}) {
    builder.begin_stack();
    builder.add_frames(stack_of(address, "f"));
    ASSERT_TRUE(builder.add_sample({}, {.hits = 1}));
  }
  Read read(builder.encode({.types = {{"hits", "count"}}}));
  EXPECT_THAT(read.values, ::testing::UnorderedElementsAre(std::vector<std::int64_t>{1}, std::vector<std::int64_t>{2}));
  EXPECT_EQ(read.count(Profile::location), 2);
  EXPECT_EQ(read.count(Profile::function), 2) << "within, f";
}

TEST(ProfileBuilder, TellsFunctionsOfOneNameApartByTheirDefinition) {
  Frame first{.address = ProcessAddr(0x10), .function = "(anonymous)", .source = "a.js", .definition_line = 3};
  Frame second = first;
  second.definition_line = 8;
  const std::string encoded = profile_of({first, second, first});
  protozero::pbf_message<Profile> profile(encoded);
  std::multiset<std::int64_t> lines;
  while (profile.next(Profile::function)) {
    protozero::pbf_message<Function> function = profile.get_message();
    while (function.next(Function::start_line)) lines.insert(function.get_int64());
  }
  EXPECT_EQ(lines, (std::multiset<std::int64_t>{3, 8}));
}

TEST(ProfileBuilder, HasTheProgramBeforeWhatItLoads) {
  const auto of_module = [](std::uint64_t address, const char* module) {
    return Frame{.address = ProcessAddr(address), .function = "f", .module = module, .offset = FileOffset(0x10)};
  };
  const std::string encoded = profile_of({{.address = ProcessAddr(0xffffffff81000040), .kernel = true, .function = "k"},
                                          {.address = ProcessAddr(0xffffffff81000020), .kernel = true, .function = "k"},
                                          of_module(0x7010, "/lib/a.so.6"),
                                          of_module(0x8010, "/lib/b.so"),
                                          of_module(0x1010, "/opt/zoo")});
  EXPECT_THAT(mappings_of(encoded),
              ::testing::ElementsAre(std::pair(0x1000, 0x1011), std::pair(0x7000, 0x7011), std::pair(0x8000, 0x8011),
                                     std::pair(0xffffffff81000020, 0xffffffff81000041)));
}

TEST(ProfileBuilder, LeavesNamesOfFilesToPprofAndSaysWhyOtherCodeHasNone) {
  const Frame stripped{
      .address = ProcessAddr(0x1010), .module = "/bin/x", .offset = FileOffset(0x10), .issue = FrameIssue::no_symbol};
  EXPECT_EQ(Read(profile_of({stripped})).count(Profile::function), 0);
  const std::string encoded = profile_of({{.address = ProcessAddr(0x1010), .issue = FrameIssue::process_gone},
                                          {.issue = FrameIssue::callers_skipped},
                                          {.address = ProcessAddr(0x1020)}});
  for (const FrameIssue issue : {FrameIssue::process_gone, FrameIssue::callers_skipped})
    EXPECT_THAT(encoded, ::testing::HasSubstr("[" + std::string(to_string(issue)) + "]"));
  EXPECT_THAT(encoded, ::testing::HasSubstr("[unknown]"));
  EXPECT_EQ(Read(encoded).count(Profile::mapping), 0);
  EXPECT_EQ(Read(encoded).count(Profile::location), 3);
}

TEST(ProfileBuilder, EscapesNamesOfOthers) {
  EXPECT_THAT(profile_of({{.address = ProcessAddr(1), .function = "two\nlines\xff"}}),
              ::testing::HasSubstr("two\\nlines\\xff"));
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
