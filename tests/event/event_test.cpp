// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using testing::EventBuilder;
using ::testing::HasSubstr;
using testing::layout_of;
using testing::synthetic_plan;

AttachPlan x86_plan(std::string_view args, std::vector<std::uint8_t> strings = {}) {
  return synthetic_plan("p", "n", Machine::x86_64, args, std::move(strings));
}

TEST(Event, gives_values_the_type_their_site_states) {
  const AttachPlan plan = x86_plan("-4@%edi 8@%rsi 8f@%rdx 4f@%ecx");
  const auto record = *EventBuilder(plan).arg(0, -7).arg(1, UINT64_MAX).arg(2, 0.25).arg(3, 1.5F).build();
  const auto event = Event::from(record, plan, layout_of(plan));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(std::get<std::int64_t>(event->value(0)), -7);
  EXPECT_EQ(std::get<std::uint64_t>(event->value(1)), UINT64_MAX);
  EXPECT_EQ(std::get<double>(event->value(2)), 0.25);
  EXPECT_EQ(std::get<double>(event->value(3)), 1.5);
}

TEST(Event, hands_out_an_argument_only_as_the_type_it_has) {
  const AttachPlan plan = x86_plan("-4@%edi 8f@%rdx");
  const auto record = *EventBuilder(plan).arg(0, INT32_MIN).arg(1, 2.5).build();
  const auto event = Event::from(record, plan, layout_of(plan));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->arg<std::int32_t>(0).value(), INT32_MIN);
  EXPECT_EQ(event->arg<double>(1).value(), 2.5);
  for (const auto& wrong : {event->arg<std::int64_t>(0).error(), event->arg<std::uint32_t>(0).error(),
                            event->arg<float>(1).error(), event->arg<std::int64_t>(1).error()})
    EXPECT_EQ(wrong.kind, ErrorKind::type_mismatch) << wrong.message;
  EXPECT_EQ(event->arg<std::int64_t>(0).error().message, "arg0 is i32, not i64");
  EXPECT_EQ(event->arg<int>(9).error().kind, ErrorKind::not_found);
}

TEST(Event, ends_a_text_with_a_length_there_and_an_array_of_characters_at_its_nul) {
  AttachPlan plan = x86_plan("8@%rdi 8@%rsi", {0});
  plan.specs[0].args[0].capture = USDT_CAPTURE_BY(0, 1);
  const std::string_view with_nul("ab\0d", 4);
  const auto text_of = [&](std::string_view bytes) {
    const auto record = *EventBuilder(plan, 4).arg(0, 1).arg(1, bytes.size()).text(0, bytes).build();
    const auto text = Event::from(record, plan, layout_of(plan, 4))->text(0);
    return fmt::format("{}{}", text->bytes, text->truncated ? "..." : "");
  };
  EXPECT_EQ(text_of("abcd"), "abcd");
  EXPECT_EQ(text_of("abcde"), "abcd...");
  EXPECT_EQ(text_of(with_nul), with_nul);
  EXPECT_EQ(text_of(""), "");
  // What was read has as many bytes as there is room for.
  plan.args[0][0].length = 1;
  plan.args[0][1].hidden = true;
  plan.args[0][1].location = Constant{4};
  EXPECT_EQ(text_of(with_nul), "ab");
}

