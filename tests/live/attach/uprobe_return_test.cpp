// SPDX-License-Identifier: BSD-2-Clause
// Programs at the return of a function in a file (Backend::uprobe_return).
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "calls_of_function.hpp"

namespace usdt::calls {
namespace {

class UprobeReturn : public Calls {
 protected:
  void SetUp() override {
    Calls::SetUp();
    if (probe_feature(Feature::uprobe_multi).answer == Answer::no) GTEST_SKIP() << "no uprobe_multi on this kernel";
  }
};

TEST_F(UprobeReturn, shows_a_program_the_return_value_and_no_argument_of_the_entry) {
  auto object = load(Moment::exit);
  ASSERT_TRUE(object) << object.error().message;
  auto link = object->attach();
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(link->backend_text(), "uprobe_return");
  const long returned = twice_and_one(500);
  const Seen at_return = seen(*object, "at_return");
  EXPECT_EQ(at_return.hits, 1U);
  EXPECT_EQ(at_return.errors[0], 0);
  EXPECT_EQ(static_cast<long>(at_return.values[0]), returned);
  EXPECT_EQ(at_return.errors[1], -ENOENT) << "there is nothing but the return value";
  EXPECT_EQ(at_return.cookie, 77U);
  EXPECT_EQ(seen(*object, "at_entry").hits, 0U);
  link->detach();
  twice_and_one(1);
  EXPECT_EQ(seen(*object, "at_return").hits, 1U);
}

TEST_F(UprobeReturn, is_an_event_of_the_stock_program) {
  auto tracer = Tracer::start(plan(Moment::exit));
  ASSERT_TRUE(tracer) << tracer.error().message;
  const long returned = twice_and_one(-9);
  std::vector<std::int64_t> values;
  const auto keep = [&](const Event& event) {
    ASSERT_EQ(event.arg_count(), 1U);
    EXPECT_TRUE(event.arg_info(0).result);
    values.push_back(std::get<std::int64_t>(event.value(0)));
  };
  EXPECT_TRUE(tracer->poll(keep, std::chrono::seconds(5)));
  EXPECT_THAT(values, testing::ElementsAre(returned));
}

/// Whatever made the plan.
TEST_F(UprobeReturn, is_nowhere_but_where_a_function_begins) {
  const auto refusal = [](const auto& change) {
    AttachPlan changed = plan(Moment::exit);
    change(changed);
    auto object = BpfObject::open(returns_object())->load(std::move(changed));
    EXPECT_TRUE(object) << object.error().message;
    const auto link = object->attach();
    return link ? std::string("attached") : link.error().message;
  };
  EXPECT_EQ(refusal([](AttachPlan&) {}), "attached");
  const auto is_refusal = testing::HasSubstr("no return probe can be at file offset");
  EXPECT_THAT(refusal([](AttachPlan& within) { within.probes[0].distance = 4; }), is_refusal);
  EXPECT_THAT(refusal([](AttachPlan& line) { line.probes[0].name = "@calls.c:7"; }), is_refusal);
  EXPECT_THAT(refusal([](AttachPlan& piece) { piece.probes[0].name = "twice_and_one.cold"; }), is_refusal);
  EXPECT_THAT(refusal([](AttachPlan& probe) { probe.probes[0].function.reset(); }), is_refusal);
}

/// Entries and returns of one file are attached by two backends.
TEST_F(UprobeReturn, of_a_file_that_is_written_to_is_let_go_with_the_entries) {
  const auto copy = std::filesystem::temp_directory_path() / ("returns-" + std::to_string(::getpid()));
  std::filesystem::copy_file("/proc/self/exe", copy, std::filesystem::copy_options::overwrite_existing);
  std::vector<PointPattern> both;
  for (const Moment moment : {Moment::entry, Moment::exit})
    both.push_back(
        FunctionPattern{.moment = moment, .target = copy, .name = "usdt::calls::twice_and_one", .ret_probes = false});
  const auto selection = select(both);
  ASSERT_TRUE(selection) << selection.error().message;
  auto made = plan_attach(*selection, kernel_facts(both));
  ASSERT_TRUE(made) << made.error().message;
  auto tracer = Tracer::start(std::move(*made));
  ASSERT_TRUE(tracer) << tracer.error().message;
  EXPECT_EQ(tracer->link().backend_text(), "uprobe_multi (1 site), uprobe_return (1 site)");
  std::filesystem::resize_file(copy, 100);
  for (int i = 0; i < 100 && tracer->link().changes().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(tracer->link().attached(), 0U);
  EXPECT_EQ(tracer->link().backend_text(), "uprobe_multi (0 sites), uprobe_return (0 sites)");
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace usdt::calls
