// SPDX-License-Identifier: BSD-2-Clause
// Several programs of one object, each on sites of its own: this process passes its probes and compares what they saw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>

#include "pairs.bpf.hpp"
#include "pairs_compat.bpf.hpp"
#include "pairs_libbpf.bpf.hpp"
#include "probed.hpp"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlanOptions of_this_process(std::uint64_t user_cookie = 0) {
  PlanOptions options;
  options.scope = *OneProcess::of(::getpid());
  options.user_cookie = user_cookie;
  return options;
}

AttachPlan plan_of(const std::string& probe, std::uint64_t user_cookie = 0) {
  auto selection = select({*ProbePattern::parse("own:" + probe)}, {.targets = {}, .pids = {::getpid()}, .program = {}});
  EXPECT_TRUE(selection) << selection.error().message;
  auto plan = plan_attach(*selection, kernel_facts(), of_this_process(user_cookie));
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

AttachPlan both() {
  std::vector<ProgramPlan> parts;
  parts.push_back({"on_begin", plan_of("typed", 0xa)});
  parts.push_back({"on_end", plan_of("memory", 0xb)});
  return *join_plans(std::move(parts));
}

std::uint64_t global(const LoadedObject& object, const char* name) {
  std::uint64_t value = 0;
  std::memcpy(&value, object.global(name), sizeof(value));
  return value;
}

void pass_both(int begin, std::uint64_t end) {
  probed::typed("text", begin, 1);
  probed::memory(&end, "text");
}

struct Compiled {
  const char* with;
  std::span<const std::byte> (*object)();
};
const Compiled kOurs{"our_header", [] { return std::span<const std::byte>(pairs_object()); }};
const Compiled kCompat{"compat_header", [] { return std::span<const std::byte>(pairs_compat_object()); }};
const Compiled kLibbpf{"libbpfs_header", [] { return std::span<const std::byte>(pairs_libbpf_object()); }};

class Pairs : public testing::TestWithParam<Compiled> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    if (probe_feature(Feature::attach_cookie).answer == Answer::no) GTEST_SKIP() << "no attach cookies";
  }
  static BpfObject open() { return std::move(*BpfObject::open(GetParam().object())); }
};
INSTANTIATE_TEST_SUITE_P(Pairs, Pairs, testing::Values(kOurs, kCompat, kLibbpf),
                         [](const auto& param) { return std::string(param.param.with); });

TEST_P(Pairs, of_programs_see_their_own_probes_and_meet_in_a_shared_map) {
  auto object = open().load(both());
  ASSERT_TRUE(object) << object.error().message;
  auto link = object->attach();
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(link->attached(), 2U);
  pass_both(111, 222);
  pass_both(1000, 2000);
  EXPECT_EQ(global(*object, "on_begin_hits"), 2U);
  EXPECT_EQ(global(*object, "on_end_hits"), 2U);
  EXPECT_EQ(global(*object, "on_begin_number"), 1000U);
  EXPECT_EQ(global(*object, "on_end_number"), 2000U);
  EXPECT_EQ(global(*object, "on_begin_cookie"), 0xaU);
  EXPECT_EQ(global(*object, "on_end_cookie"), 0xbU);
  EXPECT_EQ(global(*object, "pairs"), 2U);
  EXPECT_EQ(global(*object, "sum"), 111U + 222U + 1000U + 2000U);
}

TEST_P(Pairs, may_be_attached_and_detached_one_by_one) {
  auto object = open().load(both());
  ASSERT_TRUE(object) << object.error().message;
  auto begin = object->attach("on_begin");
  ASSERT_TRUE(begin) << begin.error().message;
  pass_both(1, 2);
  EXPECT_EQ(global(*object, "on_begin_hits"), 1U);
  EXPECT_EQ(global(*object, "on_end_hits"), 0U);
  auto end = object->attach("on_end");
  ASSERT_TRUE(end) << end.error().message;
  begin->detach();
  pass_both(3, 4);
  EXPECT_EQ(global(*object, "on_begin_hits"), 1U);
  EXPECT_EQ(global(*object, "on_end_hits"), 1U);
  const auto other = object->attach("on_middle");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("'on_middle', but for on_begin, on_end"));
}