TEST(Event, gives_what_may_be_text_only_where_it_plainly_is) {
  AttachPlan plan = x86_plan("8@%rdi", {0});
  plan.specs[0].args[0].capture = USDT_CAPTURE_LIKELY;
  const auto text_of = [&](std::string_view bytes) {
    const auto record = *EventBuilder(plan, 8).arg(0, 1).text(0, bytes).build();
    const auto text = Event::from(record, plan, layout_of(plan, 8))->text(0);
    return text ? fmt::format("{}{}", text->bytes, text->truncated ? "..." : "") : text.error().message;
  };
  EXPECT_EQ(text_of("four"), "four");
  EXPECT_EQ(text_of("a\tb\n"), "a\tb\n");
  EXPECT_EQ(text_of("na\xc3\xafve"), "na\xc3\xafve");
  EXPECT_EQ(text_of("123456789"), "12345678...");
  EXPECT_EQ(text_of("1234567\xc3\xa4"), "1234567\xc3...") << "half a character is where the text is cut";
  for (const char* none :
       {"", "abc", "\xe2\x82\xac\xe2\x82\xac", "abc\x01", "abcd\x7f", "abc\xc2\x85", "abc\xc3", "abc\xff",
        "a\xc0\xaf"
        "bc",
        "a\xe0\x80\xaf"
        "b",
        "a\xed\xa0\x80"
        "b",
        "a\xee\x80\x80"
        "b",
        "abc\xef\xbf\xbf", "abc\xf4\x90\x80\x80"})
    EXPECT_EQ(text_of(none), "not plainly text") << ::testing::PrintToString(none);
}

/// The address behind a list, that of its beginning, two numbers in it, of 4 bytes each, and how long a list in it is.
AttachPlan plan_of_a_list() {
  AttachPlan plan = x86_plan("8@%rdi 8@%rsi -4@%edx -4@%ecx -8@%r8 -4@%r9d", {0});
  std::vector<Arg>& args = plan.args[0];
  args[0].counts = ElementCount{.most = INT64_MAX / 4, .size = 4, .first = 1};
  args[2].element = ElementOf{.length = 0, .index = 0};
  args[3].element = ElementOf{.length = 0, .index = 1};
  args[4].counts = ElementCount{.most = 100, .size = 24};
  args[4].element = ElementOf{.length = 0, .index = 1};
  args[5].element = ElementOf{.length = 4, .index = 7};
  return plan;
}

TEST(Event, has_the_elements_of_a_list_that_are_not_behind_its_last_one) {
  const AttachPlan plan = plan_of_a_list();
  const auto told = [&](std::uint64_t begin, std::uint64_t end, std::int64_t inner) {
    EventBuilder builder(plan, 0);
    builder.arg(0, end).arg(1, begin).arg(2, 11).arg(3, 12).arg(4, static_cast<std::uint64_t>(inner)).arg(5, 13);
    const auto record = *builder.build();
    const auto event = Event::from(record, plan, layout_of(plan, 0));
    std::vector<std::string> all;
    for (std::size_t n = 0; n < 6; ++n) {
      if (n == 1) continue;
      const Value value = event->value(n);
      if (const auto* error = std::get_if<ArgError>(&value)) all.emplace_back(error->reason);
      if (const auto* whole = std::get_if<std::int64_t>(&value)) all.push_back(fmt::format("{}", *whole));
      if (const auto* natural = std::get_if<std::uint64_t>(&value)) all.push_back(fmt::format("{}", *natural));
    }
    return all;
  };
  using Told = std::vector<std::string>;
  const std::string behind = "behind the last element";
  const std::string absurd = "no list: its length is below 0, or more than fits into memory";
  const auto all_are = [](std::string_view reason) { return Told(5, std::string(reason)); };
  EXPECT_EQ(told(0x1000, 0x1008, 8), (Told{"2", "11", "12", "8", "13"}));
  EXPECT_EQ(told(0x1000, 0x1008, 7), (Told{"2", "11", "12", "7", behind}));
  EXPECT_EQ(told(0x1000, 0x1004, 8), (Told{"1", "11", behind, behind, behind}));
  EXPECT_EQ(told(0x1000, 0x1000, 8), (Told{"0", behind, behind, behind, behind}));
  EXPECT_EQ(told(0, 0, 8), (Told{"0", behind, behind, behind, behind}));
  EXPECT_EQ(told(0x1000, 0x1008, -1), (Told{"2", "11", "12", absurd, absurd}));
  EXPECT_EQ(told(0x1000, 0x1008, 101), (Told{"2", "11", "12", absurd, absurd}));
  EXPECT_EQ(told(0x1000, 0x0ffc, 8), all_are("no list: its end is before its beginning"));
  EXPECT_EQ(told(0x1000, 0x1006, 8), all_are("no list: it ends within an element"));
  EXPECT_EQ(told(0, ~std::uint64_t{3}, 8), all_are(absurd));
}

