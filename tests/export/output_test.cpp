// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "usdt/sink.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// What a sink shows of one event with a stack of `stack_size` bytes, or a negative errno.
struct Shown {
  Shown(std::string_view format, bool in_kernel, int stack_size) {
    Question question;
    question.stacks.kernel_depth = 1;
    AttachPlan plan = testing::synthetic_plan("raw_tp", "sys_enter", Machine::x86_64, "");
    if (in_kernel) {
      plan.probes[0].file.reset();
      plan.sites[0].point = TracepointPlace{plan.functions.add({.name = "sys_enter", .module = {}})};
    }
    EventLayout layout = testing::layout_of(plan);
    layout.stack_depth = question.stacks.kernel_depth;
    std::vector<std::uint64_t> record(layout.record_size() / sizeof(std::uint64_t));
    reinterpret_cast<usdt_event*>(record.data())->stack_size = stack_size;
    const auto event = Event::from(std::as_bytes(std::span(record)), plan, layout);
    const std::string path = ::testing::TempDir() + "output_test." + std::to_string(::getpid());
    const auto sink = Sink::open(format, {.file = path});
    if (!sink) throw std::runtime_error(sink.error().message);
    const Printed printed{.lists = {{}}, .of_probe = {0}};
    LiveSurroundings around(question);
    (*sink)->begin({.question = question, .plan = plan, .layout = &layout, .printed = printed, .around = around});
    around.begin(*event);
    (*sink)->event(*event);
    EXPECT_TRUE((*sink)->flush());
    EXPECT_EQ((*sink)->failure(), std::nullopt);
    std::ostringstream written;
    written << std::ifstream(path).rdbuf();
    text = written.str();
    ::unlink(path.c_str());
    unreadable = (*sink)->unreadable();
  }

  std::string text;
  std::uint64_t unreadable;
};

TEST(Sink, a_stack_that_could_not_be_read_is_an_error_and_not_an_empty_one) {
  const Shown json("json", true, -EFAULT);
  EXPECT_THAT(json.text, EndsWith("\"kstack\":{\"error\":\"the kernel's stack: Bad address\"}}\n"));
  EXPECT_EQ(json.unreadable, 1U);
  const Shown text("text", true, -EFAULT);
  EXPECT_THAT(text.text, EndsWith("\n    <the kernel's stack: Bad address>\n"));
  EXPECT_EQ(text.unreadable, 1U);
}

TEST(Sink, stacks_are_of_hits_in_the_kernel) {
  EXPECT_THAT(Shown("json", true, 8).text, EndsWith("\"kstack\":[\"0x0\"]}\n"));
  EXPECT_THAT(Shown("json", false, 0).text, Not(HasSubstr("kstack")));
}

TEST(EstimatedText, says_how_far_off_the_numbers_of_a_table_may_be_in_both_directions) {
  Overhead overhead;
  overhead.looked_at = 0.001;
  overhead.own_share = 0.9;
  EXPECT_THAT(estimated_text(overhead), Not(HasSubstr("large")));
  overhead.own_share = 0.5;
  EXPECT_THAT(estimated_text(overhead), HasSubstr("within 33 %"));
  overhead.own_share = 0.09;  // 4,077,664,000 hits were told as 15,686,272
  EXPECT_THAT(estimated_text(overhead), HasSubstr("4 times too large, and no telling how many times too small"));
}

}  // namespace
}  // namespace usdt