TEST_P(Pairs, are_planned_from_the_names_of_their_sections) {
  const BpfObject opened = open();
  std::vector<std::string> points;
  for (const ObjectProgram& program : opened.programs()) points.push_back(program.name + " " + program.points);
  EXPECT_THAT(points, ElementsAre("on_begin own:typed", "on_end own:memory"));
  auto plan = plan_sections(opened, of_this_process());
  ASSERT_TRUE(plan) << plan.error().message;
  auto object = opened.load(std::move(*plan));
  ASSERT_TRUE(object) << object.error().message;
  auto link = object->attach();
  ASSERT_TRUE(link) << link.error().message;
  pass_both(20, 22);
  EXPECT_EQ(global(*object, "sum"), 42U);
}

TEST_P(Pairs, that_are_loaded_twice_share_nothing) {
  const BpfObject opened = open();
  auto one = opened.load(both());
  auto other = opened.load(both());
  ASSERT_TRUE(one && other);
  auto link = one->attach();
  ASSERT_TRUE(link) << link.error().message;
  pass_both(1, 1);
  EXPECT_EQ(global(*one, "pairs"), 1U);
  EXPECT_EQ(global(*other, "pairs"), 0U);
}

TEST(JoinedPlans, keep_each_part_whole) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const AttachPlan typed = plan_of("typed", 0xa);
  const AttachPlan memory = plan_of("memory", 0xb);
  const AttachPlan whole = both();
  EXPECT_THAT(std::vector(whole.programs.begin(), whole.programs.end()), ElementsAre("on_begin", "on_end"));
  ASSERT_EQ(whole.sites.size(), typed.sites.size() + memory.sites.size());
  const PlannedSite& last = whole.sites.back();
  EXPECT_EQ(whole.programs[*last.program], "on_end");
  EXPECT_EQ(whole.probes[last.probe].name, "memory");
  EXPECT_EQ(whole.specs[last.spec].user_cookie, 0xbU);
  EXPECT_EQ(whole.args[last.args].size(), memory.args[memory.sites[0].args].size());
  EXPECT_EQ(std::get<FilePlace>(last.point).file, Index<PlannedFile>(whole.files.size() - 1));
  EXPECT_EQ(std::get<Index<PlannedFile>>(whole.groups.back().of), std::get<FilePlace>(last.point).file);
  EXPECT_EQ(whole.groups.back().sites.back().value, whole.sites.size() - 1);
  EXPECT_EQ(join_plans({}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(join_plans({{"", typed}}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(join_plans({{"on_begin", whole}}).error().kind, ErrorKind::invalid_argument);
  AttachPlan of_all = memory;
  of_all.scope = AllProcesses{};
  EXPECT_EQ(join_plans({{"on_begin", typed}, {"on_end", of_all}}).error().kind, ErrorKind::invalid_argument);
}

TEST(OneProcess, is_never_every_process) {
  EXPECT_EQ(OneProcess::of(0).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(OneProcess::of(-1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(OneProcess::of(17)->pid(), 17);
}

TEST(Processes, are_some_and_each_once) {
  EXPECT_EQ(Processes::of({}).error().kind, ErrorKind::invalid_argument);
  constexpr pid_t nobody = 1 << 22;  // PID_MAX_LIMIT: from here on no number is a thread's
  EXPECT_EQ(Processes::of({nobody, 0}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(Processes::of({nobody, nobody + 1, nobody}).error().message, "process 4194304 is named twice");
  std::vector<pid_t> many(Processes::kMost + 1);
  std::iota(many.begin(), many.end(), nobody);
  EXPECT_EQ(Processes::of(many).error().kind, ErrorKind::limit);
  many.pop_back();
  EXPECT_EQ(Processes::of(many)->pids(), many);
}

}  // namespace
}  // namespace usdt
