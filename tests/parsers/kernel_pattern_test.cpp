// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usdt/pattern.hpp"

namespace usdt {
namespace {

using ::testing::HasSubstr;

constexpr KernelKind kKprobe{KernelFamily::kprobe, Moment::entry};

Error error_of(std::string_view text) {
  const auto parsed = KernelPattern::parse(text);
  EXPECT_FALSE(parsed) << text;
  return parsed ? Error{} : parsed.error();
}

TEST(KernelPattern, every_prefix_is_its_family_and_moment) {
  const std::vector<std::pair<std::string, KernelKind>> prefixes = {
      {"kprobe", {KernelFamily::kprobe, Moment::entry}},   {"kretprobe", {KernelFamily::kprobe, Moment::exit}},
      {"ksession", {KernelFamily::kprobe, Moment::both}},  {"fentry", {KernelFamily::trampoline, Moment::entry}},
      {"fexit", {KernelFamily::trampoline, Moment::exit}}, {"fsession", {KernelFamily::trampoline, Moment::both}},
      {"kfunc", {KernelFamily::any, Moment::entry}},       {"kretfunc", {KernelFamily::any, Moment::exit}},
      {"kcall", {KernelFamily::any, Moment::both}},        {"raw_tp", {KernelFamily::raw_tp, Moment::entry}},
      {"tp_btf", {KernelFamily::tp_btf, Moment::entry}}};
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
  for (const char* text : {"kprobe:x", "rt:x"})
    EXPECT_TRUE(std::holds_alternative<KernelPattern>(parse_pattern(text).value())) << text;
  for (const char* text : {"usdt:x:y", "u:x:y", "kprobes:x", "Kprobe:x", "libc:setjmp"})
    EXPECT_TRUE(std::holds_alternative<ProbePattern>(parse_pattern(text).value())) << text;
  EXPECT_EQ(error_of("libc:setjmp").column, 0U);
  EXPECT_THAT(error_of("libc:setjmp").message, HasSubstr("write kprobe:NAME"));
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
