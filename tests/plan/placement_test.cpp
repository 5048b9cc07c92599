// SPDX-License-Identifier: BSD-2-Clause
// Which byte of a site gets the breakpoint, and which sites get none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "file_places.hpp"
#include "resolve/tiny_elf.hpp"
#include "usdt/plan.hpp"

namespace usdt {
namespace {

using test::TinyElf;
using testing::HasSubstr;

Site site(SiteClass site_class, std::uint64_t at = 0) {
  Site made;
  made.provider = "app";
  made.name = "probe";
  made.args_text = "-4@counter(%rip) 8@%rip";
  made.pc = made.pc_adjusted = VirtAddr(TinyElf::kText + at);
  made.offset = FileOffset(TinyElf::kTextOffset + at);
  made.site_class = site_class;
  return made;
}

ProbeFile file_with(std::vector<Site> sites, std::string text = {}, Machine machine = Machine::x86_64) {
  TinyElf elf = test::sample_elf(machine);
  elf.text = std::move(text);
  ProbeFile file;
  file.elf = elf.open();
  file.sites = std::move(sites);
  return file;
}

struct Kernel {
  KernelFacts facts = {};
  PlanOptions options = {};
};
Kernel with(NopOptimisation nops) { return {.facts = {.nops = nops}}; }

/// The plan of `lone`, beside a plain nop site (at 0x800) that can always be attached.
AttachPlan plan_beside_a_nop(const Site& lone, const Kernel& kernel, std::string text = {},
                             Machine machine = Machine::x86_64) {
  auto plan = plan_attach({.files = {file_with({site(SiteClass::nop, 0x800), lone}, std::move(text), machine)}},
                          kernel.facts, kernel.options);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : AttachPlan{};
}

const Kernel kNop5 = with(NopOptimisation::nop5);
Kernel nop10() { return with(NopOptimisation::nop10); }

/// What `8@%rip` adds to the instruction pointer of a hit at `planned`.
std::uint64_t ip_displacement(const AttachPlan& plan, Index<PlannedSite> planned) {
  return plan.specs[plan.sites[planned].spec].args[1].value;
}

TEST(InstructionPointer, is_the_sites_wherever_its_breakpoint_is) {
  const AttachPlan plan = plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), nop10(), std::string("\x90\x66", 2));
  ASSERT_EQ(plan.sites.size(), 2U);
  EXPECT_EQ(ip_displacement(plan, Index<PlannedSite>(0)), 0U);
  const FileOffset offset(TinyElf::kTextOffset + 0x10);
  EXPECT_EQ(ip_displacement(plan, Index<PlannedSite>(1)), offset.value - test::place_of(plan, 1).offset.value);
  EXPECT_NE(test::place_of(plan, 1).offset, offset);
}

TEST(BareNop5, is_not_touched_where_the_kernel_would_overwrite_the_red_zone) {
  const AttachPlan plan = plan_beside_a_nop(site(SiteClass::nop5, 0x10), kNop5);
  ASSERT_EQ(plan.skipped.size(), 1U);
  EXPECT_THAT(plan.skipped[0].reason, HasSubstr("red zone"));
  EXPECT_EQ(plan.skipped[0].pc, VirtAddr(TinyElf::kText + 0x10));
  EXPECT_EQ(test::offsets_of(plan).size(), 1U);
}

TEST(BareNop5, is_not_touched_where_nothing_is_known_of_the_kernel) {
  EXPECT_EQ(plan_beside_a_nop(site(SiteClass::nop5, 0x10), Kernel{}).skipped.size(), 1U);
}

TEST(BareNop5, is_used_where_the_user_insists_or_the_kernel_is_safe) {
  const Kernel insisting{.facts = {.nops = NopOptimisation::nop5}, .options = {.allow_unsafe_nop5 = true}};
  for (const Kernel& kernel : {with(NopOptimisation::none), nop10(), insisting}) {
    const AttachPlan plan = plan_beside_a_nop(site(SiteClass::nop5, 0x10), kernel);
    EXPECT_TRUE(plan.skipped.empty());
    EXPECT_EQ(test::offsets_of(plan).at(1), 0x1010U);
  }
}

