// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace usdt::kernel {
namespace {

using test::FakeKernel;
using test::names;
using test::pattern;
using test::reasons;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MatchTest : public ::testing::Test {
 protected:
  MatchTest() {
    kernel_.kallsyms(
        "10 T vfs_read\n20 T vfs_write\n30 t vfs_hidden\n40 t vfs_open.isra.0\n50 t show\n60 t show\n"
        "70 t __do_sys_fork\n70 T __x64_sys_fork\n80 t vfs_read\t[fuse]\n90 t fuse_open\t[fuse]\n");
    kernel_.traceable(
        "vfs_read\nvfs_write\nvfs_open.isra.0\nshow\nshow\n__do_sys_fork\nvfs_read [fuse]\nfuse_open [fuse]\n");
    kernel_.types({"vfs_read", "vfs_write", "vfs_hidden", "show", "__do_sys_fork"}, {"sched_switch", "sched_wakeup"});
    kernel_.module_types("fuse", {"vfs_read", "fuse_open"}, {"fuse_request"});
  }
  /// The same whether the lists were read for this pattern or for any.
  Result<Match> match_twice(std::string_view text) {
    const std::vector only = {pattern(text)};
    auto of_all = kernel::match(*loaded_.emplace_back(kernel_.load()), only[0]);
    auto of_wanted = kernel::match(*loaded_.emplace_back(kernel_.load(only)), only[0]);
    if (of_all && of_wanted) {
      EXPECT_EQ(told(*of_all), told(*of_wanted)) << text;
    } else {
      EXPECT_EQ(of_all ? "" : of_all.error().message, of_wanted ? "" : of_wanted.error().message) << text;
    }
    return of_wanted;
  }
  Match match(std::string_view text) {
    auto found = match_twice(text);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(Match{});
  }
  Error error_of(std::string_view text) {
    const auto found = match_twice(text);
    EXPECT_FALSE(found) << text;
    return found ? Error{} : found.error();
  }
  /// Everything that is known of what matched, a line each.
  static std::vector<std::string> told(const Match& found) {
    std::vector<std::string> out = reasons(found.refused);
    for (const KernelFunction* f : found.functions)
      out.push_back(fmt::format("{}:{} {:x} {} {} {}{}{}{}", f->module, f->name, f->address, f->btf_id, f->proto_id,
                                f->ftrace, f->alias, f->denied, f->duplicate));
    return out;
  }

  FakeKernel kernel_;
  std::vector<std::shared_ptr<const Catalogue>> loaded_;  ///< own what was matched
};

TEST_F(MatchTest, a_plain_name_means_every_function_of_that_name) {
  EXPECT_EQ(match("kprobe:vfs_write").functions.size(), 1U);
  const Match read = match("kprobe:vfs_read");
  ASSERT_EQ(read.functions.size(), 2U);
  EXPECT_EQ(read.functions[0]->module, "");
  EXPECT_EQ(read.functions[1]->module, "fuse");
  EXPECT_EQ(match("kprobe:show").functions.size(), 2U);
}

TEST_F(MatchTest, a_module_narrows_it) {
  EXPECT_EQ(match("kprobe:vmlinux:vfs_read").functions.at(0)->module, "");
  EXPECT_EQ(match("kprobe:vmlinux:vfs_read").functions.size(), 1U);
  EXPECT_EQ(match("kprobe:fu*:vfs_read").functions.at(0)->module, "fuse");
  EXPECT_THAT(names(match("fentry:fuse:*").functions), ElementsAre("fuse_open", "vfs_read"));
}

TEST_F(MatchTest, a_glob_of_kprobes_means_what_ftrace_can_trace) {
  const Match found = match("kprobe:vmlinux:vfs_*");
  EXPECT_THAT(names(found.functions), ElementsAre("vfs_open.isra.0", "vfs_read", "vfs_write"));
  EXPECT_THAT(found.refused, IsEmpty());
}

TEST_F(MatchTest, a_glob_leaves_out_what_must_be_named) {
  kernel_.kallsyms("10 t rcu_core\n20 t default_idle\n30 t default_idle_call\n40 t rcu_read_unlock_special\n");
  kernel_.traceable("rcu_core\ndefault_idle\ndefault_idle_call\nrcu_read_unlock_special\n");
  kernel_.types({"rcu_core", "default_idle", "default_idle_call", "rcu_read_unlock_special"});
  for (const char* glob : {"kprobe:*", "fentry:*"}) {
    const Match found = match(glob);
    EXPECT_THAT(names(found.functions), ElementsAre("default_idle_call"));
    EXPECT_THAT(reasons(found.refused), ElementsAre(HasSubstr("default_idle: globs leave out"), HasSubstr("rcu_core: "),
                                                    HasSubstr("rcu_read_unlock_special: ")));
  }
  EXPECT_EQ(match("fentry:rcu_core").functions.size(), 1U);
  EXPECT_THAT(reasons(match("fentry:rcu_read_unlock_special").refused), ElementsAre(HasSubstr("unguarded")));
  EXPECT_EQ(match("kprobe:rcu_read_unlock_special").functions.size(), 1U) << "kprobes are guarded throughout";
}

TEST_F(MatchTest, a_plain_name_reaches_what_a_glob_does_not) {
  EXPECT_THAT(names(match("kprobe:vfs_hidden").functions), ElementsAre("vfs_hidden"));
}

TEST_F(MatchTest, a_glob_of_trampolines_refuses_what_ftrace_can_trace_and_they_cannot) {
  const Match found = match("fentry:vmlinux:*");
  EXPECT_THAT(names(found.functions), ElementsAre("__do_sys_fork", "vfs_read", "vfs_write"));
  EXPECT_THAT(reasons(found.refused),
              ElementsAre(HasSubstr("__x64_sys_fork: no type"), HasSubstr("show: its name is not unique"),
                          HasSubstr("show: its name is not unique"), HasSubstr("vfs_open.isra.0: no type")));
  EXPECT_EQ(found.refused[0].kind, pattern("fentry:x").kind);
}

TEST_F(MatchTest, a_plain_name_that_cannot_be_attached_to_is_refused_with_the_reason) {
  const Match found = match("fentry:vfs_hidden");
  EXPECT_THAT(found.functions, IsEmpty());
  EXPECT_THAT(reasons(found.refused), ElementsAre(HasSubstr("vfs_hidden: not traceable")));
}

TEST_F(MatchTest, a_glob_takes_one_name_of_each_address) {
  EXPECT_THAT(names(match("kprobe:*_sys_fork").functions), ElementsAre("__do_sys_fork"));
  EXPECT_THAT(names(match("kprobe:__x64_*").functions), ElementsAre("__x64_sys_fork"))
      << "by the other name where only that matches";
  EXPECT_THAT(names(match("kprobe:__x64_sys_fork").functions), ElementsAre("__x64_sys_fork"));
}

TEST_F(MatchTest, copies_of_which_some_are_not_traceable_are_refused_where_nobody_says_which) {
  kernel_.kallsyms("10 t show\n900 t show\n50 t shown\n").traceable("show\nshown\n");
  const Match found = match("kprobe:sho*");
  EXPECT_THAT(names(found.functions), ElementsAre("shown"));
  EXPECT_THAT(reasons(found.refused), ElementsAre(HasSubstr("before 6.5"), HasSubstr("before 6.5")));
  kernel_.traceable_addresses("904 show\n50 shown\n");
  EXPECT_EQ(match("kprobe:sho*").functions.at(0)->address, 0x900U);
  EXPECT_THAT(match("kprobe:sho*").refused, IsEmpty());
}

TEST_F(MatchTest, a_misspelt_name_is_not_found_with_names_like_it) {
  const Error error = error_of("kprobe:vfs_raed");
  EXPECT_EQ(error.kind, ErrorKind::not_found);
  EXPECT_THAT(error.message, HasSubstr("no kernel function 'vfs_raed'; near: vfs_read"));
  EXPECT_THAT(error_of("kprobe:vfs_open").message, HasSubstr("near: vfs_open.isra.0"))
      << "what the compiler made of it comes first";
  EXPECT_THAT(error_of("kprobe:nothing_like_this").message, Not(HasSubstr("near")));
  EXPECT_THAT(error_of("raw_tp:sched_swich").message, HasSubstr("no raw tracepoint 'sched_swich'; near: sched_switch"));
}

TEST_F(MatchTest, a_very_long_name_is_not_found_too) {
  EXPECT_EQ(error_of("kprobe:" + std::string(100'000, 'v')).kind, ErrorKind::not_found);
}

TEST_F(MatchTest, a_glob_that_nothing_matches_is_not_found) {
  EXPECT_EQ(error_of("kprobe:zz*").kind, ErrorKind::not_found);
  EXPECT_THAT(error_of("kprobe:zz*").message, HasSubstr("no kernel function matches 'zz*'"));
  const Error untraceable = error_of("kprobe:vfs_hid*");
  EXPECT_EQ(untraceable.kind, ErrorKind::not_found);
  EXPECT_THAT(untraceable.message, HasSubstr("ftrace can trace none"));
}

TEST_F(MatchTest, a_module_that_is_not_loaded_is_named) {
  EXPECT_THAT(error_of("kprobe:xfs:vfs_read").message, HasSubstr("no module 'xfs'"));
  EXPECT_THAT(error_of("kprobe:fuse:vfs_write").message, HasSubstr("no kernel function 'vfs_write' in fuse"));
}

TEST_F(MatchTest, raw_tracepoints_have_modules_but_no_subsystems) {
  EXPECT_THAT(names(match("raw_tp:sched_*").functions), ElementsAre("sched_switch", "sched_wakeup"));
  EXPECT_THAT(names(match("tp_btf:fuse:fuse_request").functions), ElementsAre("fuse_request"));
  EXPECT_THAT(names(match("rt:fuse_request").functions), ElementsAre("fuse_request"));
  EXPECT_THAT(error_of("raw_tp:sched:sched_switch").message, HasSubstr("did you mean raw_tp:sched_switch?"));
}

TEST_F(MatchTest, without_the_list_of_ftrace_globs_are_an_error_and_names_are_not) {
  FakeKernel blind;
  blind.kallsyms("10 T vfs_read\n");
  const auto catalogue = blind.load();
  EXPECT_EQ(kernel::match(*catalogue, pattern("kprobe:vfs_read"))->functions.size(), 1U);
  const auto glob = kernel::match(*catalogue, pattern("kprobe:vfs_*"));
  ASSERT_FALSE(glob);
  EXPECT_EQ(glob.error().kind, ErrorKind::not_supported);
  EXPECT_THAT(glob.error().message, HasSubstr("mount -t tracefs"));
}

TEST_F(MatchTest, a_quoted_letter_is_that_letter) { EXPECT_EQ(match("kprobe:vfs\\_write").functions.size(), 1U); }

TEST_F(MatchTest, patterns_select_each_function_once_for_each_kind) {
  const auto selection = select_from(
      kernel_.sources(), {pattern("kprobe:vfs_write"), pattern("kprobe:vmlinux:vfs_w*"), pattern("kretprobe:vfs_write"),
                          pattern("tp_btf:sched_switch"), pattern("fentry:vfs_hidden"), pattern("fentry:vfs_hidden")});
  ASSERT_TRUE(selection) << selection.error().message;
  ASSERT_EQ(selection->entries.size(), 3U);
  EXPECT_EQ(selection->entries[0].pattern, 0U);
  EXPECT_EQ(selection->entries[1].kind, pattern("kretprobe:x").kind);
  EXPECT_EQ(selection->entries[2].function->name, "sched_switch");
  EXPECT_EQ(selection->entries[2].pattern, 3U);
  EXPECT_EQ(selection->refused.size(), 1U);
}

TEST_F(MatchTest, a_selection_keeps_its_names_alive) {
  auto selection = select_from(kernel_.sources(), {pattern("kprobe:vfs_write")});
  ASSERT_TRUE(selection);
  const KernelSelection copy = *selection;
  selection = fail(ErrorKind::not_found, "gone");
  EXPECT_EQ(copy.entries.at(0).function->name, "vfs_write");
  EXPECT_NE(CatalogueOf::selection(copy).btf(""), nullptr);
}

TEST_F(MatchTest, one_pattern_that_means_nothing_fails_the_selection) {
  EXPECT_EQ(select_from(kernel_.sources(), {pattern("kprobe:vfs_write"), pattern("kprobe:nix")}).error().kind,
            ErrorKind::not_found);
  EXPECT_EQ(select_from(kernel_.sources(), {}).error().kind, ErrorKind::invalid_argument);
}

TEST_F(MatchTest, unless_it_may_be_left_out_which_is_said) {
  const auto selection = select_from(
      kernel_.sources(), {pattern("kprobe:nix"), pattern("kprobe:vfs_write"), pattern("kprobe:vfs_x*")}, true);
  ASSERT_TRUE(selection) << selection.error().message;
  EXPECT_EQ(selection->entries.size(), 1U);
  ASSERT_EQ(selection->unknown.size(), 2U);
  EXPECT_NE(selection->unknown[0].find("no kernel function 'nix'"), std::string::npos);
  const auto nothing = select_from(kernel_.sources(), {pattern("kprobe:nix"), pattern("kprobe:nox")}, true);
  EXPECT_EQ(nothing.error().kind, ErrorKind::not_found) << "there is nothing to go on with";
}

}  // namespace
}  // namespace usdt::kernel
