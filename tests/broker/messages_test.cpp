// SPDX-License-Identifier: BSD-2-Clause
// What is written is read as it was, and what cannot be is not read.
#include "broker/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "broker/expressions.hpp"
#include "broker/limits.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt::broker {
namespace {

template <class Message>
std::vector<std::uint8_t> bytes_of(const Message& message) {
  ByteWriter out;
  write(out, message);
  return {out.bytes().begin(), out.bytes().end()};
}

template <class Message>
Message read_back(const Message& message) {
  const auto bytes = bytes_of(message);
  ByteReader in(bytes);
  Message back;
  EXPECT_TRUE(read(in, back));
  EXPECT_TRUE(in.at_end());
  return back;
}

/// Two probes, one of them a function with RET instructions, three kinds of specs.
AttachPlan a_plan() {
  AttachPlan plan = usdt::testing::synthetic_plan("db", "query", Machine::x86_64, "8@%rdi -4@-8(%rbp) 8@%rdx", {0});
  auto& first = std::get<FilePlace>(plan.sites[0].point);
  first.offset = FileOffset(0x1234);
  first.semaphore = 0x8000;
  const auto function = plan.probes.add(
      {.file = Index<PlannedFile>(0), .provider = "ucall", .name = "ns::handle(int)", .function = Moment::both});
  const auto group =
      plan.groups.add({.moment = Moment::both, .returns = ReturnBy::instruction, .of = Index<PlannedFile>(0)});
  const AttachPlan more = usdt::testing::synthetic_plan("x", "y", Machine::x86_64, "8@%rdi 8@%rsi", {});
  const auto site = plan.sites.add({.probe = function,
                                    .point = FilePlace{.pc = VirtAddr(0x2000),
                                                       .offset = FileOffset(0x2000),
                                                       .rets = {FileOffset(0x2010), FileOffset(0x2040)},
                                                       .at_entry = true},
                                    .spec = plan.specs.next(),
                                    .args = plan.args.next()});
  plan.groups[group].sites.push_back(site);
  plan.specs.add(more.specs[0]);
  plan.args.add(more.args[0]);
  plan.max_entries = plan.max_args;
  plan.scope = *Processes::of({::getpid()});
  return plan;
}

LoadRequest a_request() {
  return {.programs = 0x1234567890abcdef,
          .constants = std::vector<std::uint8_t>(504, 7),
          .sizes = {{"usdt_events", MapProperty::entries, 4096}, {"usdt_open_calls", MapProperty::key_size, 16}},
          .shares = 3,
          .shared_maps = {"usdt_events", ".bss"},
          .program = "usdt_trace_call_memory",
          .carrier = Carrier::per_link,
          .arguments = true,
          .max_programs = 64,
          .plan = a_plan()};
}

bool same(const usdt_arg_spec& a, const usdt_arg_spec& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST(Messages, APlanIsAttachedThereAsItWouldBeHere) {
  const LoadRequest request = a_request();
  const LoadRequest back = read_back(request);
  EXPECT_EQ(request.programs, back.programs);
  EXPECT_EQ(request.constants, back.constants);
  EXPECT_EQ(request.shares, back.shares);
  EXPECT_EQ(request.shared_maps, back.shared_maps);
  EXPECT_EQ(request.program, back.program);
  EXPECT_EQ(request.carrier, back.carrier);
  ASSERT_EQ(2U, back.sizes.size());
  EXPECT_EQ("usdt_open_calls", back.sizes[1].map);
  EXPECT_EQ(MapProperty::key_size, back.sizes[1].what);
  EXPECT_EQ(pids_of(request.plan.scope), pids_of(back.plan.scope));
  for (const Carrier carrier : {Carrier::automatic, Carrier::cookie, Carrier::table, Carrier::per_link}) {
    const auto here = plan_carriers(request.plan, {.carrier = carrier});
    const auto there = plan_carriers(back.plan, {.carrier = carrier});
    ASSERT_EQ(here.has_value(), there.has_value());
    if (!here) continue;
    EXPECT_EQ(here->describe(), there->describe());
    ASSERT_EQ(here->links.size(), there->links.size());
    for (const auto number : here->links.indices()) {
      EXPECT_EQ(here->links[number].offsets, there->links[number].offsets);
      EXPECT_EQ(here->links[number].ref_ctr_offsets, there->links[number].ref_ctr_offsets);
      EXPECT_EQ(here->links[number].cookies, there->links[number].cookies);
    }
    ASSERT_EQ(here->programs.size(), there->programs.size());
    for (const auto number : here->programs.indices()) {
      EXPECT_EQ(here->programs[number].kind, there->programs[number].kind);
      EXPECT_TRUE(
          std::ranges::equal(here->programs[number].link_spec.args, there->programs[number].link_spec.args, same));
    }
  }
}

TEST(Messages, MapsAreSharedWithAnObjectOnly) {
  LoadRequest request = a_request();
  request.shares = 0;
  ByteWriter out;
  write(out, request);
  ByteReader in(out.bytes());
  EXPECT_FALSE(read(in, request)) << "nobody would count their memory";
}

TEST(Messages, OthersComeAsTheyWere) {
  const auto hello = read_back(Hello{1, "1.0.0"});
  EXPECT_EQ(1U, hello.protocol);
  EXPECT_EQ("1.0.0", hello.version);
  const auto welcome = read_back(Welcome{1, "1.0.0", {{Feature::nop10, Answer::no, "EPROTO"}}});
  ASSERT_EQ(1U, welcome.features.size());
  EXPECT_EQ(Feature::nop10, welcome.features[0].feature);
  EXPECT_EQ(Answer::no, welcome.features[0].answer);
  EXPECT_EQ("EPROTO", welcome.features[0].detail);
  const auto loaded = read_back(LoadReply{7, "per-link", 2, {"usdt_events", "usdt.bss"}});
  EXPECT_EQ(7U, loaded.object);
  EXPECT_THAT(loaded.maps, ::testing::ElementsAre("usdt_events", "usdt.bss"));
  const auto attach = read_back(AttachRequest{7, 3, 4711, {1, 5}});
  EXPECT_EQ(4711, attach.pid);
  EXPECT_THAT(attach.left_out, ::testing::ElementsAre(1, 5));
  const auto attached = read_back(AttachReply{3, {{2, 22}}});
  EXPECT_THAT(attached.refused, ::testing::ElementsAre(std::pair(2U, 22)));
  const auto error = read_back(Error{.kind = ErrorKind::limit, .message = "too much", .os_error = 28});
  EXPECT_EQ(ErrorKind::limit, error.kind);
  EXPECT_EQ("too much", error.message);
  EXPECT_EQ(28, error.os_error);
}

TEST(Messages, OfALongLogTheEndIsKept) {
  Error error{.kind = ErrorKind::verifier, .message = "refused", .log = std::string(kMostText, 'a') + "the end"};
  EXPECT_TRUE(read_back(error).log.ends_with("the end"));
}

TEST(Messages, WhatIsCutOffIsNotRead) {
  const auto bytes = bytes_of(a_request());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(ByteSpan(bytes).first(size));
    LoadRequest request;
    EXPECT_FALSE(read(in, request)) << size << " of " << bytes.size() << " bytes";
  }
}

TEST(Messages, WhatIsBehindTheEndIsNotRead) {
  auto bytes = bytes_of(a_request());
  bytes.push_back(0);
  ByteReader in(bytes);
  LoadRequest request;
  EXPECT_FALSE(read(in, request));
}

/// What is left of a plan that has been changed can be planned: no index leads out of it.
TEST(Messages, WhateverIsReadCanBePlanned) {
  const auto good = bytes_of(a_request());
  std::mt19937_64 random(4711);
  int read_some = 0;
  for (int n = 0; n < 20'000; ++n) {
    auto bytes = good;
    for (std::uint64_t left = 1 + random() % 4; left > 0; --left)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % 2 == 0 ? random() : random() % 4);
    ByteReader in(bytes);
    LoadRequest request;
    if (!read(in, request)) continue;
    ++read_some;
    static_cast<void>(plan_carriers(
        request.plan,
        {.carrier = request.carrier, .arguments = request.arguments, .max_programs = request.max_programs}));
  }
  EXPECT_GT(read_some, 1000);
}

