// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/catalogue.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "fixture.hpp"

namespace usdt::kernel {
namespace {

using test::FakeKernel;
using test::function;
using test::pattern;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> all_names(std::span<const KernelFunction> functions) {
  std::vector<std::string> out;
  for (const KernelFunction& found : functions)
    out.push_back((found.module.empty() ? "" : std::string(found.module) + ":") + std::string(found.name));
  return out;
}

/// Who is traced, by address: the copies of a name.
std::vector<bool> traced(const Catalogue& catalogue, std::string_view name) {
  std::vector<bool> out;
  for (const KernelFunction& found : catalogue.functions()) {
    if (found.name == name) out.push_back(found.ftrace);
  }
  return out;
}

TEST(Catalogue, functions_come_by_module_and_name) {
  FakeKernel kernel;
  kernel.kallsyms("30 T write\n10 T read\n90 t b\t[xfs]\n80 t a\t[xfs]\n70 t z\t[ext4]\n").traceable("read\n");
  EXPECT_THAT(all_names(kernel.load()->functions()), ElementsAre("read", "write", "ext4:z", "xfs:a", "xfs:b"));
}

TEST(Catalogue, a_function_is_traceable_if_ftrace_lists_it_in_its_module) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n20 t helper\n80 t helper\t[xfs]\n").traceable("read\nhelper [xfs]\n");
  const auto catalogue = kernel.load();
  EXPECT_TRUE(function(*catalogue, "read").ftrace);
  EXPECT_FALSE(function(*catalogue, "helper").ftrace);
  EXPECT_TRUE(function(*catalogue, "helper", "xfs").ftrace);
  EXPECT_FALSE(function(*catalogue, "helper").duplicate) << "another module's function is looked up on its own";
  EXPECT_TRUE(needs_perf_kprobe(function(*catalogue, "helper")));
  EXPECT_FALSE(needs_perf_kprobe(function(*catalogue, "read")));
}

TEST(Catalogue, types_are_those_of_the_functions_own_module) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n20 t helper\n80 t helper\t[xfs]\n").traceable("").types({"write", "read"});
  kernel.module_types("xfs", {"helper"});
  const auto catalogue = kernel.load();
  const KernelFunction read = function(*catalogue, "read");
  const KernelFunction helper = function(*catalogue, "helper", "xfs");
  ASSERT_NE(catalogue->btf(""), nullptr);
  EXPECT_EQ(catalogue->btf(""), catalogue->btf("vmlinux"));
  EXPECT_EQ(catalogue->btf("")->prototype(read.proto_id)->parameters.at(0).name, "x");
  EXPECT_NE(read.btf_id, 0U);
  EXPECT_EQ(function(*catalogue, "helper").btf_id, 0U);
  EXPECT_GT(helper.btf_id, read.btf_id) << "a module's ids go on where the kernel's end";
  EXPECT_EQ(catalogue->btf("xfs")->prototype(helper.proto_id)->parameters.size(), 1U);
  EXPECT_EQ(catalogue->btf("ext4"), nullptr);
}

TEST(Catalogue, what_the_compiler_changed_has_no_types) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n20 t read.isra.0\n").traceable("read\nread.isra.0\n").types({"read", "read.isra.0"});
  const auto catalogue = kernel.load();
  EXPECT_NE(function(*catalogue, "read").btf_id, 0U);
  EXPECT_EQ(function(*catalogue, "read.isra.0").btf_id, 0U);
}

TEST(Catalogue, two_types_of_one_name_that_differ_are_nobodys) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n20 T same\n").traceable("").types({"same", "same"});
  EXPECT_NE(function(*kernel.load(), "same").btf_id, 0U) << "twice the same prototype is no contradiction";
  const test::Btf types = test::types_of({"read"}, {});
  const int other = btf__add_func_proto(types.get(), 0);
  btf__add_func(types.get(), "read", BTF_FUNC_STATIC, other);
  std::uint32_t size = 0;
  const void* bytes = btf__raw_data(types.get(), &size);
  kernel.write("btf/vmlinux", {static_cast<const char*>(bytes), size});
  EXPECT_EQ(function(*kernel.load(), "read").btf_id, 0U);
}