TEST(Event, gives_the_length_of_a_list_as_a_number_of_its_type) {
  const AttachPlan plan = plan_of_a_list();
  const auto record = *EventBuilder(plan, 0).arg(0, 0x1010).arg(1, 0x1000).arg(2, 11).build();
  const auto event = Event::from(record, plan, layout_of(plan, 0));
  EXPECT_EQ(event->arg<std::uint64_t>(0).value(), 4U);
  EXPECT_EQ(event->arg<std::int32_t>(2).value(), 11);
}

TEST(Event, says_whose_the_process_was_where_that_was_recorded) {
  AttachPlan plan = x86_plan("8@%rdi", {0});
  const auto without = *EventBuilder(plan).build();
  EXPECT_FALSE(Event::from(without, plan, layout_of(plan))->owner());
  plan.owners = true;
  const HitOwner owner{.uid = 1000, .gid = UINT32_MAX, .cgroup = UINT64_MAX, .ppid = 1};
  const auto record = *EventBuilder(plan).arg(0, 1ULL).text(0, std::string(300, 'x')).owner(owner).build();
  EXPECT_EQ(record.size(), without.size() + sizeof(usdt_owner));
  EXPECT_EQ(Event::from(record, plan, layout_of(plan))->owner(), owner);
}

TEST(Event, says_what_its_thread_worked_for_or_why_that_is_not_known) {
  AttachPlan plan = x86_plan("8@%rdi", {0});
  const auto without = *EventBuilder(plan).build();
  EXPECT_EQ(context_text(*Event::from(without, plan, layout_of(plan)), HitField::trace_id).error().kind,
            ErrorKind::not_found);
  plan.contexts = true;
  ThreadContext context{.trace_id = {0x4b, 0xf9, 0, 1}, .span_id = {0, 0xf0}, .flags = 1};
  auto record = *EventBuilder(plan).thread_context(context).build();
  EXPECT_EQ(record.size(), without.size() + sizeof(usdt_thread_context));
  const auto event = Event::from(record, plan, layout_of(plan));
  EXPECT_EQ(event->thread_context().value(), context);
  EXPECT_EQ(context_text(*event, HitField::trace_id).value(), "4bf90001000000000000000000000000");
  EXPECT_EQ(context_text(*event, HitField::span_id).value(), "00f0000000000000");
  auto& state = reinterpret_cast<usdt_thread_context*>(record.data() + layout_of(plan).context_at())->state;
  for (const auto& [error, words] :
       {std::pair(-ENOENT, "not known yet"), std::pair(-EAGAIN, "was changing it"), std::pair(-EFAULT, "Bad address"),
        std::pair(-EOPNOTSUPP, "does not tell where"), std::pair(-ENODATA, "kernel does not say")}) {
    state = error;
    EXPECT_THAT(context_text(*event, HitField::span_id).error().message, HasSubstr(words));
  }
  state = USDT_CONTEXT_NONE;
  EXPECT_EQ(context_text(*event, HitField::trace_id).value(), "");
  const auto zeros = *EventBuilder(plan).thread_context({.flags = 1}).build();
  EXPECT_EQ(Event::from(zeros, plan, layout_of(plan))->thread_context().value(), std::nullopt);
}

