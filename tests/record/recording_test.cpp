// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/recording.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <tuple>

#include "tests/record/traces.hpp"

namespace usdt {
namespace {

using record_test::File;
using record_test::plan_of_three_sites;
using record_test::random_record;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kStringSize = 12;

/// What Event tells of an event.
std::string told(const Event& event) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {}:", event.timestamp(), event.pid(), event.tid(), event.cpu(),
                                 event.comm(), event.ip().value, event.duration(), event.site_number());
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    const Value value = event.value(n);
    if (const auto* error = std::get_if<ArgError>(&value))
      text += fmt::format(" <{}>", error->reason);
    else if (const auto* real = std::get_if<double>(&value))
      text += fmt::format(" {:016x}", std::bit_cast<std::uint64_t>(*real));
    else if (const auto* whole = std::get_if<std::int64_t>(&value))
      text += fmt::format(" {}", *whole);
    else
      text += fmt::format(" {}u", std::get<std::uint64_t>(value));
    const auto string = event.text(n);
    text += string ? fmt::format("'{}'{}", string->bytes, string->truncated ? "..." : "")
                   : fmt::format("({})", string.error().message);
  }
  return text;
}

RecordingWriter writer_to(const File& file, const AttachPlan& plan, RecordingInfo info = {}) {
  auto writer = RecordingWriter::create(file.path(), plan, testing::layout_of(plan, kStringSize), std::move(info));
  EXPECT_TRUE(writer) << writer.error().message;
  return std::move(*writer);
}

Event event_of(const std::vector<std::byte>& record, const AttachPlan& plan) {
  return *Event::from(record, plan, testing::layout_of(plan, kStringSize));
}

