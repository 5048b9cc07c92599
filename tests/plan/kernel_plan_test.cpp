// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions in the plan: which way they are attached on which kernel, and how their specs travel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/kernel.hpp"
#include "tests/kernel/fixture.hpp"
#include "usdt/carrier.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {
namespace {

using kernel::test::FakeKernel;
using kernel::test::pattern;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// What the kernels of the lab answer (docs/kernel-lab.md).
KernelAbilities linux_5_10() { return {.machine = Machine::x86_64, .tracing = true, .kernel_btf = true}; }
KernelAbilities linux_6_1() {
  KernelAbilities kernel = linux_5_10();
  kernel.func_arg = kernel.perf_cookies = kernel.tracing_cookies = true;
  return kernel;
}
KernelAbilities linux_6_12() {
  KernelAbilities kernel = linux_6_1();
  kernel.kprobe_multi = kernel.kprobe_session = kernel.raw_tp_cookies = true;
  return kernel;
}
KernelAbilities linux_7_2() {
  KernelAbilities kernel = linux_6_12();
  kernel.tracing_multi = kernel.tracing_session = kernel.tp_btf_func_arg = true;
  return kernel;
}

/// "BACKEND", "BACKEND session" or the error.
std::string way(std::string_view prefix, const KernelAbilities& kernel, Backend wanted = Backend::automatic,
                std::size_t functions = 1) {
  const KernelKind kind = pattern(std::string(prefix) + ":f").kind;
  auto chosen = choose_method(kind, wanted, kernel, functions, true);
  if (!chosen) return chosen.error().message;
  return std::string(to_string(chosen->backend)) + (chosen->session ? " session" : "");
}

TEST(ChooseWay, kprobes_come_by_the_thousand_where_the_kernel_can) {
  EXPECT_EQ(way("kprobe", linux_6_1()), "perf_kprobe");
  EXPECT_EQ(way("kprobe", linux_6_12()), "kprobe_multi");
  EXPECT_EQ(way("kretprobe", linux_6_12()), "kprobe_multi");
}

TEST(ChooseWay, both_ends_of_a_call_are_one_program_where_there_are_sessions) {
  EXPECT_EQ(way("ksession", linux_6_1()), "perf_kprobe");
  EXPECT_EQ(way("ksession", linux_6_12()), "kprobe_session session");
  EXPECT_EQ(way("fsession", linux_6_12()), "tracing");
  EXPECT_EQ(way("fsession", linux_7_2()), "tracing_multi session");
}

TEST(ChooseWay, trampolines_are_made_one_by_one_before_7_2) {
  EXPECT_EQ(way("fentry", linux_5_10()), "tracing");
  EXPECT_EQ(way("fexit", linux_7_2()), "tracing_multi");
}

TEST(ChooseWay, any_function_is_a_kprobe_which_misses_no_hit_of_a_preempted_task) {
  for (const std::size_t functions : {std::size_t{1}, std::size_t{40'000}}) {
    EXPECT_EQ(way("kfunc", linux_7_2(), Backend::automatic, functions), "kprobe_multi");
    EXPECT_EQ(way("kretfunc", linux_7_2(), Backend::automatic, functions), "kprobe_multi");
    EXPECT_EQ(way("kcall", linux_7_2(), Backend::automatic, functions), "kprobe_session session");
    EXPECT_EQ(way("kfunc", linux_6_1(), Backend::automatic, functions), "perf_kprobe");
  }
}

TEST(ChooseWay, returns_are_trampolines_where_kprobes_remember_only_a_few_calls) {
  EXPECT_EQ(way("kretfunc", linux_6_1()), "tracing");
  EXPECT_EQ(way("kcall", linux_6_1()), "tracing");
  EXPECT_EQ(way("kcall", linux_6_1(), Backend::automatic, 400), "perf_kprobe") << "too slow to attach";
}

TEST(ChooseWay, a_kernel_without_kprobes_says_so_or_takes_trampolines) {
  KernelAbilities none{.machine = Machine::x86_64};
  none.perf_kprobe = false;
  EXPECT_THAT(way("kprobe", none), HasSubstr("this kernel has no kprobes"));
  EXPECT_THAT(way("kcall", none), HasSubstr("this kernel has no kprobes and no BPF trampolines"));
  KernelAbilities trampolines = linux_6_1();
  trampolines.perf_kprobe = false;
  EXPECT_EQ(way("kfunc", trampolines, Backend::automatic, 400), "tracing");
}

TEST(ChooseWay, a_trampoline_that_is_named_is_taken) {
  EXPECT_EQ(way("kfunc", linux_7_2(), Backend::tracing_multi), "tracing_multi");
  EXPECT_EQ(way("kcall", linux_7_2(), Backend::tracing), "tracing session");
}

TEST(ChooseWay, what_the_kernel_has_not_is_said_with_what_to_take_instead) {
  KernelAbilities arm64 = linux_6_1();
  arm64.tracing = false;
  EXPECT_THAT(way("fentry", arm64), HasSubstr("kprobe or kfunc names do without"));
  EXPECT_EQ(way("kfunc", arm64), "perf_kprobe");
  EXPECT_THAT(way("kprobe", linux_6_1(), Backend::kprobe_multi), HasSubstr("5.18"));
  EXPECT_THAT(way("fentry", linux_6_12(), Backend::tracing_multi), HasSubstr("7.2"));
}

TEST(ChooseWay, a_backend_of_another_kind_is_refused) {
  EXPECT_THAT(way("fentry", linux_7_2(), Backend::kprobe_multi),
              HasSubstr("fentry cannot be attached by kprobe_multi"));
  EXPECT_THAT(way("kprobe", linux_7_2(), Backend::tracing), HasSubstr("kprobe cannot be attached by tracing"));
}

/// A kernel of four functions and a tracepoint, all `int NAME(int x)`.
class KernelPlan : public ::testing::Test {
 protected:
  KernelPlan() {
    fake_.kallsyms(
        "ffffffff81000100 T f_one\nffffffff81000200 T f_two\nffffffff81000300 T f_three\n"
        "ffffffff81001100 T f_alike\nffffffff81002000 t f_twice\nffffffff81002100 t f_twice\n");
    fake_.traceable("f_one\nf_two\nf_three\nf_alike\nf_twice\nf_twice\n");
    fake_.types({"f_one", "f_two", "f_three", "f_alike", "f_twice"}, {"tick"});
  }

  AttachPlan plan(const std::vector<std::string>& texts, const KernelAbilities& kernel, PlanOptions options = {}) {
    std::vector<KernelPattern> patterns;
    for (const std::string& text : texts) patterns.push_back(pattern(text));
    auto selection = kernel::select_from(fake_.sources(), patterns);
    EXPECT_TRUE(selection) << selection.error().message;
    auto made = plan_attach({.kernel = *selection}, {.abilities = kernel}, options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  static CarrierPlan carried(const AttachPlan& plan, const KernelAbilities& kernel,
                             Carrier carrier = Carrier::automatic) {
    auto made = plan_carriers(plan, {.carrier = carrier, .attach_cookies = kernel.perf_cookies});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  FakeKernel fake_;
};

TEST_F(KernelPlan, a_glob_is_one_link_of_all_its_functions) {
  const AttachPlan made = plan({"kprobe:f_*"}, linux_6_12());
  const CarrierPlan carriers = carried(made, linux_6_12());
  ASSERT_THAT(carriers.links, SizeIs(1));
  EXPECT_THAT(carriers.links[0].offsets, SizeIs(6));
  EXPECT_EQ(carriers.programs[carriers.links[0].program].kind.backend, Backend::kprobe_multi);
  EXPECT_EQ(made.specs.size(), 1U) << "one prototype, one spec";
}

TEST_F(KernelPlan, names_that_are_not_unique_are_skipped_with_the_reason_by_trampolines) {
  const AttachPlan made = plan({"fentry:f_*"}, linux_7_2());
  EXPECT_THAT(made.sites, SizeIs(4));
  ASSERT_FALSE(made.skipped.empty());
  EXPECT_THAT(made.skipped[0].reason, HasSubstr("not unique"));
}

TEST_F(KernelPlan, frames_of_a_stack_that_are_the_tracings_own_differ_by_machine) {
  KernelAbilities arm64 = linux_6_12();
  arm64.machine = Machine::aarch64;
  const auto frames = [&](const char* text, const KernelAbilities& kernel) {
    return unsigned{plan({text}, kernel).sites.begin()->tracer_frames};
  };
  EXPECT_EQ(frames("kprobe:f_one", linux_6_12()), 0U) << "taken from the registers";
  EXPECT_EQ(frames("kprobe:f_one", arm64), 0U);
  EXPECT_EQ(frames("fentry:f_one", linux_6_12()), 2U) << "the program, the trampoline";
  EXPECT_EQ(frames("fentry:f_one", arm64), 3U) << "the program twice";
}

TEST_F(KernelPlan, a_call_without_sessions_is_two_programs_the_return_attached_first) {
  const AttachPlan made = plan({"ksession:f_one"}, linux_6_1());
  const CarrierPlan carriers = carried(made, linux_6_1());
  ASSERT_THAT(carriers.links, SizeIs(2));
  const auto entry =
      std::ranges::find_if(carriers.links, [](const PlannedLink& link) { return link.ends.has_value(); });
  ASSERT_NE(entry, carriers.links.end());
  const PlannedLink& exit = carriers.links[*entry->ends];
  EXPECT_FALSE(exit.ends);
  EXPECT_EQ(carriers.programs[exit.program].kind.moment, Moment::exit);
  EXPECT_EQ(carriers.programs[entry->program].kind.moment, Moment::entry);
  EXPECT_EQ(carriers.programs[entry->program].partner, exit.program);
  EXPECT_EQ(carriers.programs[exit.program].partner, entry->program);
  EXPECT_TRUE(carriers.programs[0].kind.calls);
  EXPECT_EQ(exit.cookies, entry->cookies);
  EXPECT_EQ(exit.sites, entry->sites);
}

TEST_F(KernelPlan, both_programs_of_a_call_read_its_cookie_alike) {
  AttachPlan made = plan({"fsession:f_one"}, linux_6_1());
  usdt_arg_spec& first = made.specs[made.sites[0].spec].args[0];
  first.kind = USDT_ARG_UNREADABLE;  // a struct by value
  first.reg = USDT_REG_NONE;
  first.flags = 0;
  const CarrierPlan carriers = carried(made, linux_6_1(), Carrier::cookie);
  ASSERT_THAT(carriers.programs, SizeIs(2));
  EXPECT_FALSE(carriers.programs[0].packed_regs);
  EXPECT_FALSE(carriers.programs[1].packed_regs) << "it would look for the result where there is none";
}

TEST_F(KernelPlan, the_result_is_the_last_argument_and_says_so) {
  const AttachPlan made = plan({"fsession:f_one"}, linux_7_2());
  const auto& args = made.args[made.sites[0].args];
  ASSERT_THAT(args, SizeIs(2));
  EXPECT_FALSE(args[0].result);
  EXPECT_TRUE(args[1].result);
  EXPECT_EQ(made.specs[made.sites[0].spec].args[1].reg, USDT_SLOT_RESULT);
}

TEST_F(KernelPlan, a_kprobe_at_the_return_has_the_result_alone) {
  const AttachPlan made = plan({"kretprobe:f_one"}, linux_6_12());
  const auto& args = made.args[made.sites[0].args];
  ASSERT_THAT(args, SizeIs(1));
  EXPECT_TRUE(args[0].result);
}

TEST_F(KernelPlan, results_in_registers_of_a_call_do_not_travel_in_cookies_which_cannot_tell_them) {
  const AttachPlan made = plan({"ksession:f_one"}, linux_6_12());
  EXPECT_EQ(carried(made, linux_6_12(), Carrier::table).in_cookie, 0U);
  EXPECT_FALSE(plan_carriers(made, {.carrier = Carrier::cookie}));
}

TEST_F(KernelPlan, without_the_helper_the_result_is_behind_the_arguments) {
  const AttachPlan made = plan({"fexit:f_one"}, linux_5_10());
  EXPECT_EQ(made.groups[0].source, USDT_SOURCE_OLD_SLOTS);
  EXPECT_EQ(made.specs[made.sites[0].spec].args[1].reg, 1);
}

TEST_F(KernelPlan, kernels_without_cookies_tell_kprobes_by_address) {
  const AttachPlan made = plan({"kprobe:f_one", "kprobe:f_two", "kprobe:f_alike"}, linux_5_10());
  const CarrierPlan carriers = carried(made, linux_5_10());
  EXPECT_EQ(carriers.carrier, Carrier::ip_hash);
  EXPECT_THAT(carriers.programs, SizeIs(2)) << "f_one and f_alike share the low 12 bits";
  for (const Index<PlannedSite> site : made.sites.indices()) {
    const std::uint64_t address = pc_of(made, made.sites[site])->value;
    bool found = false;
    for (std::uint32_t group = 0; group < 2; ++group)
      found |= USDT_COOKIE_SITE(carriers.ips[USDT_IP_KEY(group, address)]) == site.value;
    EXPECT_TRUE(found) << "site " << site.value;
  }
}

TEST_F(KernelPlan, and_trampolines_and_tracepoints_by_a_cookie_in_their_own_program) {
  const AttachPlan made = plan({"fentry:f_one", "raw_tp:tick", "kretprobe:f_two"}, linux_5_10());
  const CarrierPlan carriers = carried(made, linux_5_10());
  EXPECT_THAT(carriers.programs, SizeIs(3));
  for (const PlannedProgram& program : carriers.programs)
    EXPECT_TRUE(program.carriers & USDT_CARRIER_BIT(USDT_CARRIER_FIXED)) << to_string(program.kind.backend);
  std::set<std::uint32_t> sites;
  for (const PlannedLink& link : carriers.links) sites.insert(USDT_COOKIE_SITE(link.cookies[0]));
  EXPECT_EQ(sites, (std::set<std::uint32_t>{0, 1, 2}));
}

TEST_F(KernelPlan, kinds_of_hits_do_not_share_programs) {
  const AttachPlan made = plan({"kprobe:f_one", "fentry:f_one", "raw_tp:tick"}, linux_7_2());
  const CarrierPlan carriers = carried(made, linux_7_2(), Carrier::table);
  EXPECT_THAT(carriers.programs, SizeIs(3));
  EXPECT_THAT(carriers.links, SizeIs(3));
}

TEST_F(KernelPlan, each_kind_has_its_own_copy_of_a_spec) {
  const AttachPlan made = plan({"kprobe:f_one", "kprobe:f_two", "fentry:f_one"}, linux_7_2());
  const CarrierPlan carriers = carried(made, linux_7_2(), Carrier::per_link);
  EXPECT_THAT(carriers.programs, SizeIs(2));
  EXPECT_EQ(carriers.in_program, 3U);
}

TEST_F(KernelPlan, user_cookies_are_asked_for_by_function) {
  PlanOptions options;
  options.user_cookie_of = [](const PointName& point) { return point.name == "f_two" ? 2U : 1U; };
  const AttachPlan made = plan({"kprobe:f_one", "kprobe:f_two"}, linux_6_12(), options);
  EXPECT_EQ(made.specs[made.sites[0].spec].user_cookie, 1U);
  EXPECT_EQ(made.specs[made.sites[1].spec].user_cookie, 2U);
}

TEST_F(KernelPlan, a_function_named_twice_is_attached_once_for_each_kind) {
  EXPECT_THAT(plan({"kprobe:f_one", "kprobe:f_o*", "kretprobe:f_one"}, linux_6_12()).sites, SizeIs(2));
}

TEST_F(KernelPlan, what_only_a_trampoline_refuses_falls_back_to_a_kprobe_where_any_will_do) {
  const AttachPlan made = plan({"kretfunc:f_*"}, linux_6_1());
  EXPECT_THAT(made.sites, SizeIs(6));
  std::set<Backend> backends;
  for (const AttachGroup& group : made.groups) backends.insert(group.backend);
  EXPECT_EQ(backends, (std::set<Backend>{Backend::tracing, Backend::perf_kprobe}));
}

}  // namespace
}  // namespace usdt::plan