TEST(Event, has_the_attributes_of_its_thread_by_the_names_of_its_process) {
  AttachPlan plan = x86_plan("8@%rdi", {0});
  plan.contexts = true;
  const auto without = *EventBuilder(plan).thread_context({.trace_id = {1}}).build();
  EXPECT_EQ(Event::from(without, plan, layout_of(plan))->thread_attributes().error().kind, ErrorKind::not_found);
  plan.attributes = true;
  EventBuilder builder(plan);
  builder.thread_context({.trace_id = {1}}).thread_attribute(1, "/cart").thread_attribute(0, "u7");
  builder.thread_attribute(1, "/last").thread_attribute(2, "");
  auto record = *builder.build();
  EXPECT_EQ(record.size(), without.size() + sizeof(usdt_thread_attributes));
  auto event = *Event::from(record, plan, layout_of(plan));
  EXPECT_THAT(attribute_text(event, "user.id").error().message, HasSubstr("does not say what it is called"));
  const auto all = std::make_shared<const AttributeKeys>(AttributeKeys{{"user.id", "http.route", "empty"}, ""});
  event.name_attributes(all);
  const auto is = event.thread_attributes();
  ASSERT_TRUE(is) << is.error().message;
  EXPECT_THAT(is->known, ::testing::ElementsAre(ThreadAttribute{"http.route", "/last"},
                                                ThreadAttribute{"user.id", "u7"}, ThreadAttribute{"empty", ""}));
  EXPECT_EQ(is->others, "");
  EXPECT_EQ(attribute_text(event, "http.route").value(), "/last");
  EXPECT_EQ(attribute_text(event, "none").value(), "");
  const auto some = std::make_shared<const AttributeKeys>(AttributeKeys{{"user.id"}, "it is gone"});
  event.name_attributes(some);
  EXPECT_EQ(attribute_text(event, "user.id").value(), "u7");
  EXPECT_EQ(attribute_text(event, "http.route").error().message, "it is gone");
  const OwnedEvent kept(event);
  event.name_attributes(all);
  record.assign(record.size(), std::byte{0});
  EXPECT_EQ(attribute_text(*kept, "user.id").value(), "u7") << "with the names it had";
  EXPECT_FALSE(attribute_text(*kept, "http.route"));
}

TEST(Event, reads_no_attribute_beyond_the_end) {
  AttachPlan plan = x86_plan("8@%rdi", {0});
  plan.contexts = plan.attributes = true;
  auto record = *EventBuilder(plan).thread_context({.trace_id = {1}}).thread_attribute(0, "whole").build();
  auto& is = *reinterpret_cast<usdt_thread_attributes*>(record.data() + layout_of(plan).attributes_at());
  auto& context = *reinterpret_cast<usdt_thread_context*>(record.data() + layout_of(plan).context_at());
  auto event = *Event::from(record, plan, layout_of(plan));
  const auto keys = std::make_shared<const AttributeKeys>(AttributeKeys{{"k"}, ""});
  event.name_attributes(keys);
  is.size = 6;
  EXPECT_EQ(event.thread_attributes().error().kind, ErrorKind::limit) << "there are more than were read";
  context.attributes_size = 6;
  EXPECT_EQ(attribute_text(event, "k").value(), "") << "cut, and so none (OTEP 4947)";
  is.size = -EFAULT;
  EXPECT_EQ(event.thread_attributes().error().kind, ErrorKind::io);
  is.size = 7;
  context.state = -EAGAIN;
  EXPECT_THAT(attribute_text(event, "k").error().message, HasSubstr("was changing it"));
}

TEST(Event, shows_no_frame_of_the_tracing_itself) {
  AttachPlan plan = testing::synthetic_plan("fentry", "vfs_read", Machine::x86_64, "");
  plan.sites[0].tracer_frames = 2;
  EventLayout layout = testing::layout_of(plan);
  layout.stack_depth = 6;
  layout.stack_shown = 2;
  std::vector<std::uint64_t> words(layout.record_size() / sizeof(std::uint64_t));
  auto* header = reinterpret_cast<usdt_event*>(words.data());
  const auto stack = [&] { return Event::from(std::as_bytes(std::span(words)), plan, layout)->kernel_stack(); };
  for (std::uint64_t i = 0; i < 6; ++i) words[sizeof(usdt_event) / sizeof(std::uint64_t) + i] = i;
  header->stack_size = 6 * sizeof(std::uint64_t);
  EXPECT_EQ(std::vector(stack()->begin(), stack()->end()), (std::vector<std::uint64_t>{2, 3}));
  header->stack_size = 3 * sizeof(std::uint64_t);
  EXPECT_EQ(std::vector(stack()->begin(), stack()->end()), (std::vector<std::uint64_t>{2}));
  header->stack_size = sizeof(std::uint64_t);
  EXPECT_TRUE(stack()->empty());
}