/// The plan of two places that begin and end spans.
LoadRequest a_request_for_spans() {
  LoadRequest request = a_request();
  AttachPlan& plan = request.plan;
  request.program.clear();
  const auto begin = plan.programs.add("usdt_trace_span_begin");
  const auto end = plan.programs.add("usdt_trace_span_end");
  using Node = TypedExpression::Node;
  const Node yes{.op = Operator::integer, .bits = 1};
  const Node tid{.op = Operator::field, .bits = static_cast<std::uint64_t>(HitField::tid)};
  plan.filters.add(
      ExpressionMaker::make({.op = Operator::row,
                             .bits = 1,
                             .of = {{.op = Operator::part, .of = {yes}}, {.op = Operator::part, .of = {tid}}}},
                            {}));
  PlannedSite last = plan.sites[Index<PlannedSite>(0)];
  plan.sites = {};
  for (AttachGroup& group : plan.groups) group.sites.clear();
  PlannedSite first = last;
  first.program = begin;
  last.program = end;
  first.filter.reset();
  first.pair = last.pair = Index<TypedExpression>(0);
  plan.groups[0].sites = {plan.sites.add(first), plan.sites.add(last)};
  plan.spans = PlannedSpans{.begins = 1,
                            .ends = 1,
                            .specs = static_cast<std::uint32_t>(plan.specs.size()),
                            .args = 4,
                            .first_arg = 2,
                            .first_text = 1,
                            .key_bytes = 8};
  return request;
}

