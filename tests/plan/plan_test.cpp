// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/plan.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "file_places.hpp"
#include "resolve/tiny_elf.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

using test::TinyElf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A site `at` bytes into the sample file's code.
Site site(std::string name, std::string args, std::uint64_t at = 0) {
  Site made;
  made.provider = "app";
  made.name = std::move(name);
  made.args_text = std::move(args);
  made.pc = made.pc_adjusted = VirtAddr(TinyElf::kText + at);
  made.offset = FileOffset(TinyElf::kTextOffset + at);
  made.site_class = SiteClass::nop;
  return made;
}

ProbeFile file_with(std::vector<Site> sites, Machine machine = Machine::x86_64) {
  ProbeFile file;
  file.target = {.path = "/usr/bin/app", .access = "/usr/bin/app"};
  file.elf = test::sample_elf(machine).open();
  file.sites = std::move(sites);
  return file;
}

AttachPlan plan_of(const std::vector<ProbeFile>& files, const PlanOptions& options = {}) {
  auto plan = plan_attach({.files = files}, KernelFacts{}, options);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : AttachPlan{};
}

TEST(Plan, has_one_entry_per_site_in_each_array) {
  Site counted = site("start", "8@%rdi", 0x10);
  counted.has_semaphore = true;
  counted.semaphore_offset = FileOffset(0x2020);
  const AttachPlan plan = plan_of({file_with({counted, site("done", "-4@%eax", 0x20)})});

  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_THAT(test::offsets_of(plan), ElementsAre(0x1010, 0x1020));
  EXPECT_THAT(test::semaphores_of(plan), ElementsAre(0x2020, 0));
  ASSERT_EQ(plan.groups.size(), 1U);
  EXPECT_EQ(std::get<Index<PlannedFile>>(plan.groups[0].of), Index<PlannedFile>(0));
  EXPECT_THAT(plan.groups[0].sites, ElementsAre(Index<PlannedSite>(0), Index<PlannedSite>(1)));
  EXPECT_EQ(plan.probes[plan.sites[1].probe].name, "done");
  EXPECT_EQ(test::place_of(plan, 0).pc, VirtAddr(TinyElf::kText + 0x10));
  EXPECT_EQ(plan.args[plan.sites[1].args][0].source, "-4@%eax");
  EXPECT_EQ(plan.max_args, 1U);
}

TEST(Plan, writes_equal_specs_once_over_all_files) {
  const AttachPlan plan = plan_of({file_with({site("a", "8@%rdi"), site("b", "8@%rdi", 1), site("c", "8@%rsi", 2)}),
                                   file_with({site("a", "8@%rdi"), site("d", "8@%r15", 3)})},
                                  {.user_cookie = 99});
  EXPECT_EQ(plan.specs.size(), 3U);
  EXPECT_EQ(plan.args.size(), 3U);
  EXPECT_EQ(plan.specs[0].user_cookie, 99U);
  EXPECT_EQ(plan.sites[0].spec, plan.sites[1].spec);
  EXPECT_EQ(plan.sites[0].spec, plan.sites[3].spec);
  EXPECT_NE(plan.sites[0].spec, plan.sites[2].spec);
}

TEST(Plan, keeps_machines_apart_where_one_text_means_two_things) {
  const AttachPlan plan =
      plan_of({file_with({site("a", "4@(%eax)")}, Machine::x86_64), file_with({site("a", "4@(%eax)")}, Machine::i386)});
  const auto base_of = [&plan](Index<PlannedSite> site, Machine machine) {
    return register_info(machine, std::get<Memory>(plan.args[plan.sites[site].args][0].location).base).canon;
  };
  EXPECT_EQ(base_of(Index<PlannedSite>(0), Machine::x86_64), "rax");
  EXPECT_EQ(base_of(Index<PlannedSite>(1), Machine::i386), "eax");
}

TEST(Plan, groups_sites_of_one_name_into_one_probe_per_file) {
  const AttachPlan plan =
      plan_of({file_with({site("a", ""), site("a", "4@$1", 1), site("b", "", 2)}), file_with({site("a", "")})});
  EXPECT_EQ(plan.probes.size(), 3U);
  EXPECT_EQ(plan.sites[0].probe, plan.sites[1].probe);
  EXPECT_NE(plan.sites[0].probe, plan.sites[3].probe);
  EXPECT_EQ(plan.probes[plan.sites[3].probe].file, Index<PlannedFile>(1));
}

TEST(Plan, measures_symbols_from_each_sites_own_breakpoint) {
  const AttachPlan plan =
      plan_of({file_with({site("a", "-4@counter(%rip)", 0x10), site("a", "-4@counter(%rip)", 0x50)})});
  EXPECT_EQ(plan.args.size(), 1U);
  ASSERT_EQ(plan.specs.size(), 2U);
  EXPECT_EQ(plan.specs[plan.sites[0].spec].args[0].value, 0x14010 - (TinyElf::kText + 0x10));
  EXPECT_EQ(plan.specs[plan.sites[1].spec].args[0].value, 0x14010 - (TinyElf::kText + 0x50));
}