TEST(OwnedEvent, keeps_record_and_plan_when_theirs_are_gone) {
  auto plan = std::make_shared<const AttachPlan>(x86_plan("8@%rdi -4@%esi", {0}));
  const std::weak_ptr<const AttachPlan> watched = plan;
  auto record = *EventBuilder(*plan).pid(42).arg(0, 0x1000).text(0, "select 1").arg(1, -7).build();
  std::optional<OwnedEvent> kept;
  {
    const auto event = Event::from(record, plan, layout_of(*plan));
    ASSERT_TRUE(event) << event.error().message;
    kept.emplace(*event);
  }
  const OwnedEvent second(**kept);  // a copy of a copy
  kept.reset();
  std::ranges::fill(record, std::byte{0xff});
  plan.reset();
  EXPECT_EQ(second->pid(), 42U);
  EXPECT_EQ(second->arg<std::int32_t>(1).value(), -7);
  EXPECT_EQ(second->text(0)->bytes, "select 1");
  EXPECT_EQ(second->probe().name, "n");
  EXPECT_EQ(watched.use_count(), 1);
}

TEST(Event, has_what_was_recorded_of_the_stack_of_the_process) {
  const AttachPlan plan = x86_plan("8@%rdi", {0});
  EventLayout layout = layout_of(plan, 11);
  layout.user_stack_depth = layout.user_addresses = 3;
  layout.user_copy_piece = 512;
  layout.user_copy_pieces = 1;
  EXPECT_EQ(layout.user_stack_at() % 8, 0U);
  std::vector<std::uint64_t> words(layout.record_size() / sizeof(std::uint64_t));
  auto* stack = reinterpret_cast<usdt_user_stack*>(words.data() + layout.user_stack_at() / sizeof(std::uint64_t));
  const auto recorded = [&] { return Event::from(std::as_bytes(std::span(words)), plan, layout)->user_stack(); };
  stack->size = 2 * sizeof(std::uint64_t);
  stack->regs[19] = 0x7ffe0000;
  stack->returns[0] = {.address = 0x401234, .stack = 0x7ffe0010};
  stack->copied = 512;
  auto* addresses = reinterpret_cast<std::uint64_t*>(stack + 1);
  addresses[1] = 0x401000;
  addresses[3] = 0x55;  // the first byte of the copy
  ASSERT_TRUE(recorded());
  EXPECT_EQ(std::vector(recorded()->addresses.begin(), recorded()->addresses.end()),
            (std::vector<std::uint64_t>{0, 0x401000}));
  EXPECT_EQ(recorded()->registers[19], 0x7ffe0000U);
  ASSERT_EQ(recorded()->replaced.size(), 1U);
  EXPECT_EQ(recorded()->replaced[0].address, 0x401234U);
  EXPECT_EQ(recorded()->memory.size(), 512U);
  EXPECT_EQ(recorded()->memory.front(), std::byte{0x55});
  EXPECT_FALSE(recorded()->cut) << "memory ended behind the first piece";
  stack->copied = 513;
  EXPECT_TRUE(recorded()->cut);
  stack->copied = UINT32_MAX;
  EXPECT_EQ(recorded()->memory.size(), 1024U) << "no more than there is room for";
  stack->size = -EFAULT;
  EXPECT_EQ(recorded().error().os_error, EFAULT);
}