TEST(Catalogue, a_name_of_several_functions_is_there_once_for_each) {
  FakeKernel kernel;
  kernel.kallsyms("10 t show\n900 t show\n500 t once\n").traceable("show\nshow\nonce\n");
  const auto catalogue = kernel.load();
  EXPECT_THAT(all_names(catalogue->functions()), ElementsAre("once", "show", "show"));
  EXPECT_EQ(catalogue->functions()[1].address, 0x10U);
  EXPECT_EQ(catalogue->functions()[2].address, 0x900U);
  EXPECT_TRUE(catalogue->functions()[2].duplicate);
  EXPECT_FALSE(function(*catalogue, "once").duplicate);
  EXPECT_THAT(traced(*catalogue, "show"), ElementsAre(true, true));
}

TEST(Catalogue, addresses_tell_which_copies_ftrace_can_trace) {
  FakeKernel kernel;
  kernel.kallsyms("100 t show\n110 t show\n900 t show\n").traceable("show\nshow\n");
  EXPECT_THAT(traced(*kernel.load(), "show"), ElementsAre(false, false, false)) << "before 6.5 nobody knows";
  kernel.traceable_addresses("114 show\n904 show\n");
  EXPECT_THAT(traced(*kernel.load(), "show"), ElementsAre(false, true, true)) << "behind endbr64";
  kernel.traceable_addresses("100 show\n911 show\n");
  EXPECT_THAT(traced(*kernel.load(), "show"), ElementsAre(true, false, false)) << "17 bytes are too far";
}

TEST(Catalogue, an_empty_list_of_addresses_is_as_good_as_none) {
  FakeKernel kernel;
  kernel.kallsyms("10 t show\n").traceable("show\n").traceable_addresses("");
  EXPECT_THAT(traced(*kernel.load(), "show"), ElementsAre(true));
}

TEST(Catalogue, another_name_of_a_traceable_address_is_an_alias) {
  FakeKernel kernel;
  kernel.kallsyms("10 t __do_sys_fork\n10 T __x64_sys_fork\n20 T other\n").traceable("__do_sys_fork\n");
  const auto catalogue = kernel.load();
  EXPECT_TRUE(function(*catalogue, "__x64_sys_fork").ftrace);
  EXPECT_TRUE(function(*catalogue, "__x64_sys_fork").alias);
  EXPECT_FALSE(function(*catalogue, "__do_sys_fork").alias);
  EXPECT_FALSE(function(*catalogue, "other").ftrace);
}

TEST(Catalogue, what_ftrace_lists_without_a_symbol_has_no_address) {
  FakeKernel kernel;
  kernel.kallsyms("20 T read\n").traceable_addresses("14 gone\n24 read\n30 twice\n40 twice\n");
  const auto catalogue = kernel.load();
  EXPECT_THAT(all_names(catalogue->functions()), ElementsAre("gone", "read", "twice"));
  EXPECT_EQ(function(*catalogue, "gone").address, 0U);
  EXPECT_TRUE(function(*catalogue, "gone").ftrace);
  EXPECT_TRUE(function(*catalogue, "twice").duplicate);
}

TEST(Catalogue, hidden_addresses_leave_names_and_their_number) {
  FakeKernel kernel;
  kernel.kallsyms("0 T read\n0 t show\n0 t show\n").traceable("read\nshow\nshow\n").types({"read"});
  const auto catalogue = kernel.load();
  EXPECT_EQ(catalogue->functions().size(), 3U);
  EXPECT_TRUE(function(*catalogue, "read").ftrace);
  EXPECT_FALSE(function(*catalogue, "read").alias) << "address 0 is nobody's";
  EXPECT_TRUE(function(*catalogue, "show").duplicate);
  EXPECT_THAT(catalogue->missing(), Contains(HasSubstr("kptr_restrict")));
}

