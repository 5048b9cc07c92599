// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usdt/kernel.hpp"

namespace usdt {
namespace {

using ::testing::HasSubstr;

constexpr KernelKind kKprobe{KernelFamily::kprobe, KernelMoment::entry};

Error error_of(std::string_view text) {
  const auto parsed = KernelPattern::parse(text);
  EXPECT_FALSE(parsed) << text;
  return parsed ? Error{} : parsed.error();
}

TEST(KernelPattern, every_prefix_is_its_family_and_moment) {
  const std::vector<std::pair<std::string, KernelKind>> prefixes = {
      {"kprobe", {KernelFamily::kprobe, KernelMoment::entry}},
      {"kretprobe", {KernelFamily::kprobe, KernelMoment::exit}},
      {"ksession", {KernelFamily::kprobe, KernelMoment::call}},
      {"fentry", {KernelFamily::trampoline, KernelMoment::entry}},
      {"fexit", {KernelFamily::trampoline, KernelMoment::exit}},
      {"fsession", {KernelFamily::trampoline, KernelMoment::call}},
      {"kfunc", {KernelFamily::any, KernelMoment::entry}},
      {"kretfunc", {KernelFamily::any, KernelMoment::exit}},
      {"kcall", {KernelFamily::any, KernelMoment::call}},
      {"raw_tp", {KernelFamily::raw_tp, KernelMoment::tracepoint}},
      {"tp_btf", {KernelFamily::tp_btf, KernelMoment::tracepoint}}};
  for (const auto& [prefix, kind] : prefixes) {
    const auto parsed = KernelPattern::parse(prefix + ":name");
    ASSERT_TRUE(parsed) << prefix;
    EXPECT_EQ(parsed->kind, kind) << prefix;
    EXPECT_EQ(to_string(kind), prefix);
    EXPECT_EQ(parsed->str(), prefix + ":name");
  }
}

TEST(KernelPattern, bpftraces_other_names_of_prefixes_are_known) {
  EXPECT_EQ(KernelPattern::parse("k:vfs_read")->str(), "kprobe:vfs_read");
  EXPECT_EQ(KernelPattern::parse("kr:vfs_read")->str(), "kretprobe:vfs_read");
  EXPECT_EQ(KernelPattern::parse("rawtracepoint:sched_switch")->str(), "raw_tp:sched_switch");
  EXPECT_EQ(KernelPattern::parse("rt:sched_switch")->str(), "raw_tp:sched_switch");
}

TEST(KernelPattern, a_module_stands_between_prefix_and_name) {
  const auto parsed = KernelPattern::parse("kprobe:nf_*:nf_hook_*");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->kind, kKprobe);
  EXPECT_EQ(parsed->module, "nf_*");
  EXPECT_EQ(parsed->name, "nf_hook_*");
  EXPECT_EQ(parsed->str(), "kprobe:nf_*:nf_hook_*");
}

TEST(KernelPattern, what_has_no_kernel_prefix_is_none) {
  EXPECT_TRUE(KernelPattern::is_kernel("kprobe:"));
  EXPECT_TRUE(KernelPattern::is_kernel("rt:x"));
  for (const char* text : {"", "kprobe", "usdt:x:y", "u:x:y", "kprobes:x", "Kprobe:x", ":x", "libc:setjmp"}) {
    EXPECT_FALSE(KernelPattern::is_kernel(text)) << text;
  }
  EXPECT_EQ(error_of("vfs_read").column, 0U);
  EXPECT_THAT(error_of("vfs_read").message, HasSubstr("write kprobe:NAME"));
}

TEST(KernelPattern, syntax_errors_name_the_column) {
  EXPECT_EQ(error_of("kprobe:").column, 7U);
  EXPECT_THAT(error_of("kprobe:").message, HasSubstr("empty name"));
  EXPECT_EQ(error_of("fentry:xfs:").column, 11U);
  EXPECT_EQ(error_of("k::x").column, 2U);
  EXPECT_THAT(error_of("k::x").message, HasSubstr("empty module"));
  EXPECT_EQ(error_of("kprobe:a:b:c").column, 10U);
  EXPECT_THAT(error_of("kprobe:a:b:c").message, HasSubstr("kprobe:MODULE:NAME"));
  EXPECT_EQ(error_of("kprobe:a:b:c").kind, ErrorKind::syntax);
}

TEST(KernelPattern, offsets_into_functions_are_refused_with_what_to_write) {
  const Error error = error_of("kprobe:vfs_read+8");
  EXPECT_EQ(error.kind, ErrorKind::syntax);
  EXPECT_EQ(error.column, 15U);
  EXPECT_THAT(error.message, HasSubstr("offset"));
  EXPECT_TRUE(error.message.ends_with("write kprobe:vfs_read")) << error.message;
  EXPECT_EQ(error_of("kprobe:xfs:read+0x10").column, 15U);
}

}  // namespace
}  // namespace usdt
