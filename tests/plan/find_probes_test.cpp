// SPDX-License-Identifier: BSD-2-Clause
// From a program made by a real compiler to its plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/toolchain.hpp"
#include "file_places.hpp"
#include "usdt/plan.hpp"
#include "usdt/select.hpp"

namespace usdt {
namespace {

using testing::ElementsAre;

constexpr std::string_view kProgram = R"(
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short shop_sale_semaphore __attribute__((section(".probes")));
unsigned short shop_refund_semaphore __attribute__((section(".probes")));
int main(int argc, char** argv) {
  (void)argv;
  DTRACE_PROBE2(shop, sale, argc, 7);
  DTRACE_PROBE1(shop, refund, argc);
  return 0;
}
)";

std::vector<std::string> names(const ProbeFile& file) {
  std::vector<std::string> all;
  for (const Site& site : file.sites) all.push_back(site.provider + ":" + site.name);
  return all;
}

ProbePattern pattern(std::string_view text) {
  const auto parsed = ProbePattern::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(ProbePattern{});
}

class FindProbes : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::can_compile("")) GTEST_SKIP() << "no C compiler with sys/sdt.h";
    dir_.write("shop.c", kProgram);
    const auto built = test::run_in(dir_, "cc -O2 shop.c -o shop");
    ASSERT_EQ(built.status, 0) << built.output;
    target_ = {.path = "/opt/shop", .access = dir_ / "shop"};
  }

  test::TempDir dir_;
  TargetFile target_;
};

TEST_F(FindProbes, takes_every_site_without_patterns) {
  const auto found = find_probes(target_, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(names(*found), ElementsAre("shop:sale", "shop:refund"));
  EXPECT_EQ(found->target.path, "/opt/shop");
  EXPECT_TRUE(found->warnings.empty());
}

TEST_F(FindProbes, keeps_the_sites_that_any_pattern_matches) {
  EXPECT_THAT(names(*find_probes(target_, {pattern("shop:r*")})), ElementsAre("shop:refund"));
  EXPECT_THAT(names(*find_probes(target_, {pattern("nothing:*"), pattern("*:sale")})), ElementsAre("shop:sale"));
  EXPECT_THAT(names(*find_probes(target_, {pattern("sh:op")})), ElementsAre());
}

TEST_F(FindProbes, leads_to_a_plan_with_the_offsets_and_semaphores_of_the_notes) {
  const auto found = find_probes(target_, {pattern("shop:sale")});
  ASSERT_TRUE(found) << found.error().message;
  const auto plan = plan_attach({.files = {*found}}, KernelFacts{});
  ASSERT_TRUE(plan) << plan.error().message;
  const Site& site = found->sites[0];
  EXPECT_THAT(test::offsets_of(*plan), ElementsAre(site.offset->value));
  EXPECT_THAT(test::semaphores_of(*plan), ElementsAre(site.semaphore_offset->value));
  EXPECT_EQ(plan->files[0].elf, found->elf);
  const auto& args = plan->specs[0].args;
  ASSERT_EQ(args.size(), 2U);
  EXPECT_EQ(args[1].kind, USDT_ARG_CONST);
  EXPECT_EQ(args[1].value, 7U);
}

TEST(SelectProbes, wants_to_know_which_ones) {
  const auto nothing = select({});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::invalid_argument);
}

TEST(SelectProbes, ends_where_it_is_asked_to) {
  StopSource stop;
  SearchScope scope{.targets = {"/usr/lib"}, .stop = stop.get_token()};
  std::size_t seen = 0;
  scope.progress = [&](const std::string&, std::size_t files) {
    seen = files;
    if (files == 3) stop.request_stop();
  };
  const auto selection = select({*ProbePattern::parse("*:nobody_has_this")}, scope);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().kind, ErrorKind::stopped);
  EXPECT_EQ(seen, 3U) << "not one file more";
  EXPECT_EQ(select({*ProbePattern::parse("/bin/sh:a:b")}, {.stop = stop.get_token()}).error().kind, ErrorKind::stopped);
}

TEST(FindProbesErrors, say_why_a_file_cannot_be_opened) {
  const auto found = find_probes({.path = "/bin/x", .access = "/nonexistent/x"}, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace usdt