TEST(BareNop5, is_not_safe_behind_a_coded_red_zone_guard_because_children_die_of_the_call) {
  const std::string guarded("\x48\x8d\x64\x24\x80\x0f\x1f\x44\x00\x00", 10);
  EXPECT_EQ(plan_beside_a_nop(site(SiteClass::nop5, 5), kNop5, guarded).skipped.size(), 1U);
}

Site with_bytes(Site made, std::initializer_list<std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), made.bytes.data.begin());
  made.bytes.size = static_cast<std::uint8_t>(bytes.size());
  return made;
}

TEST(BareNop5, is_known_in_every_encoding_because_the_kernel_knows_it_in_every_encoding) {
  for (const auto& bytes : {std::initializer_list<std::uint8_t>{0x66, 0x0f, 0x1f, 0x40, 0x00, 0xc3},
                            {0x0f, 0x1f, 0x44, 0x08, 0x10, 0xc3},
                            {0x66, 0x66, 0x0f, 0x1f, 0x00, 0xc3},
                            {0x48, 0x0f, 0x1f, 0x40, 0x00, 0xc3},
                            {0x66, 0x66, 0x66, 0x66, 0x90, 0xc3}}) {
    const Site lone = with_bytes(site(SiteClass::emulated, 0x10), bytes);
    EXPECT_EQ(plan_beside_a_nop(lone, kNop5).skipped.size(), 1U) << int{*bytes.begin()};
    EXPECT_TRUE(plan_beside_a_nop(lone, with(NopOptimisation::none)).skipped.empty());
    EXPECT_TRUE(plan_beside_a_nop(lone, nop10()).skipped.empty());
    EXPECT_TRUE(plan_beside_a_nop(lone, kNop5, {}, Machine::i386).skipped.empty());
  }
}

TEST(BareNop5, is_not_seen_in_nops_of_other_lengths) {
  for (const auto& bytes : {std::initializer_list<std::uint8_t>{0x66, 0x90, 0x0f, 0x1f, 0x00},
                            {0x0f, 0x1f, 0x40, 0x00, 0x90},
                            {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
                            {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
                            {0x0f, 0x1f, 0x04, 0x25, 0x00, 0x00, 0x00, 0x00},
                            {0xe9, 0x00, 0x00, 0x00, 0x00}}) {
    EXPECT_TRUE(plan_beside_a_nop(with_bytes(site(SiteClass::emulated, 0x10), bytes), kNop5).skipped.empty());
  }
}

TEST(BareNop5, is_safe_on_i386_which_has_no_red_zone) {
  Site lone = site(SiteClass::nop5, 0x10);
  EXPECT_TRUE(plan_beside_a_nop(lone, kNop5, {}, Machine::i386).skipped.empty());
}

TEST(RefusedInstructions, are_skipped_in_the_plan_because_the_kernel_would_drop_them_silently) {
  const Site bare_nop10 =
      with_bytes(site(SiteClass::nop10, 0x10), {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00});
  for (const Kernel& kernel : {with(NopOptimisation::none), kNop5}) {
    const AttachPlan plan = plan_beside_a_nop(bare_nop10, kernel);
    ASSERT_EQ(plan.skipped.size(), 1U);
    EXPECT_THAT(plan.skipped[0].reason, HasSubstr("66 2e 0f 1f 84"));
  }
  EXPECT_TRUE(plan_beside_a_nop(bare_nop10, nop10()).skipped.empty());
  EXPECT_EQ(plan_beside_a_nop(with_bytes(site(SiteClass::single_step), {0xcc}), {}).skipped.size(), 1U);
  EXPECT_EQ(plan_beside_a_nop(with_bytes(site(SiteClass::single_step), {0xf0, 0x48, 0x01}), {}).skipped.size(), 1U);
  EXPECT_TRUE(
      plan_beside_a_nop(with_bytes(site(SiteClass::single_step), {0xf3, 0x0f, 0x1e, 0xfa}), {}).skipped.empty());
}

TEST(NopPairs, with_nop5_are_hit_on_the_leading_nop_always) {
  for (const NopOptimisation nops : {NopOptimisation::none, NopOptimisation::nop5, NopOptimisation::nop10}) {
    const AttachPlan plan = plan_beside_a_nop(site(SiteClass::nop_nop5, 0x10), with(nops));
    EXPECT_EQ(test::offsets_of(plan).at(1), 0x1010U);
  }
}

TEST(NopPairs, with_nop10_are_hit_on_the_nop10_only_where_the_kernel_optimises_it) {
  EXPECT_EQ(test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), {})).at(1), 0x1010U);
  EXPECT_EQ(test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), kNop5)).at(1), 0x1010U);
  EXPECT_EQ(test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), nop10())).at(1), 0x1011U);
}

