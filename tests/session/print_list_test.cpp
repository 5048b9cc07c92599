// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/print_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PrintList, takes_values_texts_and_hex_in_any_spacing) {
  const auto list = parse_print_list(" arg0,str( arg1 ) , hex(arg12)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ((*list)[0].form, PrintItem::Form::value);
  EXPECT_EQ((*list)[1].form, PrintItem::Form::text);
  EXPECT_EQ(arg_name_of((*list)[1].value), ArgName(std::uint8_t{1}));
  EXPECT_EQ((*list)[2].form, PrintItem::Form::hex);
  EXPECT_EQ((*list)[2].label, "hex(arg12)");
}

TEST(PrintList, takes_names_and_the_return_value) {
  const auto list = parse_print_list("count, str( file_name2 ),hex(retval), str, arguments");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 5U);
  EXPECT_EQ(arg_name_of((*list)[0].value), ArgName(std::string("count")));
  EXPECT_EQ(arg_name_of((*list)[1].value), ArgName(std::string("file_name2")));
  EXPECT_EQ((*list)[1].form, PrintItem::Form::text);
  EXPECT_EQ((*list)[1].label, "str(file_name2)");
  EXPECT_EQ((*list)[2].label, "hex(retval)");
  EXPECT_EQ(arg_name_of((*list)[3].value), ArgName(std::string("str")));
  EXPECT_EQ(arg_name_of((*list)[4].value), ArgName(std::string("arguments")));
}