TEST(Plan, measures_symbols_from_the_corrected_address) {
  Site moved = site("a", "-4@counter(%rip)", 0x10);
  moved.pc = VirtAddr(0x999);
  const AttachPlan plan = plan_of({file_with({moved})});
  EXPECT_EQ(plan.specs[0].args[0].value, 0x14010 - (TinyElf::kText + 0x10));
  EXPECT_EQ(test::place_of(plan, 0).pc, VirtAddr(0x999));
}

TEST(Plan, gives_string_slots_to_what_can_be_a_pointer) {
  const AttachPlan plan =
      plan_of({file_with({site("a", "4@%eax 8@%rdi -8@8(%rsp) 8f@%rsi 8@%nope 8@%rdx"), site("b", "8@%rdi", 1)})},
              {.texts = {.numbers = {0, 1, 2, 3, 4}}});
  const auto& args = plan.specs[plan.sites[0].spec].args;
  std::vector<int> captures;
  for (const auto& arg : args) captures.push_back(arg.capture);
  EXPECT_THAT(captures, ElementsAre(0, 1, 1, 0, 0, 0));
  EXPECT_EQ(plan.specs[plan.sites[1].spec].args[0].capture, 1) << "slots are counted anew in each spec";
  EXPECT_EQ(plan.string_slots, 2U);
}

TEST(Plan, gives_texts_the_length_that_is_asked_for_or_documented) {
  const auto captures = [](const char* probe, const PlanOptions& options) {
    Site planned = site(probe, "8@%rdi 8@%rsi 4@%edx 8@%rcx 4@%r8d");
    planned.provider = "hotspot";
    const AttachPlan plan = plan_of({file_with({planned})}, options);
    std::vector<int> found;
    for (const auto& arg : plan.specs[0].args) found.push_back(arg.capture);
    return found;
  };
  constexpr int kBy2 = USDT_CAPTURE_BY(1, 2), kBy4 = USDT_CAPTURE_BY(3, 4);
  EXPECT_THAT(captures("unheard_of", {.texts = {.numbers = {1}}}), ElementsAre(0, USDT_CAPTURE_STRING, 0, 0, 0));
  EXPECT_THAT(captures("method__entry", {.texts = {.numbers = {1, 3}}}), ElementsAre(0, kBy2, 0, kBy4, 0));
  EXPECT_THAT(captures("method__entry", {.texts = {.numbers = {0}}}), ElementsAre(USDT_CAPTURE_STRING, 0, 0, 0, 0));
  const std::uint8_t text = 1, length = 4, none = 200;
  EXPECT_THAT(captures("method__entry", {.texts = {.bounded = {{text, length}}}}),
              ElementsAre(0, USDT_CAPTURE_BY(1, 4), 0, 0, 0));
  EXPECT_THAT(captures("unheard_of", {.texts = {.bounded = {{text, none}}}}), ElementsAre(0, 0, 0, 0, 0))
      << "a length the site has not is no reason to read without one";
}

TEST(Plan, keeps_documented_lengths_apart_where_two_probes_have_one_argument_text) {
  Site first = site("object__alloc", "8@%rdi 8@%rsi 4@%edx 8@%rcx"),
       second = site("monitor__notify", first.args_text, 9);
  first.provider = second.provider = "hotspot";
  const AttachPlan plan = plan_of({file_with({first, second})}, {.texts = {.numbers = {1, 2}}});
  EXPECT_EQ(plan.specs[plan.sites[0].spec].args[1].capture, USDT_CAPTURE_BY(1, 2));
  EXPECT_EQ(plan.specs[plan.sites[1].spec].args[1].capture, USDT_CAPTURE_STRING);
}

TEST(Plan, ends_within_a_moment_where_it_is_asked_to) {
  std::vector<Site> sites;
  for (std::uint64_t i = 0; i < 90'000; ++i) sites.push_back(site("a", fmt::format("8@{}(%rdi) 4@{}", i, i), i));
  StopSource stop;
  std::chrono::steady_clock::time_point asked;
  PlanOptions options{.stop = stop.get_token()};
  options.user_cookie_of = [&, n = 0](const PointName&) mutable {
    if (++n == 100) asked = std::chrono::steady_clock::now(), stop.request_stop();
    return std::uint64_t{0};
  };
  const auto plan = plan_attach({.files = {file_with(std::move(sites))}}, KernelFacts{}, options);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(1));
}

TEST(Plan, tries_what_may_point_to_text) {
  const auto captures = [](const Site& planned, Machine machine = Machine::x86_64) {
    const AttachPlan plan = plan_of({file_with({planned}, machine)}, {.texts = {.likely = true}});
    std::vector<int> found;
    for (const auto& arg : plan.specs[0].args) found.push_back(arg.capture);
    return found;
  };
  constexpr int kLikely = USDT_CAPTURE_LIKELY;
  EXPECT_THAT(captures(site("a", "8@%rdi -8@%rsi 4@%edx 8f@%xmm0 8@$4198400 8@8(%rsp) 8@%nope")),
              ElementsAre(kLikely, 0, 0, 0, 0, kLikely, 0));
  EXPECT_THAT(captures(site("a", "4@%eax 8@(%esp) -4@%ecx"), Machine::i386), ElementsAre(kLikely, 0, 0));
  Site documented = site("method__entry", "8@%rdi 8@%rsi 4@%edx 8@%rcx 4@%r8d");
  documented.provider = "hotspot";
  EXPECT_THAT(captures(documented), ElementsAre(kLikely, USDT_CAPTURE_BY(1, 2), 0, USDT_CAPTURE_BY(3, 4), 0));
}