TEST(Messages, APlanOfSpansComesAsItWas) {
  const LoadRequest sent = a_request_for_spans();
  const LoadRequest back = read_back(sent);
  ASSERT_TRUE(back.plan.spans);
  EXPECT_EQ(back.plan.spans->begins, 1U);
  EXPECT_EQ(back.plan.spans->ends, 1U);
  EXPECT_EQ(back.plan.spans->specs, sent.plan.specs.size());
  EXPECT_EQ(back.plan.spans->args, 4U);
  EXPECT_EQ(back.plan.spans->first_arg, 2U);
  EXPECT_EQ(back.plan.spans->first_text, 1U);
  EXPECT_EQ(back.plan.spans->key_bytes, 8U);
  EXPECT_EQ(back.plan.places(), 2U);
  for (std::uint32_t n = 0; n < 2; ++n) {
    const Index<PlannedSite> site(n);
    EXPECT_EQ(back.plan.sites[site].pair, sent.plan.sites[site].pair);
    EXPECT_EQ(back.plan.programs[*back.plan.sites[site].program], sent.plan.programs[*sent.plan.sites[site].program]);
  }
}

TEST(Messages, SpansOfMorePlacesThanThereAreAreNotRead) {
  auto bytes = bytes_of(a_request_for_spans());
  const std::vector<std::uint8_t> spans{1, 1, 4, 2, 1, 8};
  const auto at = std::search(bytes.begin(), bytes.end(), spans.begin(), spans.end());
  ASSERT_NE(at, bytes.end());
  for (const int begins : {0, 2, 127}) {
    *at = static_cast<std::uint8_t>(begins);
    ByteReader in(bytes);
    LoadRequest back;
    EXPECT_FALSE(read(in, back)) << begins;
  }
}

TEST(Messages, FunctionsWithTheNamesThatTemplatesGiveThemAreRead) {
  LoadRequest sent = a_request();
  sent.plan.probes[1].name = "std::_Rb_tree<" + std::string(20000, 'k') + ">::_M_erase";
  ASSERT_TRUE(check_size(sent.plan));
  EXPECT_EQ(read_back(sent).plan.probes[1].name, sent.plan.probes[1].name);
}

