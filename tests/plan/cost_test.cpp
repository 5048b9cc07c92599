// SPDX-License-Identifier: BSD-2-Clause
// What a hit costs on a kernel: the planner's decisions in one word and one sentence.
#include "usdt/cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "resolve/tiny_elf.hpp"

namespace usdt {
namespace {

using test::TinyElf;
using testing::HasSubstr;

constexpr std::initializer_list<std::uint8_t> kNop10Bytes = {0x66, 0x2e, 0x0f, 0x1f, 0x84,
                                                             0x00, 0x00, 0x00, 0x00, 0x00};

Site site_of(SiteClass site_class, std::initializer_list<std::uint8_t> bytes = {0x90}, std::uint64_t at = 0x10) {
  Site made;
  made.provider = "app";
  made.name = "probe";
  made.pc = made.pc_adjusted = VirtAddr(TinyElf::kText + at);
  made.offset = FileOffset(TinyElf::kTextOffset + at);
  made.site_class = site_class;
  std::copy(bytes.begin(), bytes.end(), made.bytes.data.begin());
  made.bytes.size = static_cast<std::uint8_t>(bytes.size());
  return made;
}

SiteCost cost(const Site& of, NopOptimisation nops, Machine machine = Machine::x86_64,
              const PlanOptions& options = {}) {
  return site_cost(of, *test::sample_elf(machine).open(), {.nops = nops}, options);
}

constexpr NopOptimisation kEveryKernel[] = {NopOptimisation::none, NopOptimisation::nop5, NopOptimisation::nop10};

TEST(Cost, of_a_plain_nop_is_a_trap_on_every_kernel) {
  for (const NopOptimisation nops : kEveryKernel) {
    EXPECT_EQ(cost(site_of(SiteClass::nop), nops).cost, CostClass::trap);
  }
  EXPECT_EQ(cost(site_of(SiteClass::nop), {}, Machine::aarch64).cost, CostClass::trap);
}

TEST(Cost, of_a_nop10_pair_is_a_call_only_where_the_kernel_optimises_it) {
  EXPECT_EQ(cost(site_of(SiteClass::nop_nop10), NopOptimisation::nop10).cost, CostClass::optimised);
  for (const NopOptimisation nops : {NopOptimisation::none, NopOptimisation::nop5}) {
    const SiteCost leading = cost(site_of(SiteClass::nop_nop10), nops);
    EXPECT_EQ(leading.cost, CostClass::trap);
    EXPECT_THAT(leading.text, HasSubstr("this kernel does not optimise nop10"));
  }
  const SiteCost straddling = cost(site_of(SiteClass::nop_nop10, {0x90}, 0xff6), NopOptimisation::nop10);
  EXPECT_EQ(straddling.cost, CostClass::trap);
  EXPECT_THAT(straddling.text, HasSubstr("straddles a page"));
}

TEST(Cost, of_a_nop5_pair_is_a_trap_on_every_kernel_and_says_why) {
  EXPECT_THAT(cost(site_of(SiteClass::nop_nop5), NopOptimisation::nop5).text, HasSubstr("overwrites the red zone"));
  EXPECT_THAT(cost(site_of(SiteClass::nop_nop5), NopOptimisation::none).text, HasSubstr("does not optimise nop5"));
  EXPECT_THAT(cost(site_of(SiteClass::nop_nop5), NopOptimisation::nop10).text, HasSubstr("does not optimise nop5"));
  for (const NopOptimisation nops : kEveryKernel) {
    EXPECT_EQ(cost(site_of(SiteClass::nop_nop5), nops).cost, CostClass::trap);
  }
}

TEST(Cost, of_a_bare_nop5_is_refused_where_a_call_would_overwrite_the_red_zone) {
  const Site nop5 = site_of(SiteClass::nop5, {0x0f, 0x1f, 0x44, 0x00, 0x00});
  const SiteCost refused = cost(nop5, NopOptimisation::nop5);
  EXPECT_EQ(refused.cost, CostClass::refused);
  EXPECT_THAT(refused.text, HasSubstr("red zone"));
  const PlanOptions insisting{.allow_unsafe_nop5 = true};
  EXPECT_EQ(cost(nop5, NopOptimisation::nop5, Machine::x86_64, insisting).cost, CostClass::optimised);
  EXPECT_EQ(cost(nop5, NopOptimisation::nop10).cost, CostClass::trap);
}

TEST(Cost, of_a_long_nop_is_a_single_step_on_kernels_that_emulate_only_the_short_one) {
  const Site nop5 = site_of(SiteClass::nop5, {0x0f, 0x1f, 0x44, 0x00, 0x00});
  const Site nop3 = site_of(SiteClass::emulated, {0x0f, 0x1f, 0x00});
  EXPECT_EQ(cost(nop5, NopOptimisation::none).cost, CostClass::single_step);
  EXPECT_EQ(cost(nop3, NopOptimisation::none).cost, CostClass::single_step);
  EXPECT_EQ(cost(nop3, NopOptimisation::nop5).cost, CostClass::emulated);
  EXPECT_EQ(cost(site_of(SiteClass::emulated, {0x66, 0x90}), NopOptimisation::none).cost, CostClass::emulated);
}

TEST(Cost, of_a_bare_nop10_is_refused_where_the_kernel_does_not_take_its_prefix) {
  const Site nop10 = site_of(SiteClass::nop10, kNop10Bytes);
  EXPECT_EQ(cost(nop10, NopOptimisation::none).cost, CostClass::refused);
  EXPECT_EQ(cost(nop10, NopOptimisation::nop5).cost, CostClass::refused);
  EXPECT_EQ(cost(nop10, NopOptimisation::nop10).cost, CostClass::optimised);
}

TEST(Cost, of_other_instructions_is_the_same_on_every_kernel) {
  for (const NopOptimisation nops : kEveryKernel) {
    EXPECT_EQ(cost(site_of(SiteClass::emulated, {0x55}), nops).cost, CostClass::emulated);
    EXPECT_EQ(cost(site_of(SiteClass::single_step, {0x48, 0x89, 0xe5}), nops).cost, CostClass::single_step);
  }
  EXPECT_EQ(cost(site_of(SiteClass::single_step, {0xcc}), {}).cost, CostClass::refused);
}

TEST(Cost, of_a_site_without_code_is_the_reason_the_plan_gives) {
  Site member = site_of(SiteClass::unknown, {});
  member.offset.reset();
  member.member = "malloc.o";
  const SiteCost none = cost(member, {});
  EXPECT_EQ(none.cost, CostClass::refused);
  EXPECT_THAT(none.text, HasSubstr("in archive member malloc.o"));
}

TEST(Cost, is_refused_for_exactly_the_sites_the_plan_skips) {
  const std::vector<Site> sites = {
      site_of(SiteClass::nop), site_of(SiteClass::nop5, {0x0f, 0x1f, 0x44, 0x00, 0x00}, 0x20),
      site_of(SiteClass::nop10, kNop10Bytes, 0x40), site_of(SiteClass::nop_nop10, {0x90}, 0x60)};
  for (const NopOptimisation nops : kEveryKernel) {
    ProbeFile file;
    file.elf = test::sample_elf(Machine::x86_64).open();
    file.sites = sites;
    const auto plan = plan_attach({.files = {file}}, KernelFacts{.nops = nops});
    ASSERT_TRUE(plan) << plan.error().message;
    std::vector<std::string> refused;
    for (const Site& each : sites) {
      const SiteCost of = site_cost(each, *file.elf, {.nops = nops});
      if (of.cost == CostClass::refused) refused.push_back(of.text);
    }
    std::vector<std::string> skipped;
    for (const SkippedSite& each : plan->skipped) skipped.push_back(each.reason);
    EXPECT_EQ(refused, skipped);
  }
}

}  // namespace
}  // namespace usdt