TEST(Plan, takes_the_texts_of_each_site) {
  const TextOptions first{.numbers = {0}}, second{.numbers = {1}};
  PlanOptions options{.texts = {.numbers = {0, 1}}};
  options.texts_of = [&](const PointName& planned) {
    return planned.name == "one" ? &first : planned.name == "two" ? &second : nullptr;
  };
  const AttachPlan plan = plan_of({file_with({site("one", "8@%rdi 8@%rsi", 0x10), site("two", "8@%rdi 8@%rsi", 0x20),
                                              site("rest", "8@%rdi 8@%rsi", 0x30)})},
                                  options);
  std::vector<std::pair<int, int>> captures;
  for (const PlannedSite& each : plan.sites)
    captures.emplace_back(plan.specs[each.spec].args[0].capture, plan.specs[each.spec].args[1].capture);
  EXPECT_THAT(captures, ElementsAre(std::pair(1, 0), std::pair(0, 1), std::pair(1, 1)));
  EXPECT_EQ(plan.string_slots, 2U);
}

TEST(Plan, takes_four_byte_values_for_strings_of_i386) {
  const AttachPlan plan =
      plan_of({file_with({site("a", "4@%eax 8@(%esp)")}, Machine::i386)}, {.texts = {.numbers = {0, 1}}});
  EXPECT_EQ(plan.specs[0].args[0].capture, 1);
  EXPECT_EQ(plan.specs[0].args[1].capture, 0);
}

TEST(Plan, reads_the_first_255_arguments_and_names_the_rest) {
  std::string text = "4@$0";
  for (int i = 1; i < 300; ++i) text += " 4@$" + std::to_string(i);
  const AttachPlan plan = plan_of({file_with({site("a", text)})});
  EXPECT_EQ(plan.specs[0].args.size(), 255U);
  EXPECT_EQ(plan.max_args, 255U);
  const auto& args = plan.args[0];
  ASSERT_EQ(args.size(), 300U);
  EXPECT_TRUE(args[254].readable());
  EXPECT_FALSE(args[255].readable());
  EXPECT_THAT(args[299].why_unreadable(), HasSubstr("argument 299"));
}

TEST(Plan, keeps_two_notes_of_one_site) {
  Site first = site("a", "");
  Site second = site("b", "");
  second.has_semaphore = true;
  second.semaphore_offset = FileOffset(0x2020);
  const AttachPlan plan = plan_of({file_with({first, second})});
  EXPECT_THAT(test::offsets_of(plan), ElementsAre(0x1000, 0x1000));
  EXPECT_THAT(test::semaphores_of(plan), ElementsAre(0, 0x2020));
}

TEST(Plan, of_nothing_is_an_error) {
  EXPECT_EQ(plan_attach({}, KernelFacts{}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(plan_attach({.files = {file_with({})}}, KernelFacts{}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(plan_attach({.files = {ProbeFile{}}}, KernelFacts{}).error().kind, ErrorKind::invalid_argument);
}

TEST(Plan, of_skipped_sites_only_is_an_error_with_the_first_reason) {
  Site lost = site("a", "");
  lost.offset.reset();
  const auto plan = plan_attach({.files = {file_with({lost, lost})}}, KernelFacts{});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::not_supported);
  EXPECT_THAT(plan.error().message, HasSubstr("none of 2 sites"));
  EXPECT_THAT(plan.error().message, HasSubstr("address 0x11000 is in no executable segment"));
}

TEST(Plan, refuses_to_fetch_the_text_of_arguments_that_no_site_has) {
  const std::vector<ProbeFile> files = {
      file_with({site("start", "8@%rdi 8@%rsi", 0x10), site("done", "8@%rdi", 0x20)})};
  EXPECT_EQ(plan_of(files, {.texts = {.numbers = {1}}}).string_slots, 1U) << "some sites have it";
  const auto refusal = [&](const PlanOptions& options) {
    const auto plan = plan_attach({.files = files}, KernelFacts{}, options);
    EXPECT_EQ(plan ? ErrorKind::io : plan.error().kind, ErrorKind::invalid_argument);
    return plan ? "" : plan.error().message;
  };
  EXPECT_EQ(refusal({.texts = {.numbers = {200}}}), "the text of arg200: no such argument: the last one is arg1");
  EXPECT_EQ(refusal({.texts = {.numbers = {0, 2}}}), "the text of arg2: no such argument: the last one is arg1");
  EXPECT_EQ(refusal({.texts = {.names = {"filename"}}}), "the text of filename: no such argument");
  EXPECT_EQ(refusal({.texts = {.names = {"retval"}}}), "the text of retval: no such argument");
}

}  // namespace
}  // namespace usdt