/// `nop; nop10; nop5; ret` at offset 0x10, as <usdt/probe.h> made stubs before it was known what Linux 6.18 does.
TEST(Stubs, that_have_a_nop5_are_not_hit_on_it) {
  const std::string stub = std::string(0x11, '\x90') + std::string("\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 10) +
                           std::string("\x0f\x1f\x44\0\0\xc3", 6);
  const auto hit_at = [&](const Kernel& kernel) {
    return test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), kernel, stub)).at(1);
  };
  EXPECT_EQ(hit_at(with(NopOptimisation::none)), 0x1010U);
  EXPECT_EQ(hit_at(nop10()), 0x1011U);
  EXPECT_EQ(hit_at(kNop5), 0x1010U);
}

TEST(NopPairs, that_straddle_a_page_are_hit_on_the_leading_nop) {
  EXPECT_EQ(test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0xff5), nop10())).at(1), 0x1ff6U);
  EXPECT_EQ(test::offsets_of(plan_beside_a_nop(site(SiteClass::nop_nop10, 0xff6), nop10())).at(1), 0x1ff6U);
}

TEST(NopPairs, hit_on_the_nop10_correct_distances_by_the_one_byte_behind_the_site) {
  const AttachPlan plain = plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), {});
  const AttachPlan moved = plan_beside_a_nop(site(SiteClass::nop_nop10, 0x10), nop10());
  const auto& at_site = plain.specs[plain.sites[1].spec].args;
  const auto& behind = moved.specs[moved.sites[1].spec].args;
  EXPECT_EQ(behind[0].value, at_site[0].value - 1);
  EXPECT_EQ(behind[1].value, at_site[1].value - 1) << "the site's own address";
  EXPECT_EQ(test::place_of(moved, 1).pc, VirtAddr(TinyElf::kText + 0x10));
  EXPECT_EQ(test::place_of(moved, 1).offset, FileOffset(0x1011));
}

TEST(Sites, without_code_in_the_file_say_where_to_attach_instead) {
  Site member = site(SiteClass::unknown);
  member.offset.reset();
  member.member = "malloc.o";
  EXPECT_THAT(plan_beside_a_nop(member, {}).skipped.at(0).reason, HasSubstr("in archive member malloc.o"));
}

TEST(Sites, whose_semaphore_cannot_be_incremented_are_skipped) {
  Site lone = site(SiteClass::nop, 0x10);
  lone.has_semaphore = true;
  lone.semaphore = lone.semaphore_adjusted = VirtAddr(0x77000);
  EXPECT_THAT(plan_beside_a_nop(lone, {}).skipped.at(0).reason, HasSubstr("semaphore at 0x77000"));
}

}  // namespace
}  // namespace usdt
