// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/symbol_lists.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace usdt::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names_of(const std::vector<Named>& list) {
  std::vector<std::string> out;
  for (const Named& entry : list) out.emplace_back(entry.name);
  return out;
}

Symbols kallsyms(std::string_view text) {
  ModuleNames modules;
  return parse_kallsyms(text, modules);
}

TEST(Kallsyms, a_line_gives_address_name_and_module) {
  ModuleNames modules;
  const Symbols symbols = parse_kallsyms("ffffffff81000010 T vfs_read\nffffffffc0001000 t xfs_trans\t[xfs]\n", modules);
  ASSERT_EQ(symbols.functions.size(), 2U);
  EXPECT_EQ(symbols.functions[0].name, "vfs_read");
  EXPECT_EQ(symbols.functions[0].address, 0xffffffff81000010U);
  EXPECT_EQ(modules.name(symbols.functions[0].module), "");
  EXPECT_EQ(symbols.functions[1].name, "xfs_trans");
  EXPECT_EQ(modules.name(symbols.functions[1].module), "xfs");
  EXPECT_FALSE(symbols.hidden);
}

TEST(Kallsyms, code_is_kept_and_data_passed_over) {
  EXPECT_THAT(names_of(kallsyms("10 t a\n20 T b\n30 w c\n40 W d\n50 d e\n60 R f\n70 b g\n80 V h\n90 A i\n").functions),
              ElementsAre("a", "b", "c", "d"));
}

TEST(Kallsyms, what_is_no_function_of_its_own_is_passed_over) {
  EXPECT_THAT(
      names_of(kallsyms("10 t __pfx_a\n10 t __cfi_a\n20 t a.cold\n30 t a.part.0.cold\n40 t $x\n50 T _stext\n"
                        "60 t __sched_text_start\n70 t bpf_prog_1\t[bpf]\n80 t kprobe_page\t[__builtin__kprobes]\n")
                   .functions),
      IsEmpty());
}

TEST(Kallsyms, what_the_compiler_made_of_a_function_is_one) {
  EXPECT_THAT(
      names_of(kallsyms("10 t a.part.0\n20 t a.constprop.0\n30 t a.isra.0.constprop.1\n40 t a.colder\n").functions),
      ElementsAre("a.part.0", "a.constprop.0", "a.isra.0.constprop.1", "a.colder"));
}

TEST(Kallsyms, code_by_address_has_halves_and_generated_code_too) {
  ModuleNames modules;
  const auto code = parse_code(
      "70 t bpf_prog_1\t[bpf]\n10 t __pfx_a\n20 t a\n50 t b\n60 t a.cold\n0 t hidden\n50 T _stext\n55 d data\n",
      modules);
  EXPECT_THAT(names_of(code), ElementsAre("a", "b", "a.cold", "bpf_prog_1"));
  EXPECT_EQ(modules.name(code.back().module), "bpf");
}

TEST(Kallsyms, addresses_that_are_all_zero_are_hidden) {
  EXPECT_TRUE(kallsyms("0000000000000000 T a\n0000000000000000 T b\n").hidden);
  EXPECT_FALSE(kallsyms("0000000000000000 T a\n0000000000000001 T b\n").hidden);
}

TEST(Kallsyms, sections_without_kprobes_are_known_by_their_markers) {
  const Symbols symbols = kallsyms(
      "100 T __entry_text_start\n180 T a\n200 T __entry_text_end\n400 T __noinstr_text_start\n500 T "
      "__noinstr_text_end\n600 T __kprobes_text_start\n600 T __kprobes_text_end\n");
  ASSERT_EQ(symbols.unprobeable.size(), 2U) << "an empty section is none";
  EXPECT_EQ(symbols.unprobeable[0].begin, 0x100U);
  EXPECT_EQ(symbols.unprobeable[1].end, 0x500U);
}