TEST(OwnedEvent, takes_as_much_room_as_there_is_of_the_event) {
  AttachPlan plan = x86_plan("8@%rdi 8@%rsi 8@%rdx 8@%rcx -4@%esi", {0, 1, 3});
  plan.owners = true;
  constexpr std::uint32_t longest = 60'000;
  const std::string cut(longest + 1, 'x');
  const auto record = *EventBuilder(plan, longest)
                           .arg(0, 0x1000)
                           .text(0, "select 1")
                           .arg(1, 0x2000)
                           .error(1, -EFAULT)
                           .arg(3, 0x3000)
                           .text(3, "last")
                           .arg(4, -7)
                           .owner({.uid = 1, .gid = 2, .cgroup = 3})
                           .build();
  ASSERT_GT(record.size(), 3 * longest);
  const OwnedEvent first(*Event::from(record, plan, layout_of(plan, longest)));
  const OwnedEvent event(*first);  // a copy of a copy
  EXPECT_LT(event->record().size(), 300U);
  EXPECT_EQ(event->record().size(), event->layout().record_size());
  EXPECT_EQ(event->text(0)->bytes, "select 1");
  EXPECT_FALSE(event->text(1));
  EXPECT_EQ(event->text(3)->bytes, "last");
  EXPECT_EQ(event->arg<std::int32_t>(4).value(), -7);
  EXPECT_EQ(event->owner(), (HitOwner{.uid = 1, .gid = 2, .cgroup = 3}));
  const auto long_record = *EventBuilder(plan, longest).arg(1, 1).text(1, cut).arg(3, 2).text(3, "behind").build();
  const OwnedEvent with_cut(*Event::from(long_record, plan, layout_of(plan, longest)));
  EXPECT_TRUE(with_cut->text(1)->truncated);
  EXPECT_EQ(with_cut->text(1)->bytes, std::string_view(cut).substr(0, longest));
  EXPECT_EQ(with_cut->text(3)->bytes, "behind");
}

TEST(OwnedEvent, needs_a_plan) {
  const AttachPlan plan = x86_plan("");
  const auto record = *EventBuilder(plan).build();
  EXPECT_EQ(Event::from(record, std::shared_ptr<const AttachPlan>(), layout_of(plan)).error().kind,
            ErrorKind::invalid_argument);
}

TEST(Event, has_the_cookie_of_its_site) {
  AttachPlan plan = x86_plan("");
  plan.specs[0].user_cookie = 0xfeedfacecafebeef;
  const auto record = *EventBuilder(plan).build();
  EXPECT_EQ(Event::from(record, plan, layout_of(plan))->user_cookie(), 0xfeedfacecafebeef);
}

TEST(Event, has_a_stack_or_the_reason_why_not) {
  const AttachPlan plan = x86_plan("");
  EventLayout layout = layout_of(plan);
  layout.stack_depth = 4;
  std::vector<std::uint64_t> words(layout.record_size() / sizeof(std::uint64_t));
  auto* header = reinterpret_cast<usdt_event*>(words.data());
  const auto stack = [&] { return Event::from(std::as_bytes(std::span(words)), plan, layout)->kernel_stack(); };
  EXPECT_TRUE(stack()->empty());
  words[sizeof(usdt_event) / sizeof(std::uint64_t) + 1] = 0xffffffff81000010;
  header->stack_size = 2 * sizeof(std::uint64_t);
  ASSERT_EQ(stack()->size(), 2U);
  EXPECT_EQ((*stack())[1], 0xffffffff81000010);
  header->stack_size = -EFAULT;
  ASSERT_FALSE(stack());
  EXPECT_EQ(stack().error().kind, ErrorKind::io);
  EXPECT_EQ(stack().error().os_error, EFAULT);
}