TEST(Catalogue, the_blacklist_counts_by_address_not_by_name) {
  FakeKernel kernel;
  kernel.kallsyms("100 t trap\n200 t trap\n300 T end\n").traceable("").blacklist("0x200-0x300\ttrap\n");
  const auto catalogue = kernel.load();
  EXPECT_FALSE(catalogue->functions()[1].denied);
  EXPECT_TRUE(catalogue->functions()[2].denied);
  EXPECT_FALSE(function(*catalogue, "end").denied) << "the end of a range is outside it";
  kernel.kallsyms("0 t trap\n0 T end\n");
  EXPECT_TRUE(function(*kernel.load(), "trap").denied) << "by name where addresses are hidden";
}

TEST(Catalogue, without_the_blacklist_its_sections_are_known_from_markers) {
  FakeKernel kernel;
  kernel.kallsyms("100 T __noinstr_text_start\n100 t handle_int3\n200 T __noinstr_text_end\n200 t fine\n")
      .traceable("");
  const auto catalogue = kernel.load();
  EXPECT_TRUE(function(*catalogue, "handle_int3").denied);
  EXPECT_FALSE(function(*catalogue, "fine").denied);
  EXPECT_THAT(catalogue->missing(), Contains(HasSubstr("mount -t debugfs")));
}

TEST(Catalogue, raw_tracepoints_come_from_the_types_of_kernel_and_modules) {
  FakeKernel kernel;
  kernel.types({}, {"sched_switch", "block_rq_issue"}).module_types("xfs", {}, {"xfs_buf_init"});
  kernel.kallsyms("10 T read\n");
  const auto catalogue = kernel.load();
  EXPECT_THAT(all_names(catalogue->tracepoints()), ElementsAre("block_rq_issue", "sched_switch", "xfs:xfs_buf_init"));
  for (const KernelFunction& tracepoint : catalogue->tracepoints()) {
    EXPECT_NE(tracepoint.btf_id, 0U) << tracepoint.name;
    EXPECT_TRUE(catalogue->btf(tracepoint.module)->prototype(tracepoint.proto_id)) << tracepoint.name;
  }
}

TEST(Catalogue, without_types_raw_tracepoints_come_from_the_events) {
  FakeKernel kernel;
  kernel.events("sched:sched_switch\nsyscalls:sys_enter_read\n").kallsyms("10 T read\n");
  const auto catalogue = kernel.load();
  EXPECT_THAT(all_names(catalogue->tracepoints()), ElementsAre("sched_switch"));
  EXPECT_EQ(catalogue->tracepoints()[0].btf_id, 0U);
  EXPECT_THAT(catalogue->missing(), Contains(HasSubstr("CONFIG_DEBUG_INFO_BTF")));
}

TEST(Catalogue, only_lists_that_the_patterns_need_are_read) {
  FakeKernel kernel;
  kernel.types({"read"}, {"sched_switch"});
  const std::vector only_tracepoint = {pattern("raw_tp:sched_switch")};
  const auto catalogue = kernel.load(only_tracepoint);
  EXPECT_TRUE(catalogue->functions().empty());
  EXPECT_TRUE(catalogue->missing().empty()) << catalogue->missing()[0];
  kernel.kallsyms("10 T read\n").traceable("read\n");
  const std::vector only_function = {pattern("kprobe:read")};
  EXPECT_TRUE(kernel.load(only_function)->tracepoints().empty());
}

TEST(Catalogue, functions_that_no_pattern_means_are_not_kept) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n80 t a\t[xfs]\n90 t b\t[ext4]\n90 T alias\t[ext4]\n").traceable("");
  const std::vector both = {pattern("kprobe:a"), pattern("kprobe:ext4:ali*")};
  EXPECT_THAT(all_names(kernel.load(both)->functions()), ElementsAre("ext4:alias", "ext4:b", "xfs:a"))
      << "but another name of what one means";
}