TEST(Messages, PlansThatAreTooLargeAreToldFromThoseThatCannotBe) {
  const auto what_is_too_much = [](void (*make)(AttachPlan & plan)) {
    AttachPlan plan = a_plan();
    make(plan);
    const auto checked = check_size(plan);
    return checked ? std::string("nothing") : checked.error().message;
  };
  const auto is_said_of = [&](void (*make)(AttachPlan & plan), const std::string& text) {
    EXPECT_THAT(what_is_too_much(make), ::testing::StartsWith(text));
    LoadRequest request = a_request();
    make(request.plan);
    const auto bytes = bytes_of(request);
    ByteReader in(bytes);
    LoadRequest back;
    EXPECT_FALSE(read(in, back)) << "it is not refused there: " << text;
  };
  EXPECT_EQ("nothing", what_is_too_much([](AttachPlan&) {}));
  is_said_of([](AttachPlan& plan) { plan.probes[0].name.assign(kMostProbeName + 1, 'x'); }, "65537 letters");
  is_said_of(
      [](AttachPlan& plan) {
        while (plan.files.size() <= kMostFiles) plan.files.add(PlannedFile(plan.files[Index<PlannedFile>(0)]));
      },
      "257 files");
  is_said_of([](AttachPlan& plan) { std::get<FilePlace>(plan.sites[1].point).rets.resize(kMostRets + 1); },
             "4097 RET instructions of ns::handle(int)");
  is_said_of(
      [](AttachPlan& plan) {
        while (plan.sites.size() <= kMostSites)
          plan.groups[0].sites.push_back(plan.sites.add(PlannedSite(plan.sites[Index<PlannedSite>(0)])));
      },
      "16385 sites");
}

struct Hostile {
  const char* name;
  void (*make)(AttachPlan& plan);
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostilePlans : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostilePlans, AreNotRead) {
  LoadRequest request = a_request();
  GetParam().make(request.plan);
  const auto bytes = bytes_of(request);
  ByteReader in(bytes);
  LoadRequest back;
  EXPECT_FALSE(read(in, back));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostilePlans,
    ::testing::Values(
        Hostile{"a probe of no file", [](AttachPlan& plan) { plan.probes[0].file = Index<PlannedFile>(9); }},
        Hostile{"a site of no probe", [](AttachPlan& plan) { plan.sites[0].probe = Index<PlannedProbe>(9); }},
        Hostile{"a site of no spec", [](AttachPlan& plan) { plan.sites[0].spec = Index<EncodedSpec>(9); }},
        Hostile{"a group of no file", [](AttachPlan& plan) { plan.groups[0].of = Index<PlannedFile>(9); }},
        Hostile{"links that are no uprobe_multi",
                [](AttachPlan& plan) { plan.groups[0].backend = Backend::perf_uprobe; }},
        Hostile{"the kernel's", [](AttachPlan& plan) { plan.groups[0].backend = Backend::kprobe_multi; }},
        Hostile{"RET instructions at an entry",
                [](AttachPlan& plan) { std::get<FilePlace>(plan.sites[0].point).rets = {FileOffset(1)}; }},
        Hostile{"fewer entries than a spec has", [](AttachPlan& plan) { plan.max_entries = 1; }},
        Hostile{"fewer arguments than a spec has", [](AttachPlan& plan) { plan.max_args = 0; }},
        Hostile{"a kind of argument that is none", [](AttachPlan& plan) { plan.specs[0].args[0].kind = 9; }},
        Hostile{"an argument of 9 bytes", [](AttachPlan& plan) { plan.specs[0].args[0].size = 9; }},
        Hostile{"register 64", [](AttachPlan& plan) { plan.specs[0].args[0].reg = 64; }},
        Hostile{"steps that there are not", [](AttachPlan& plan) { plan.specs[0].args[0].kind |= USDT_ARG_HAS_STEPS; }},
        Hostile{"a name without end", [](AttachPlan& plan) { plan.probes[0].name.assign(kMostProbeName + 1, 'x'); }},
        Hostile{"no site", [](AttachPlan& plan) {
                  plan.sites = {};
                  for (AttachGroup& group : plan.groups) group.sites.clear();
                }}));

}  // namespace
}  // namespace usdt::broker