TEST(Recording, gives_every_event_as_it_was) {
  const AttachPlan plan = plan_of_three_sites();
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(1);
  std::vector<std::string> were;
  std::vector<std::int64_t> offsets;
  std::uint64_t time = 1'000'000'000;
  for (int n = 0; n < 20'000; ++n) {
    time += random() % 1000 - 200;  // processors' rings are not in one order
    const auto record = random_record(plan, static_cast<std::uint32_t>(random() % 3), time, random);
    were.push_back(told(event_of(record, plan)));
    offsets.push_back(n < 9'000 ? 5 : -7);
    const OwnedEvent copy(event_of(record, plan));
    ASSERT_EQ(told(*copy), were.back());
    ASSERT_TRUE(writer.event(n % 2 == 0 ? event_of(record, plan) : *copy, offsets.back()));
    if (n % 5'000 == 77) {
      ASSERT_TRUE(writer.flush());
    }
  }
  ASSERT_TRUE(writer.finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  for (std::size_t n = 0; n < were.size(); ++n) {
    const auto event = recording->next();
    ASSERT_TRUE(event) << event.error().message;
    ASSERT_NE(*event, nullptr) << "event " << n;
    ASSERT_EQ(told(**event), were[n]) << "event " << n;
    ASSERT_EQ(recording->wall_offset(), offsets[n]) << "event " << n;
  }
  EXPECT_EQ(recording->next().value(), nullptr);
  EXPECT_THAT(recording->cut(), IsEmpty());
}

/// How a recording of ten events that has this account is said to end.
std::string cut_of(const ProbeCounts& account) {
  const AttachPlan plan = plan_of_three_sites();
  const File file;
  auto writer = writer_to(file, plan);
  for (std::uint64_t n = 0; n < 10; ++n)
    EXPECT_TRUE(writer.event(event_of(*testing::EventBuilder(plan, kStringSize).timestamp(n).build(), plan), 0));
  EXPECT_TRUE(writer.finish({.probes = {account, {}}}));
  auto recording = Recording::open(file.path());
  EXPECT_THAT(recording->cut(), IsEmpty());
  while (recording->next().value() != nullptr) {
  }
  return recording->cut();
}

TEST(Recording, says_that_its_account_contradicts_itself) {
  EXPECT_THAT(cut_of({.hits = 10, .delivered = 10}), IsEmpty());
  EXPECT_THAT(cut_of({.hits = 15, .delivered = 10, .ring_full = 5}), IsEmpty());
  EXPECT_THAT(cut_of({.hits = 20, .delivered = 20}), IsEmpty()) << "some were delivered before it was recorded";
  EXPECT_THAT(cut_of({.hits = 9, .delivered = 9}), HasSubstr("9 hits, 0 that became no event, and 10 events"));
  EXPECT_THAT(cut_of({.hits = 14, .delivered = 10, .not_sampled = 5}), HasSubstr("contradicts"));
  EXPECT_THAT(cut_of({.hits = 14, .delivered = 10, .faster = 5}), HasSubstr("contradicts"));
  EXPECT_THAT(cut_of({.hits = UINT64_MAX, .ring_full = UINT64_MAX - 4, .rejected = UINT64_MAX - 4}),
              HasSubstr("contradicts"));
}

TEST(Recording, has_who_ended_each_span) {
  const AttachPlan plan = plan_of_three_sites();
  EventLayout layout = testing::layout_of(plan, kStringSize);
  layout.enders = true;
  const File file;
  auto writer = RecordingWriter::create(file.path(), plan, layout, {});
  ASSERT_TRUE(writer);
  // Also nobody, and one of another pid namespace without a name.
  const std::vector<std::optional<SpanEnder>> threads{SpanEnder{7, 7, "synthetic"}, SpanEnder{7, 8, "other"},
                                                      SpanEnder{7, 8, "renamed"},   SpanEnder{},
                                                      SpanEnder{9, UINT32_MAX, ""}, std::nullopt};
  std::vector<std::optional<SpanEnder>> were;
  std::mt19937 random(7);
  for (std::uint64_t n = 0; n < 5'000; ++n) {
    were.push_back(threads[random() % threads.size()]);
    testing::EventBuilder builder(plan, layout);
    builder.timestamp(n).pid(7);
    if (were.back()) builder.ended_by(*were.back());
    const auto record = builder.build();
    ASSERT_TRUE(writer->event(*Event::from(*record, plan, layout), 0));
  }
  ASSERT_TRUE(writer->finish({}));
  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  for (const std::optional<SpanEnder>& was : were) {
    const auto event = recording->next();
    ASSERT_TRUE(event && *event);
    ASSERT_EQ((*event)->ended_by(), was);
  }
}

TEST(Recording, has_whose_each_process_was_at_the_hit) {
  AttachPlan plan = plan_of_three_sites();
  plan.owners = true;
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(7);
  std::vector<HitOwner> were;
  for (std::uint64_t n = 0; n < 5'000; ++n) {
    const auto any = [&] { return static_cast<std::uint32_t>(random() >> random() % 64); };
    // One thread that changes hands, and others beside it.
    were.push_back(n % 3 == 0
                       ? HitOwner{0, 0, 1, 1}
                       : HitOwner{any() % 4, any(), random() >> random() % 64, static_cast<std::int32_t>(any() >> 1)});
    const auto record = testing::EventBuilder(plan, kStringSize).timestamp(n).pid(1 + n % 2).owner(were.back()).build();
    ASSERT_TRUE(writer.event(event_of(*record, plan), 0));
  }
  ASSERT_TRUE(writer.finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->plan()->owners);
  for (const HitOwner& was : were) {
    const auto event = recording->next();
    ASSERT_TRUE(event && *event);
    ASSERT_EQ((*event)->owner(), was);
  }
  EXPECT_EQ(recording->next().value(), nullptr);
}

TEST(Recording, has_what_threads_worked_for) {
  AttachPlan plan = plan_of_three_sites();
  plan.contexts = true;
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(11);
  const auto layout = testing::layout_of(plan, kStringSize);
  std::vector<std::vector<std::byte>> records;
  for (std::uint64_t n = 0; n < 3'000; ++n) {
    testing::EventBuilder builder(plan, kStringSize);
    builder.timestamp(n);
    ThreadContext context{.flags = static_cast<std::uint8_t>(random() % 2)};
    context.trace_id[random() % 16] = static_cast<std::uint8_t>(random() % 4);
    context.span_id[random() % 8] = static_cast<std::uint8_t>(random() % 4);
    if (n % 3 == 0) builder.thread_context(context);
    records.push_back(*builder.build());
    auto& state = reinterpret_cast<usdt_thread_context*>(records.back().data() + layout.context_at())->state;
    if (n % 3 == 1) state = -EAGAIN;
    ASSERT_TRUE(writer.event(event_of(records.back(), plan), 0));
  }
  ASSERT_TRUE(writer.finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->plan()->contexts);
  for (const auto& record : records) {
    const auto was = event_of(record, plan).thread_context(), is = recording->next().value()->thread_context();
    ASSERT_EQ(was.has_value(), is.has_value());
    if (was)
      ASSERT_EQ(*was, *is);
    else
      ASSERT_EQ(was.error().message, is.error().message);
  }
  EXPECT_EQ(recording->next().value(), nullptr);
}

TEST(Recording, has_the_attributes_of_threads_with_their_names) {
  AttachPlan plan = plan_of_three_sites();
  plan.contexts = plan.attributes = true;
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(12);
  const auto layout = testing::layout_of(plan, kStringSize);
  std::vector<std::shared_ptr<const AttributeKeys>> names;
  for (int n = 0; n < 5; ++n) {
    AttributeKeys keys;
    for (int key = 0; key < 50 * n; ++key) keys.names.push_back(std::string("key ") + std::to_string(key % 40 + n));
    keys.why = n % 2 == 0 ? "" : "for a reason";
    names.push_back(std::make_shared<const AttributeKeys>(std::move(keys)));
  }
  std::vector<std::vector<std::byte>> records;
  const auto event_of_record = [&](std::size_t n) {
    Event event = event_of(records[n], plan);
    event.name_attributes(names[n % names.size()]);
    return event;
  };
  for (std::uint64_t n = 0; n < 3'000; ++n) {
    testing::EventBuilder builder(plan, kStringSize);
    builder.timestamp(n).thread_context({.trace_id = {static_cast<std::uint8_t>(random() % 4)}, .span_id = {1}});
    for (auto more = random() % 5; more > 0; --more)
      builder.thread_attribute(static_cast<std::uint8_t>(random()), std::string(random() % 90, 'x'));
    records.push_back(*builder.build());
    auto& context = *reinterpret_cast<usdt_thread_context*>(records.back().data() + layout.context_at());
    auto& attributes = *reinterpret_cast<usdt_thread_attributes*>(records.back().data() + layout.attributes_at());
    if (n % 11 == 1) attributes.size = -EFAULT;
    if (n % 11 == 2) context.attributes_size = static_cast<__u16>(context.attributes_size + 1);
    if (n % 11 == 3) context.state = -EAGAIN;
    ASSERT_TRUE(writer.event(event_of_record(n), 0));
  }
  ASSERT_TRUE(writer.finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->plan()->attributes);
  for (std::size_t n = 0; n < records.size(); ++n) {
    const Event before = event_of_record(n);
    const auto was = before.thread_attributes();
    const Event* const now = recording->next().value();
    const auto is = now->thread_attributes();
    ASSERT_EQ(was.has_value(), is.has_value()) << n;
    if (!was) {
      ASSERT_EQ(was.error().message, is.error().message);
      continue;
    }
    ASSERT_EQ(was->known, is->known) << n;
    ASSERT_EQ(was->others, is->others) << n;
  }
  EXPECT_EQ(recording->next().value(), nullptr);
}

TEST(Recording, of_an_earlier_version_knows_no_parents) {
  AttachPlan plan = plan_of_three_sites();
  plan.owners = true;
  EventLayout earlier = testing::layout_of(plan, kStringSize);
  earlier.parents = false;
  const File file;
  auto writer = RecordingWriter::create(file.path(), plan, earlier, {});
  ASSERT_TRUE(writer) << writer.error().message;
  for (std::uint32_t n = 0; n < 3; ++n) {
    const auto record =
        testing::EventBuilder(plan, kStringSize).owner({.uid = n, .gid = 2, .cgroup = 3, .ppid = 4}).build();
    ASSERT_TRUE(writer->event(*Event::from(*record, plan, earlier), 0));
  }
  ASSERT_TRUE(writer->finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  for (std::uint32_t n = 0; n < 3; ++n)
    EXPECT_EQ(recording->next().value()->owner(), (HitOwner{.uid = n, .gid = 2, .cgroup = 3}));
}

TEST(Recording, has_texts_with_a_length_whole) {
  AttachPlan plan = testing::synthetic_plan("p", "n", Machine::x86_64, "8@%rdi 8@%rsi", {0});
  plan.specs[0].args[0].capture = USDT_CAPTURE_BY(0, 1);
  const File file;
  auto writer = writer_to(file, plan);
  std::vector<std::string> were;
  for (const std::string_view text :
       {std::string_view("ab\0cd\0", 6), std::string_view("", 0), std::string_view("\0", 1)}) {
    const auto record = *testing::EventBuilder(plan, kStringSize).arg(0, 1).arg(1, text.size()).text(0, text).build();
    were.push_back(told(event_of(record, plan)));
    ASSERT_TRUE(writer.event(event_of(record, plan), 0));
  }
  EXPECT_THAT(were[0], HasSubstr(std::string("'ab\0cd\0'", 8)));
  ASSERT_TRUE(writer.finish({}));
  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  for (const std::string& was : were) EXPECT_EQ(told(*recording->next().value()), was);
}

TEST(Recording, knows_what_was_traced) {
  AttachPlan plan = plan_of_three_sites();
  plan.args[0][0].declaration = std::make_shared<const Declaration>(
      Declaration{"sql", "const char *", {{"ONE", 1}, {"MINUS", UINT64_MAX}}, "errno", "us"});
  plan.args[0][1].part_of = 0;
  plan.args[0][1].derived = true;
  plan.args[0][1].steps = {{.displacement = 8, .size = 4, .if_null = "req is null", .if_unread = "req->port"}};
  plan.groups[0].moment = Moment::both;
  plan.args[0][0].counts = ElementCount{.most = 99, .size = 24, .first = 2};
  plan.args[0][1].element = ElementOf{.length = 0, .index = 1U << 20};
  const auto function = plan.functions.add({.name = "vfs_read", .module = "fs", .address = 0xffff'8000'0000'1234});
  const auto probe = plan.probes.add({.provider = "fentry", .name = "fs:vfs_read"});
  const auto group = plan.groups.add();
  plan.groups[group].of = KernelModule{.name = "fs"};
  plan.groups[group].sites.push_back(plan.sites.add({.probe = probe, .point = KernelFunctionPlace{function}}));
  const File file;
  auto writer =
      writer_to(file, plan, {.made_by = "a test", .kernel = "7.2", .properties = {{"a", "b"}, {"c", "\xff"}}});
  ASSERT_TRUE(writer.notice({.timestamp = 5, .text = "said"}));
  RecordedLedger ledger{
      .probes = {{.hits = 12, .delivered = 3, .ring_full = 1, .rejected = 5, .faster = 3}, {}, {.missed = {}}},
      .missed = 4,
      .undecided = 2,
      .skipped = {{.probe = 1, .pc = VirtAddr(7), .reason = "why"}, {.probe = 0, .reason = "no"}},
      .changes = {{.file = 0, .kind = FileChangeKind::removed, .let_go = 6}}};
  ledger.missed_hits.push_back({.backend = Backend::kprobe_multi, .hits = 11, .probes = {}});
  ASSERT_TRUE(writer.finish(ledger));

  const auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  const AttachPlan& read = *recording->plan();
  for (const Index<PlannedProbe> each : plan.probes.indices())
    EXPECT_EQ(full_name(read, read.probes[each]), full_name(plan, plan.probes[each]));
  for (const Index<PlannedSite> site : plan.sites.indices())
    EXPECT_EQ(pc_of(read, read.sites[site]), pc_of(plan, plan.sites[site]));
  EXPECT_EQ(read.groups[0].moment, Moment::both);
  EXPECT_EQ(read.groups[group].sites.size(), 1U);
  EXPECT_EQ(*read.args[0][0].declaration, *plan.args[0][0].declaration);
  EXPECT_EQ(read.args[0][1].steps[0].if_null, "req is null");
  EXPECT_EQ(read.args[0][1].part_of, 0);
  EXPECT_EQ(read.args[0][0].counts, plan.args[0][0].counts);
  EXPECT_EQ(read.args[0][1].element, plan.args[0][1].element);
  EXPECT_EQ(read.args[1][2].why_unreadable(), plan.args[1][2].why_unreadable());
  EXPECT_EQ(recording->info().made_by, "a test");
  EXPECT_EQ(recording->info().kernel, "7.2");
  EXPECT_EQ(recording->property("c"), "\xff");
  EXPECT_EQ(recording->property("d"), std::nullopt);
  EXPECT_EQ(recording->notices().at(0).text, "said");
  const RecordedLedger& account = recording->ledger().value();
  EXPECT_EQ(account.probes.size(), plan.probes.size());
  EXPECT_EQ(account.probes[0].hits, 12U);
  EXPECT_EQ(account.probes[0].faster, 3U);
  EXPECT_EQ(account.probes[0].rejected, 5U);
  EXPECT_EQ(account.probes[2].missed, std::nullopt);
  EXPECT_EQ(account.missed, 4U);
  EXPECT_EQ(account.missed_hits.at(0).hits, 11U);
  EXPECT_EQ(account.skipped.at(0).pc, VirtAddr(7));
  EXPECT_EQ(account.skipped.at(1).pc, std::nullopt);
  EXPECT_EQ(account.changes.at(0).let_go, 6U);
}

TEST(Recording, has_what_came_in_its_place_among_the_events) {
  AttachPlan plan = plan_of_three_sites();
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(3);
  ASSERT_TRUE(writer.event(event_of(random_record(plan, 1, 10, random), plan), 0));
  const Followed came{.kind = FollowKind::runtime,
                      .pid = 7,
                      .file = "/memfd:\xff",
                      .time = UINT64_MAX,
                      .wall_time = -1,
                      .after_ns = 5,
                      .probes = 1,
                      .sites = 2,
                      .attached = 3};
  plan.probes.add({.file = Index<PlannedFile>(0), .provider = "db", .name = "later"});
  ASSERT_TRUE(writer.plan(plan));
  ASSERT_TRUE(writer.property("print_of.2", "1"));
  ASSERT_TRUE(writer.followed(came));
  ASSERT_TRUE(writer.event(event_of(random_record(plan, 1, 11, random), plan), 0));
  ASSERT_TRUE(writer.followed({.file = "refused", .error = "why"}));
  ASSERT_TRUE(writer.finish({}));

  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->property("print_of.2"), "1");
  ASSERT_EQ(recording->followed().size(), 2U);
  const RecordedFollowed& first = recording->followed()[0];
  EXPECT_EQ(first.kind, came.kind);
  EXPECT_EQ(first.pid, came.pid);
  EXPECT_EQ(first.file, came.file);
  EXPECT_EQ(first.time, came.time);
  EXPECT_EQ(first.wall_time, came.wall_time);
  EXPECT_EQ(first.after_ns, came.after_ns);
  EXPECT_EQ(std::tuple(first.probes, first.sites, first.attached), std::tuple(1U, 2U, 3U));
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.probes_by_then, 3U);
  EXPECT_EQ(recording->followed()[1].error, "why");
  for (const std::size_t by_now : {0U, 1U, 2U}) {
    EXPECT_EQ(recording->next().value() == nullptr, by_now == 2);
    EXPECT_EQ(recording->followed_by_now(), by_now);
  }
}

TEST(Recording, has_sites_that_were_added_while_it_was_made) {
  AttachPlan plan = plan_of_three_sites();
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(2);
  ASSERT_TRUE(writer.event(event_of(random_record(plan, 1, 10, random), plan), 0));
  const auto probe = plan.probes.add({.file = Index<PlannedFile>(0), .provider = "db", .name = "later"});
  plan.groups[0].sites.push_back(plan.sites.add({.probe = probe, .point = FilePlace{.pc = VirtAddr(99)}}));
  const auto late = random_record(plan, 3, 11, random);
  ASSERT_TRUE(writer.event(event_of(late, plan), 0));
  ASSERT_TRUE(writer.finish({}));
  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_TRUE(recording->next().value());
  const Event* event = recording->next().value();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->probe().name, "later");
  EXPECT_EQ(told(*event), told(event_of(late, plan)));
}

TEST(Recording, has_the_names_of_stacks) {
  const AttachPlan plan = plan_of_three_sites();
  const File file;
  auto writer = writer_to(file, plan);
  std::mt19937_64 random(3);
  const auto record = random_record(plan, 0, 1, random);
  Stack outer{.frames = {{.address = ProcessAddr(0x10),
                          .function = "leaf(int)",
                          .distance = 3,
                          .module = "/bin/x",
                          .build_id = "ab",
                          .offset = FileOffset(9),
                          .source = "x.cc",
                          .line = 7},
                         {.issue = FrameIssue::callers_skipped},
                         {.address = ProcessAddr(0x20),
                          .return_address = true,
                          .inlined = true,
                          .function = "main",
                          .issue = FrameIssue::file_changed,
                          .detail = "why"},
                         {.function = "f", .language = "php", .source = "a.php", .line = 3},
                         {.address = ProcessAddr(0x30),
                          .function = "total",
                          .language = "javascript",
                          .source = "/srv/a.js",
                          .definition_line = 12,
                          .definition_column = 300,
                          .tier = CodeTier::optimized,
                          .issue = FrameIssue::code_replaced,
                          .detail = "JS:~other /srv/a.js:1:1"},
                         {.address = ProcessAddr(0x40), .function = "int T.f(int)", .language = "java"}},
              .end = FrameIssue::copy_ended};
  Stack inner = outer;
  inner.frames.erase(inner.frames.begin() + 1);
  inner.end = FrameIssue::none;
  const std::vector<Result<Stack>> stacks = {outer, inner, outer, fail(ErrorKind::io, "no memory"), Stack{}};
  for (const auto& stack : stacks)
    ASSERT_TRUE(writer.event(event_of(record, plan), 0, {.kernel = nullptr, .user = &stack}));
  ASSERT_TRUE(writer.finish({}));
  auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording);
  for (const auto& was : stacks) {
    ASSERT_NE(recording->next().value(), nullptr);
    EXPECT_THAT(recording->kernel_stack().value().frames, IsEmpty());
    const auto stack = recording->user_stack();
    ASSERT_EQ(stack.has_value(), was.has_value());
    if (!was) {
      EXPECT_EQ(stack.error().message, was.error().message);
      continue;
    }
    EXPECT_EQ(stack->end, was->end);
    ASSERT_EQ(stack->frames.size(), was->frames.size());
    for (std::size_t n = 0; n < was->frames.size(); ++n) {
      const Frame &read = stack->frames[n], &frame = was->frames[n];
      EXPECT_EQ(read.address, frame.address);
      EXPECT_EQ(read.return_address, frame.return_address);
      EXPECT_EQ(read.inlined, frame.inlined);
      EXPECT_EQ(read.function, frame.function);
      EXPECT_EQ(read.distance, frame.distance);
      EXPECT_EQ(read.module, frame.module);
      EXPECT_EQ(read.build_id, frame.build_id);
      EXPECT_EQ(read.offset, frame.offset);
      EXPECT_EQ(read.source, frame.source);
      EXPECT_EQ(read.line, frame.line);
      EXPECT_EQ(read.language, frame.language);
      EXPECT_EQ(read.definition_line, frame.definition_line);
      EXPECT_EQ(read.definition_column, frame.definition_column);
      EXPECT_EQ(read.tier, frame.tier);
      EXPECT_EQ(read.issue, frame.issue);
      EXPECT_EQ(read.detail, frame.detail);
    }
  }
}

TEST(Recording, of_a_function_whose_name_lacks_the_offset_has_a_name_for_it) {
  AttachPlan plan = plan_of_three_sites();
  PlannedProbe& probe = plan.probes[Index<PlannedProbe>(0)];
  probe.function = Moment::entry;
  probe.distance = 0x1234;
  probe.name = "f";
  const File file;
  auto writer = writer_to(file, plan);
  EXPECT_TRUE(writer.finish({}));
  const auto recording = Recording::open(file.path());
  ASSERT_TRUE(recording) << recording.error().message;
  const AttachPlan& read = *recording->plan();
  EXPECT_THAT(full_name(read, read.probes[Index<PlannedProbe>(0)]), ::testing::HasSubstr(":f+0x1234"));
}

TEST(Recording, of_lists_that_are_within_themselves_is_refused) {
  using Args = std::vector<Arg>;
  const ElementCount count{.most = 9, .size = 4, .first = {}};
  const auto opens = [](const std::function<void(Args&)>& change) {
    AttachPlan plan = plan_of_three_sites();
    change(plan.args[0]);
    const File file;
    auto writer = writer_to(file, plan);
    EXPECT_TRUE(writer.finish({}));
    return Recording::open(file.path()).has_value();
  };
  const auto is_list = [&](Args& args) { args[0].counts = count; };
  const auto both = [&](const std::function<void(Args&)>& change) {
    return opens([&](Args& args) {
      is_list(args);
      change(args);
    });
  };
  EXPECT_TRUE(opens(is_list));
  EXPECT_TRUE(both([](Args& args) { args[1].element = ElementOf{.length = 0, .index = 3}; }));
  EXPECT_FALSE(opens([](Args& args) { args[1].element = ElementOf{.length = 0, .index = 3}; })) << "of no list";
  EXPECT_FALSE(both([](Args& args) { args[1].element = ElementOf{.length = 200, .index = 3}; }));
  EXPECT_FALSE(both([](Args& args) { args[0].element = ElementOf{.length = 0, .index = 3}; })) << "of itself";
  EXPECT_FALSE(both([](Args& args) { args[0].counts->first = 0; }));
  EXPECT_FALSE(both([](Args& args) { args[0].counts->first = 200; }));
  EXPECT_FALSE(both([](Args& args) { args[0].counts->size = 0; }));
  EXPECT_FALSE(both([](Args& args) {
    args[0].counts->first = 1;
    args[1].element = ElementOf{.length = 0, .index = 0};
  })) << "the length of a list of which it says where it begins";
  EXPECT_FALSE(both([&](Args& args) {
    args[1].counts = count;
    args[0].element = ElementOf{.length = 1, .index = 0};
    args[1].element = ElementOf{.length = 0, .index = 0};
  })) << "of each other";
}

TEST(Recording, says_what_is_none) {
  const File file;
  EXPECT_EQ(Recording::open("/nowhere/at/all").error().kind, ErrorKind::not_found);
  file.set("");
  EXPECT_THAT(Recording::open(file.path()).error().message, HasSubstr("no recording"));
  file.set(std::string("usdtrec\n\x02\0\0\0\0\0\0\0", 16));
  EXPECT_THAT(Recording::open(file.path()).error().message, HasSubstr("version 2"));
  EXPECT_EQ(Recording::open("/dev/zero").error().kind, ErrorKind::not_supported);
  EXPECT_EQ(RecordingWriter::create("/nowhere/at/all", plan_of_three_sites(), {}).error().kind, ErrorKind::not_found);
}

TEST(RecordingWriter, hands_on_why_it_cannot_write) {
  const AttachPlan plan = plan_of_three_sites();
  std::size_t room = 1000;
  const auto sink = [&](const RecordedBlock& block) -> Result<void> {
    if (block.bytes.size() > room) return fail(ErrorKind::limit, "the disk is full");
    room -= block.bytes.size();
    return {};
  };
  auto writer = RecordingWriter::start(sink, plan, testing::layout_of(plan, kStringSize));
  ASSERT_TRUE(writer) << writer.error().message;
  std::mt19937_64 random(4);
  for (int n = 0; n < 1000; ++n)
    ASSERT_TRUE(writer->event(event_of(random_record(plan, 0, random(), random), plan), 0));
  EXPECT_EQ(writer->flush().error().message, "the disk is full");
}

TEST(FlightRecorder, keeps_the_last_while_and_counts_what_it_forgot) {
  const AttachPlan plan = plan_of_three_sites();
  const File file;
  auto recorder = FlightRecorder::start(plan, testing::layout_of(plan, kStringSize), {},
                                        {.time = std::chrono::seconds(10), .bytes = 64U << 20});
  std::mt19937_64 random(5);
  std::uint64_t time = 0, of_probe[2] = {};
  for (int n = 0; n < 300'000; ++n) {
    time += 100'000;  // 30 s in all
    const auto site = static_cast<std::uint32_t>(n % 3);
    const auto event = testing::EventBuilder(plan, kStringSize).site(site).timestamp(time).arg(0, random()).build();
    recorder.event(event_of(*event, plan), 0);
    ++of_probe[site / 2];
  }
  const auto kept = recorder.kept();
  EXPECT_EQ(kept.last, time);
  EXPECT_LE(kept.first + 10'000'000'000, time);
  EXPECT_GE(kept.first + 15'000'000'000, time) << "a block is forgotten once all of it is old";
  EXPECT_FALSE(kept.out_of_room);
  std::string bytes;
  const auto sink = [&](const RecordedBlock& block) -> Result<void> {
    bytes.append(reinterpret_cast<const char*>(block.bytes.data()), block.bytes.size());
    return {};
  };
  for (int again = 0; again < 2; ++again) {
    bytes.clear();
    ASSERT_TRUE(recorder.write(sink, {.probes = {{.hits = of_probe[0]}, {.hits = of_probe[1]}}}));
    file.set(bytes);
    auto recording = Recording::open(file.path());
    ASSERT_TRUE(recording) << recording.error().message;
    std::vector<std::uint64_t> events(2);
    std::uint64_t last = 0;
    while (const Event* event = recording->next().value()) {
      ++events[event->site().probe.value];
      ASSERT_TRUE(last == 0 || event->timestamp() == last + 100'000);
      last = event->timestamp();
    }
    EXPECT_EQ(events, kept.events);
    EXPECT_EQ(last, time);
    EXPECT_THAT(recording->cut(), IsEmpty());
    EXPECT_EQ(recording->ledger()->probes[0].hits, of_probe[0]);
  }
}

TEST(FlightRecorder, has_a_bound) {
  const AttachPlan plan = plan_of_three_sites();
  auto recorder = FlightRecorder::start(plan, testing::layout_of(plan, kStringSize), {},
                                        {.time = std::chrono::hours(1), .bytes = 1U << 20});
  std::mt19937_64 random(6);
  for (std::uint64_t time = 1; time < 300'000; ++time) {
    const auto event = testing::EventBuilder(plan, kStringSize).timestamp(time).arg(0, random()).arg(2, 0.5).build();
    recorder.event(event_of(*event, plan), 0);
  }
  const auto kept = recorder.kept();
  EXPECT_LE(kept.bytes, 1U << 20);
  EXPECT_GE(kept.bytes, 1U << 19);
  EXPECT_TRUE(kept.out_of_room);
}

}  // namespace
}  // namespace usdt
