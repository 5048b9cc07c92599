// SPDX-License-Identifier: BSD-2-Clause
// Variables and maps of own BPF programs before and between loads; several objects in one process. The kernel's own
// lists of maps (bpf(2)) judge what is shared.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "bpf_directory.hpp"
#include "own_typed.hpp"
#include "pairs.bpf.hpp"

namespace usdt {
namespace {

using test::or_throw;
using test::pass_typed;
using testing::HasSubstr;

class OwnMaps : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
  static BpfObject pairs() { return or_throw(BpfObject::open(pairs_object())); }
  static BpfObject numbers() { return or_throw(BpfObject::open(numbers_object())); }
  static std::uint32_t id_of(int fd) {
    bpf_map_info info{};
    std::uint32_t size = sizeof(info);
    EXPECT_EQ(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
    return info.id;
  }
  static std::uint32_t id_of(const LoadedObject& object, const char* map) {
    return id_of(or_throw(object.map_fd(map)));
  }
  static AttachPlan plan_of(const char* probe) {
    const auto selection =
        or_throw(select({*ProbePattern::parse(probe)}, {.targets = {}, .pids = {::getpid()}, .program = {}}));
    PlanOptions options;
    options.scope = *OneProcess::of(::getpid());
    return or_throw(plan_attach(selection, kernel_facts(), options));
  }
};

TEST_F(OwnMaps, begin_with_the_variables_that_were_set) {
  BpfObject object = pairs();
  ASSERT_TRUE(object.set_global("pairs", std::uint64_t{100}));
  ASSERT_TRUE(object.set_global("sum", std::uint64_t{1} << 40));
  const LoadedObject loaded = or_throw(object.load(plan_of("own:typed"), {.programs = {"on_begin"}}));
  EXPECT_EQ(**loaded.global_as<std::uint64_t>("pairs"), 100U);
  EXPECT_EQ(**loaded.global_as<std::uint64_t>("sum"), std::uint64_t{1} << 40);
  EXPECT_EQ(**loaded.global_as<std::uint64_t>("on_begin_hits"), 0U);
  const LoadedObject again = or_throw(object.load(plan_of("own:typed"), {.programs = {"on_begin"}}));
  EXPECT_EQ(**again.global_as<std::uint64_t>("pairs"), 100U);
  EXPECT_NE(*again.global_as<std::uint64_t>("pairs"), *loaded.global_as<std::uint64_t>("pairs"));
}

TEST_F(OwnMaps, take_values_of_their_own_size_only) {
  BpfObject object = pairs();
  EXPECT_EQ(object.set_global("pairs", 7).error().kind, ErrorKind::type_mismatch);
  EXPECT_EQ(object.set_global("triples", std::uint64_t{7}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(object.set_global("usdt_max_args", std::uint32_t{7}).error().kind, ErrorKind::not_found)
      << "a constant is no variable";
  EXPECT_EQ(object.set_constant("pairs", std::uint64_t{7}).error().kind, ErrorKind::not_found)
      << "nor the other way round";
  const LoadedObject loaded = or_throw(object.load(plan_of("own:typed"), {.programs = {"on_begin"}}));
  const auto wrong = loaded.global_as<std::uint32_t>("pairs");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::type_mismatch);
  EXPECT_EQ(wrong.error().message, "variable 'pairs' has 8 bytes, not 4");
  EXPECT_EQ(loaded.global_as<std::uint64_t>("triples").error().kind, ErrorKind::not_found);
}

// Two objects on probes of one process: the first one's program leaves a number, the second one's takes it.
TEST_F(OwnMaps, of_several_objects_are_one_where_that_was_asked_for) {
  const LoadedObject begin = or_throw(pairs().load(plan_of("own:typed"), {.programs = {"on_begin"}}));
  BpfObject second = pairs();
  ASSERT_TRUE(second.reuse_map("begun", or_throw(begin.map_fd("begun"))));
  const LoadedObject end = or_throw(second.load(plan_of("own:memory"), {.programs = {"on_end"}}));
  EXPECT_EQ(id_of(end, "begun"), id_of(begin, "begun"));
  const LoadedObject third = or_throw(numbers().load(test::plan_own_typed()));
  auto ring = or_throw(RingReader::open(third, "numbers"));
  const Link one = or_throw(begin.attach());
  const Link two = or_throw(end.attach());
  const Link three = or_throw(third.attach());
  pass_typed(1, 41);
  const std::uint64_t last = 1;
  probed::memory(&last, "text");
  EXPECT_EQ(**end.global_as<std::uint64_t>("pairs"), 1U);
  EXPECT_EQ(**end.global_as<std::uint64_t>("sum"), 42U);
  EXPECT_EQ(**begin.global_as<std::uint64_t>("pairs"), 0U) << "variables are each object's own";
  int number = 0;
  EXPECT_EQ(or_throw(ring.read([&](auto record) { number = *record_as<int>(record); })), 1U);
  EXPECT_EQ(number, 41) << "both objects' programs ran at one site";
}

TEST_F(OwnMaps, are_refused_where_they_are_not_what_the_object_defines) {
  const LoadedObject loaded = or_throw(numbers().load(test::plan_own_typed()));
  BpfObject object = pairs();
  const auto ring = object.reuse_map("begun", or_throw(loaded.map_fd("numbers")));
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().kind, ErrorKind::type_mismatch);
  EXPECT_THAT(ring.error().message, HasSubstr("map 'begun': type"));
  EXPECT_EQ(object.reuse_map("begun", STDIN_FILENO).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(object.reuse_map("begun", -1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(object.reuse_map("ended", 0).error().kind, ErrorKind::not_found);
  EXPECT_EQ(object.reuse_map("usdt_specs", or_throw(loaded.map_fd("usdt_specs"))).error().kind,
            ErrorKind::invalid_argument)
      << "specs of another plan";
}

TEST_F(OwnMaps, that_are_pinned_keep_what_is_in_them_from_one_load_to_the_next) {
  const test::BpfDirectory directory;
  if (!directory.mounted()) GTEST_SKIP() << "no BPF file system can be mounted";
  const std::filesystem::path path = directory.file("begun");
  BpfObject object = pairs();
  ASSERT_TRUE(object.pin_map("begun", path));
  const auto join = [] {
    return or_throw(join_plans({{"on_begin", plan_of("own:typed")}, {"on_end", plan_of("own:memory")}}));
  };
  std::uint32_t id = 0;
  {
    const LoadedObject loaded = or_throw(object.load(join()));
    id = id_of(loaded, "begun");
    const Link link = or_throw(loaded.attach("on_begin"));
    pass_typed(1, 41);
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  const LoadedObject loaded = or_throw(object.load(join()));
  EXPECT_EQ(id_of(loaded, "begun"), id);
  const Link link = or_throw(loaded.attach("on_end"));
  const std::uint64_t last = 1;
  probed::memory(&last, "text");
  EXPECT_EQ(**loaded.global_as<std::uint64_t>("sum"), 42U);
  EXPECT_EQ(numbers().pin_map("numbers", path).error().kind, ErrorKind::type_mismatch);
  std::filesystem::remove(path);
}

TEST_F(OwnMaps, leave_no_pin_behind_when_the_load_fails) {
  const test::BpfDirectory directory;
  if (!directory.mounted()) GTEST_SKIP() << "no BPF file system can be mounted";
  BpfObject object = pairs();
  ASSERT_TRUE(object.pin_map("begun", directory.file("begun")));
  EXPECT_FALSE(object.load(plan_of("own:typed"), {.programs = {"on_middle"}}));
  EXPECT_FALSE(std::filesystem::exists(directory.file("begun")));
  const auto elsewhere = object.pin_map("begun", "/proc/self/begun");
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(elsewhere.error().message, HasSubstr("/proc/self/begun is in no BPF file system"));
}

}  // namespace
}  // namespace usdt