TEST(Event, shows_why_an_argument_has_no_value) {
  const AttachPlan plan = x86_plan("8@(%rdi) 8@%xmm0 8@?? 4@%eax");
  const auto record = *EventBuilder(plan).error(0, -EFAULT).error(1, -EOPNOTSUPP).arg(3, 5U).build();
  const auto event = Event::from(record, plan, layout_of(plan));
  ASSERT_TRUE(event);
  for (const std::size_t n : {0, 1, 2}) {
    const Value value = event->value(n);
    ASSERT_TRUE(std::holds_alternative<ArgError>(value)) << n;
    EXPECT_FALSE(std::get<ArgError>(value).reason.empty());
  }
  EXPECT_EQ(std::get<std::uint64_t>(event->value(3)), 5U);
}

TEST(Event, says_that_a_thread_local_value_needs_kernel_types) {
  const AttachPlan plan = x86_plan("8@%fs:16");
  const auto record = *EventBuilder(plan).error(0, -ENODATA).build();
  const auto event = Event::from(record, plan, layout_of(plan));
  ASSERT_TRUE(event);
  const Value value = event->value(0);
  ASSERT_TRUE(std::holds_alternative<ArgError>(value));
  EXPECT_NE(std::get<ArgError>(value).reason.find("(BTF)"), std::string_view::npos);
}

TEST(Event, marks_text_that_was_cut_and_only_that) {
  const AttachPlan plan = x86_plan("8@%rdi 8@%rsi 8@%rdx", {0, 1, 2});
  const auto record =
      *EventBuilder(plan, 4).arg(0, 1).text(0, "abcd").arg(1, 1).text(1, "abcde").arg(2, 1).text(2, "").build();
  const auto event = Event::from(record, plan, layout_of(plan, 4));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->text(0)->bytes, "abcd");
  EXPECT_FALSE(event->text(0)->truncated);
  EXPECT_EQ(event->text(1)->bytes, "abcd");
  EXPECT_TRUE(event->text(1)->truncated);
  EXPECT_EQ(event->text(2)->bytes, "");
}

TEST(Event, tells_a_null_pointer_from_unreadable_memory) {
  const AttachPlan plan = x86_plan("8@%rdi 8@%rsi", {0, 1});
  auto record = *EventBuilder(plan).arg(0, 0).arg(1, 0x1000).build();
  auto* args = reinterpret_cast<usdt_event_arg*>(record.data() + sizeof(usdt_event));
  args[0].text = args[1].text = -EFAULT;
  const auto event = Event::from(record, plan, layout_of(plan));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->text(0).error().message, "null pointer");
  EXPECT_NE(event->text(1).error().message.find("could not be read"), std::string::npos);
}

TEST(Event, refuses_a_record_of_another_size_or_of_no_site) {
  const AttachPlan plan = x86_plan("-4@%edi");
  auto record = *EventBuilder(plan).build();
  EXPECT_EQ(Event::from(std::span(record).first(record.size() - 1), plan, layout_of(plan)).error().kind,
            ErrorKind::malformed);
  const auto of_no_site = *EventBuilder(plan).site(7).build();
  EXPECT_EQ(Event::from(of_no_site, plan, layout_of(plan)).error().kind, ErrorKind::malformed);
}

TEST(EventBuilder, says_what_the_plan_does_not_have_instead_of_writing_elsewhere) {
  const AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi -4@%esi", {0});
  EXPECT_THAT(EventBuilder(plan).arg(2, 1).build().error().message, HasSubstr("no argument 2"));
  EXPECT_THAT(EventBuilder(plan).error(1000, -EFAULT).arg(7, 1).build().error().message, HasSubstr("no argument 1000"));
  EXPECT_THAT(EventBuilder(plan).text(1, "x").build().error().message, HasSubstr("argument 1 is not captured"));
  EXPECT_THAT(EventBuilder(plan).site(9).text(0, "x").build().error().message, HasSubstr("argument 0 is not captured"));
  EXPECT_TRUE(EventBuilder(plan).arg(1, 1).text(0, "x").build());
}

}  // namespace
}  // namespace usdt