TEST(Kallsyms, hostile_lines_cost_only_themselves) {
  EXPECT_THAT(names_of(kallsyms("").functions), IsEmpty());
  EXPECT_THAT(names_of(kallsyms("\n\n").functions), IsEmpty());
  EXPECT_THAT(names_of(kallsyms("10 t a\nffffffff8 T b").functions), ElementsAre("a", "b")) << "no newline at the end";
  const std::string huge(100'000, 'x');
  EXPECT_THAT(names_of(kallsyms("10 T " + huge + "\n20 T a\n" + huge + "\n").functions), ElementsAre("a"));
  for (const char* line : {"10", "10 ", "10 T", "10 T ", " T a", "x T a", "10  T a", "10 T a\tb", "10 T a\t[",
                           "10 T a\t[]", "12345678123456781 T a", "10 T \x01\x02", "10 T a\x7f", "10Ta"}) {
    EXPECT_THAT(names_of(kallsyms(std::string(line) + "\n20 T good\n").functions), ElementsAre("good")) << line;
  }
  std::string garbage;
  for (unsigned i = 0; i < 100'000; ++i) garbage += static_cast<char>(i * 2654435761U >> 24);
  EXPECT_LT(kallsyms(garbage).functions.size(), 10U);
  using namespace std::string_view_literals;
  EXPECT_THAT(names_of(kallsyms("10 T a\0b\n20 T c\n"sv).functions), ElementsAre("c")) << "NUL in a name";
}

TEST(Kallsyms, a_hundred_thousand_modules_do_not_make_it_crawl) {
  std::string text;
  for (unsigned i = 0; i < 100'000; ++i) text += "10 T a\t[m" + std::to_string(i) + "]\n";
  EXPECT_EQ(kallsyms(text).functions.size(), 100'000U);
}

/// "NAME@ADDRESS" of each, in hexadecimal.
std::vector<std::string> places_of(const std::vector<Named>& list) {
  std::vector<std::string> out;
  for (const Named& entry : list) out.push_back(fmt::format("{}@{:x}", entry.name, entry.address));
  return out;
}

TEST(AskedSymbols, are_functions_as_in_the_list_of_all) {
  ModuleNames modules;
  const AskedSymbols asked = parse_asked(
      "10 T read\t[]\tread+0x0/0x20\n80 t trans\t[xfs]\ttrans+0x0/0x10 [xfs]\n90 t "
      "trans.cold\t[xfs]\ttrans.cold+0x0/0x9 [xfs]\n"
      "a0 t __pfx_x\t[]\t__pfx_x+0x0/0x10\nb0 t bpf_prog_1\t[bpf]\tbpf_prog_1+0x0/0x10 [bpf]\nzz\t\n\t\n10 T read\n",
      {}, modules);
  EXPECT_THAT(places_of(asked.functions), ElementsAre("read@10", "trans@80"));
  EXPECT_EQ(modules.name(asked.functions[1].module), "xfs");
  EXPECT_THAT(asked.listed, IsEmpty());
}

TEST(AskedSymbols, are_traceable_where_ftrace_has_a_place_in_their_first_instructions) {
  ModuleNames modules;
  const std::vector<std::uint64_t> places = {0x10, 0x24, 0x38, 0x49, 0x52};
  const AskedSymbols asked = parse_asked(
      "10 T first\t[]\tfirst+0x0/0x10\n20 T behind_endbr64\t[]\tbehind_endbr64+0x0/0x10\n"
      "30 T behind_bti\t[]\tbehind_bti+0x0/0x10\n40 T too_far\t[]\ttoo_far+0x0/0x10\n"
      "50 T the_next_ones\t[]\tthe_next_ones+0x0/0x2\n",
      places, modules);
  EXPECT_THAT(places_of(asked.listed), ElementsAre("behind_bti@38", "behind_endbr64@24", "first@10"));
}

TEST(AskedSymbols, are_listed_by_the_name_that_the_kernel_has_for_their_address) {
  ModuleNames modules;
  const std::vector<std::uint64_t> places = {0x14};
  const AskedSymbols asked =
      parse_asked("10 T __ia32_sys_fork\t[]\t__do_sys_fork+0x0/0x20\n10 T __x64_sys_fork\t[]\t__do_sys_fork+0x0/0x20\n",
                  places, modules);
  EXPECT_THAT(places_of(asked.functions), ElementsAre("__do_sys_fork@10", "__ia32_sys_fork@10", "__x64_sys_fork@10"));
  EXPECT_THAT(places_of(asked.listed), ElementsAre("__do_sys_fork@14"));
}

TEST(FilterFunctions, lines_have_a_name_and_perhaps_a_module) {
  ModuleNames modules;
  const auto listed = parse_filter_functions("vfs_read\nxfs_trans [xfs]\nlast", false, modules);
  EXPECT_THAT(names_of(listed), ElementsAre("vfs_read", "xfs_trans", "last"));
  EXPECT_EQ(modules.name(listed[1].module), "xfs");
  EXPECT_EQ(listed[0].address, 0U);
}

TEST(FilterFunctions, lines_with_addresses_have_them_first) {
  ModuleNames modules;
  const auto listed =
      parse_filter_functions("ffffffff81000014 vfs_read\nnonsense\n20 xfs_trans [xfs]\n", true, modules);
  EXPECT_THAT(names_of(listed), ElementsAre("vfs_read", "xfs_trans"));
  EXPECT_EQ(listed[0].address, 0xffffffff81000014U);
}

TEST(FilterFunctions, places_that_are_no_function_any_more_are_passed_over) {
  ModuleNames modules;
  EXPECT_THAT(
      names_of(parse_filter_functions("a\n__ftrace_invalid_address___64\nb [__builtin__ftrace]\nc\n", false, modules)),
      ElementsAre("a", "c"));
}

TEST(Blacklist, ranges_are_sorted_and_joined) {
  const Blacklist list = parse_blacklist("0x300-0x400\tb\n0x100-0x200\ta\n0x180-0x280\tc\nnonsense\n0x5-\tx\n");
  ASSERT_EQ(list.ranges.size(), 2U);
  EXPECT_EQ(list.ranges[0].begin, 0x100U);
  EXPECT_EQ(list.ranges[0].end, 0x280U);
  EXPECT_THAT(list.names, ElementsAre("a", "b", "c"));
}

TEST(Blacklist, hidden_addresses_leave_the_names) {
  const Blacklist list = parse_blacklist("0x0000000000000000-0x0000000000000000\tdo_int3\n");
  EXPECT_THAT(list.ranges, IsEmpty());
  EXPECT_THAT(list.names, ElementsAre("do_int3"));
}

TEST(Events, those_that_are_raw_tracepoints_are_listed_once) {
  EXPECT_THAT(parse_events("sched:sched_switch\nsched:sched_switch\nsyscalls:sys_enter_read\nftrace:function\n"
                           "kprobes:mine\nraw_syscalls:sys_enter\nnonsense\n:\nx:\n"),
              ElementsAre("sched_switch", "sys_enter"));
}

TEST(SortedNames, order_is_by_module_then_name_then_address) {
  ModuleNames modules;
  const std::uint32_t xfs = modules.number("xfs");
  const std::uint32_t ext4 = modules.number("ext4");
  std::vector<Named> list = {
      {"a", 1, xfs}, {"zz", 9, 0}, {"abcdefghijklmnopqr", 1, 0}, {"abcdefghijklmnopqq", 1, 0}, {"a", 1, ext4},
      {"a", 7, 0},   {"a", 3, 0}};
  sort(list, modules);
  EXPECT_THAT(names_of(list), ElementsAre("a", "a", "abcdefghijklmnopqq", "abcdefghijklmnopqr", "zz", "a", "a"));
  EXPECT_EQ(list[0].address, 3U);
  EXPECT_EQ(list[5].module, ext4);
}

}  // namespace
}  // namespace usdt::kernel