TEST(PrintList, takes_the_argument_that_is_the_length_of_a_text) {
  const auto list = parse_print_list("str(arg1, arg2), str( buf ,count ),str(arg0)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ(arg_name_of((*list)[0].value), ArgName(std::uint8_t{1}));
  EXPECT_EQ((*list)[0].length, ArgName(std::uint8_t{2}));
  EXPECT_EQ((*list)[0].label, "str(arg1, arg2)");
  EXPECT_EQ(arg_name_of((*list)[1].value), ArgName(std::string("buf")));
  EXPECT_EQ((*list)[1].length, ArgName(std::string("count")));
  EXPECT_EQ((*list)[1].label, "str(buf, count)");
  EXPECT_FALSE((*list)[2].length);
}

TEST(PrintList, takes_the_address_behind_a_text) {
  const auto list = parse_print_list("str(arg1,arg2-arg1), str(b->pos, b->last - b->pos) as text, buf(p, end - p)");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ((*list)[0].length, ArgName(std::string("arg2 - arg1")));
  EXPECT_EQ((*list)[0].label, "str(arg1, arg2-arg1)");
  EXPECT_EQ((*list)[1].size->steps.back().name, "b->pos");
  EXPECT_EQ((*list)[2].value.steps.back().name, "end - p");
  for (const char* other : {"str(arg1, arg2 - arg0)", "buf(p, end - q)"})
    EXPECT_THAT(parse_print_list(other).error().message, HasSubstr("reckoned from where it begins")) << other;
}

TEST(PrintList, takes_what_is_computed) {
  const auto list = parse_print_list(
      R"(arg0 & 0xff as low:{0=none}, hex(arg1 << 2), (arg0 + 1) * 2, a ? "," == comm : -1, end - p, p->x, -x)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 7U);
  std::vector<std::string> names;
  for (const PrintItem& item : *list) names.push_back(item.computed ? item.name() : "no: " + item.name());
  EXPECT_THAT(names, ElementsAre("low", "hex(arg1 << 2)", "(arg0 + 1) * 2", R"(a ? "," == comm : -1)", "end - p",
                                 "no: p->x", "-x"));
  EXPECT_TRUE(has_word(*list, HitField::comm));
  EXPECT_FALSE(has_word(*list, HitField::pid));
  EXPECT_TRUE(has_word(*parse_print_list("elapsed / 1000"), HitField::elapsed)) << "where a site has no such argument";
  for (const char* wrong : {"arg0 +", "5 + 3", "12", "arg0 arg1", "arg0 + (arg1", "str(arg0 + 1, 5)"})
    EXPECT_EQ(parse_print_list(wrong).error().kind, ErrorKind::syntax) << wrong;
}

TEST(PrintList, what_nobody_writes_ends_nothing) {
  for (const std::string& around : {std::string("("), std::string("hex("), std::string("str((")}) {
    std::string deep;
    for (int i = 0; i < 300'000; ++i) deep += around;
    const auto list = parse_print_list(deep + "arg0");
    ASSERT_FALSE(list) << around;
    EXPECT_LT(list.error().message.size(), 500U) << around;
  }
  EXPECT_TRUE(parse_print_list(std::string(60, '(') + "arg0 + 1" + std::string(60, ')')));
}

TEST(PrintList, comparisons_are_not_those_of_a_probes_list) {
  const auto prints = parse_prints(
      {R"(arg0 == 1, arg1 != 2, arg2 >= 3, comm == "a=b", arg0<=4, arg0 in {1, 2})", "app:max<int>=arg0 <= 5"});
  ASSERT_TRUE(prints) << prints.error().message;
  EXPECT_EQ(prints->rest.size(), 6U);
  ASSERT_EQ(prints->for_probes.size(), 1U);
  EXPECT_EQ(prints->for_probes[0].probe, "app:max<int>");
  EXPECT_EQ(prints->for_probes[0].list.front().name(), "arg0 <= 5");
}

TEST(PrintList, takes_attributes_of_the_threads_context_by_their_keys) {
  const auto list =
      parse_print_list(R"~(trace_attribute("http.route"), trace_attribute( "a, \"b\")" ), trace_attribute)~");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ((*list)[0].attribute, "http.route");
  EXPECT_EQ((*list)[0].label, R"(trace_attribute("http.route"))");
  EXPECT_EQ((*list)[1].attribute, "a, \"b\")");
  EXPECT_FALSE((*list)[2].attribute) << "an argument may be called so";
  EXPECT_EQ(arg_name_of((*list)[2].value), ArgName(std::string("trace_attribute")));
  EXPECT_EQ(position_of((*list)[0], {Arg{}}), std::nullopt);
  EXPECT_TRUE(has_attribute(*list));
  EXPECT_FALSE(has_attribute(*parse_print_list("trace_id, arg0")));
  for (const char* wrong :
       {"trace_attribute(key)", "trace_attribute()", R"(trace_attribute("a)", R"(trace_attribute("\q"))"})
    EXPECT_EQ(parse_print_list(wrong).error().kind, ErrorKind::syntax) << wrong;
}

TEST(PrintList, items_are_called_as_it_is_said) {
  const auto list = parse_print_list(
      "str(arg1, arg2) as file , arg0 as kind:{2=a warning, -1=none},as, as as took:duration[us]"
      ", assumed, ((struct as *)p)->as as inner");
  ASSERT_TRUE(list) << list.error().message;
  std::vector<std::string> names, labels;
  for (const PrintItem& item : *list) names.push_back(item.name()), labels.push_back(item.label);
  EXPECT_THAT(names, ElementsAre("file", "kind", "as", "took", "assumed", "inner"));
  EXPECT_THAT(labels, ElementsAre("str(arg1, arg2)", "arg0", "as", "as", "assumed", "((struct as *)p)->as"));
  EXPECT_EQ((*list)[1].called->enumerators, (std::vector<Enumerator>{{"a warning", 2}, {"none", ~std::uint64_t{0}}}));
  EXPECT_EQ((*list)[3].called->unit, "us");
  EXPECT_EQ((*list)[2].called, nullptr);
}

TEST(PrintList, a_name_that_is_none_is_refused) {
  EXPECT_EQ(parse_print_list("arg0 as ").error().kind, ErrorKind::syntax);
  EXPECT_THAT(parse_print_list("arg0 as a b").error().message, HasSubstr("'a b' is no name"));
  EXPECT_THAT(parse_print_list("arg0 as a:{x=b}").error().message, HasSubstr("'x=b' is not NUMBER=NAME"));
  EXPECT_THAT(parse_print_list("arg0 as a:string").error().message, HasSubstr("asked for by str(POINTER)"));
  for (const char* text : {"str(arg0) as a:bits", "hex(arg0) as a[us]", "pid as a:{0=none}"})
    EXPECT_THAT(parse_print_list(text).error().message, HasSubstr("no meaning, which is of numbers")) << text;
}

TEST(PrintList, signs_in_the_names_of_numbers_are_not_those_of_a_probes_list) {
  const auto prints = parse_prints({"arg0 as a:{0=x, 1=y}", "app:re*=arg1 as b:{2=z}"});
  ASSERT_TRUE(prints) << prints.error().message;
  EXPECT_EQ(prints->rest.front().name(), "a");
  ASSERT_EQ(prints->for_probes.size(), 1U);
  EXPECT_EQ(prints->for_probes[0].probe, "app:re*");
  EXPECT_EQ(prints->for_probes[0].list.front().name(), "b");
}

TEST(PrintList, takes_bytes_and_addresses_with_how_many_they_are) {
  using Kind = PathStep::Kind;
  const auto list = parse_print_list("buf(arg1, 0x10), buf( req->data , req->size), ntop(arg0,4), ntop(addr), buf");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 5U);
  EXPECT_EQ((*list)[0].label, "buf(arg1, 0x10)");
  EXPECT_EQ((*list)[0].value.steps.back().kind, Kind::bytes);
  EXPECT_EQ((*list)[0].value.steps.back().index, 16U);
  EXPECT_EQ((*list)[1].label, "buf(req->data, req->size)");
  EXPECT_EQ((*list)[1].value.steps.back().name, "req->size");
  EXPECT_EQ((*list)[1].size->steps.size(), 1U);
  EXPECT_EQ((*list)[2].form, PrintItem::Form::address);
  EXPECT_EQ((*list)[2].value.steps.back().kind, Kind::bytes);
  EXPECT_EQ((*list)[3].value.steps.back().kind, Kind::address);
  EXPECT_EQ((*list)[4].form, PrintItem::Form::value) << "an argument may be called so";
  for (const char* wrong : {"buf(arg1, 0)", "ntop(arg1, 6)", "ntop(arg1, arg2)"})
    EXPECT_EQ(parse_print_list(wrong).error().kind, ErrorKind::invalid_argument) << wrong;
  EXPECT_EQ(parse_print_list("buf(arg1, )").error().kind, ErrorKind::syntax);
}

TEST(PrintList, takes_what_arguments_lead_to) {
  const auto list =
      parse_print_list("req->peer.port , str((*p).name), hex(((struct foo *)arg1)->x), sizeof(struct foo)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 4U);
  EXPECT_EQ(arg_name_of((*list)[0].value), ArgName(std::string("req->peer.port")));
  EXPECT_EQ((*list)[1].form, PrintItem::Form::text);
  EXPECT_EQ((*list)[1].label, "str((*p).name)");
  EXPECT_EQ((*list)[2].label, "hex(((struct foo *)arg1)->x)");
  EXPECT_EQ((*list)[3].value.steps.size(), 1U);
}

TEST(PrintList, a_name_means_an_argument_and_retval_the_result) {
  std::vector<Arg> args(4);
  args[0].declaration = std::make_shared<const Declaration>(Declaration{"fd", {}, {}});
  args[1].declaration = std::make_shared<const Declaration>(Declaration{"count", {}, {}});
  args[2].declaration = std::make_shared<const Declaration>(Declaration{"retval", {}, {}});
  args[3].result = true;
  const auto position = [&](const char* text) { return position_of(parse_print_list(text)->front(), args); };
  EXPECT_EQ(position("count"), 1U);
  EXPECT_EQ(position("arg2"), 2U);
  EXPECT_EQ(position("retval"), 3U);
  EXPECT_FALSE(position("arg3")) << "the result is no argument";
  EXPECT_FALSE(position("size"));
  args.pop_back();
  EXPECT_EQ(position("retval"), 2U) << "an argument of that name";
}

struct BadList {
  const char* text;
  std::uint32_t column;
};

TEST(PrintList, says_where_it_does_not_understand) {
  for (const BadList& bad : {BadList{"", 0},
                             {"arg0,", 4},
                             {"arg0 arg1", 5},
                             {"str(arg0", 3},
                             {"ustr(arg0)", 4},
                             {"str(arg0, arg1, arg2)", 3},
                             {"hex(arg0, arg1)", 3},
                             {"arg0, foo(arg1)", 9},
                             {"arg256", 0},
                             {"arg0 -", 6},
                             {"1st", 0}}) {
    const auto list = parse_print_list(bad.text);
    ASSERT_FALSE(list) << bad.text;
    EXPECT_EQ(list.error().kind, ErrorKind::syntax);
    EXPECT_EQ(list.error().column, bad.column) << bad.text << ": " << list.error().message;
  }
}

TEST(Prints, are_for_the_first_name_that_means_a_probe_and_else_for_all) {
  const auto prints =
      parse_prints({"arg0", "app:re*=str(arg1)", "kfunc:vfs_*=count", "app:request=arg2,arg3", "kfunc:nf:*=arg0"});
  ASSERT_TRUE(prints) << prints.error().message;
  const PrintChoice choice(*prints, {});
  const TargetFile file{"/x", "/x", false};
  const auto of_file = [&](std::string_view name) {
    return choice.of({.provider = "app", .name = name, .module = {}, .file = &file});
  };
  const auto of_function = [&](std::string_view prefix, std::string_view module, std::string_view name) {
    return choice.of({.provider = prefix, .name = name, .module = module});
  };
  EXPECT_EQ(choice.count(), 5U);
  EXPECT_EQ(of_file("done"), 0U);
  EXPECT_EQ(of_file("request"), 1U);
  EXPECT_EQ(of_function("kfunc", "", "vfs_read"), 2U);
  EXPECT_EQ(of_function("kfunc", "nf", "hook"), 4U);
  EXPECT_EQ(of_function("kfunc", "", "hook"), 0U);
  EXPECT_EQ(of_function("kretfunc", "", "vfs_read"), 0U);
  EXPECT_EQ(choice.list(0).front().label, "arg0");
  EXPECT_EQ(choice.list(1).front().label, "str(arg1)");
}

TEST(Prints, of_a_name_with_a_target_are_for_its_file_alone) {
  const auto prints = parse_prints({"/bin/sh:app:*=arg1"});
  ASSERT_TRUE(prints) << prints.error().message;
  const PrintChoice choice(*prints, {});
  const TargetFile shell{"/bin/sh", "/proc/self/root/bin/sh", false}, other{"/bin/cat", "/bin/cat", false};
  EXPECT_EQ(choice.of({.provider = "app", .name = "x", .module = {}, .file = &shell}), 1U) << "one inode, two names";
  EXPECT_EQ(choice.of({.provider = "app", .name = "x", .module = {}, .file = &other}), 0U);
}

TEST(Prints, name_options_as_their_user_writes_them) {
  EXPECT_EQ(parse_prints({"arg0", "arg1"}, "--").error().message,
            "--print 'arg1': a second list for all probes; --print 'PROBE=LIST' is for some");
  EXPECT_EQ(parse_prints({"arg0", "arg1"}).error().message,
            "print 'arg1': a second list for all probes; print 'PROBE=LIST' is for some");
}

TEST(Prints, refuse_two_lists_for_all_and_what_is_no_name) {
  EXPECT_EQ(parse_prints({"arg0", "arg1"}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(parse_prints({"app=arg0"}).error().kind, ErrorKind::syntax);
  EXPECT_EQ(parse_prints({"a:b="}).error().kind, ErrorKind::syntax);
  EXPECT_TRUE(parse_prints({})->empty());
}

}  // namespace
}  // namespace usdt