TEST(Catalogue, each_of_ten_thousand_names_is_kept) {
  FakeKernel kernel;
  std::string symbols;
  std::vector<KernelPattern> patterns;
  for (unsigned i = 0; i < 100'000; ++i) {
    symbols += fmt::format("{:x} T function_{}\n", 0x10'0000 + i * 16, i);
    if (i % 10 == 0) patterns.push_back(pattern(fmt::format("kprobe:function_{}", i)));
  }
  kernel.kallsyms(symbols).traceable("");
  EXPECT_EQ(kernel.load(patterns)->functions().size(), 10'000U);
}

TEST(Catalogue, with_types_alone_their_functions_are_known_by_name) {
  FakeKernel kernel;
  kernel.types({"write", "read"});
  const auto catalogue = kernel.load();
  EXPECT_THAT(all_names(catalogue->functions()), ElementsAre("read", "write"));
  EXPECT_NE(function(*catalogue, "read").btf_id, 0U);
  EXPECT_FALSE(catalogue->knows_ftrace());
  EXPECT_THAT(catalogue->missing(), Contains(HasSubstr("mount -t tracefs")));
}

TEST(Catalogue, with_nothing_at_all_the_error_says_what_to_do) {
  FakeKernel kernel;
  const auto loaded = Catalogue::load(kernel.sources());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::not_supported);
  EXPECT_THAT(loaded.error().message, HasSubstr("mount -t tracefs tracefs /sys/kernel/tracing"));
  EXPECT_THAT(loaded.error().message, HasSubstr("cannot list the kernel's functions"));
}

/// What `judge` says as a user who may read none of the fake kernel's files.
bool as_nobody(const std::function<bool()>& judge) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0 ? 2 : !judge());
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST(Catalogue, lists_that_may_not_be_read_ask_for_root) {
  FakeKernel kernel;
  kernel.traceable("read\n").kallsyms("10 T read\n");
  std::filesystem::permissions(kernel.sources().kallsyms, std::filesystem::perms::none);
  std::filesystem::permissions(kernel.sources().tracefs[1], std::filesystem::perms::none);
  EXPECT_TRUE(as_nobody([&] {
    const auto loaded = Catalogue::load(kernel.sources());
    return !loaded && loaded.error().kind == ErrorKind::no_permission &&
           loaded.error().message.find("run as root") != std::string::npos;
  }));
  std::filesystem::permissions(kernel.sources().tracefs[1], std::filesystem::perms::owner_all);
}

TEST(Catalogue, a_mounted_tracefs_without_the_list_is_a_kernel_without_ftrace) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n").write("tracing/trace", "");
  EXPECT_THAT(kernel.load()->missing(), Contains(HasSubstr("CONFIG_DYNAMIC_FTRACE")));
}

TEST(Catalogue, types_that_are_malformed_are_missing_and_nothing_else_is) {
  FakeKernel kernel;
  kernel.kallsyms("10 T read\n").traceable("read\n").write("btf/vmlinux", "garbage");
  const auto catalogue = kernel.load();
  EXPECT_TRUE(function(*catalogue, "read").ftrace);
  EXPECT_EQ(catalogue->btf(""), nullptr);
  EXPECT_THAT(catalogue->missing(), Contains(HasSubstr("btf/vmlinux")));
}

TEST(Catalogue, two_hundred_thousand_symbols_are_all_there) {
  FakeKernel kernel;
  std::string symbols;
  std::string traceable;
  for (unsigned i = 0; i < 200'000; ++i) {
    const std::string name = "subsystem_function_" + std::to_string(i * 7919 % 200'000);
    symbols += std::to_string(10'000'000 + i * 100) + " T " + name + "\n";
    if (i % 2 == 0) traceable += name + "\n";
  }
  kernel.kallsyms(symbols).traceable(traceable);
  const auto catalogue = kernel.load();
  EXPECT_EQ(catalogue->functions().size(), 200'000U);
  EXPECT_EQ(std::ranges::count(catalogue->functions(), true, &KernelFunction::ftrace), 100'000);
  EXPECT_TRUE(std::ranges::is_sorted(catalogue->functions(), {}, &KernelFunction::name));
}

}  // namespace
}  // namespace usdt::kernel
