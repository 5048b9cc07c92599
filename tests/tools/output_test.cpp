// SPDX-License-Identifier: BSD-2-Clause
#include "usdt-trace/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "usdt-trace/view_output.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt_trace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// What usdt-trace shows of one event with a stack of `stack_size` bytes, or a negative errno.
struct Shown {
  Shown(Format format, bool in_kernel, int stack_size) {
    Flags flags;
    flags.output.format = format;
    flags.question.stacks.kernel_depth = 1;
    usdt::AttachPlan plan = usdt::testing::synthetic_plan("raw_tp", "sys_enter", usdt::Machine::x86_64, "");
    if (in_kernel) {
      plan.probes[0].file.reset();
      plan.sites[0].point = usdt::TracepointPlace{plan.functions.add({.name = "sys_enter", .module = {}})};
    }
    usdt::EventLayout layout = usdt::testing::layout_of(plan);
    layout.stack_depth = flags.question.stacks.kernel_depth;
    std::vector<std::uint64_t> record(layout.record_size() / sizeof(std::uint64_t));
    reinterpret_cast<usdt_event*>(record.data())->stack_size = stack_size;
    const auto event = usdt::Event::from(std::as_bytes(std::span(record)), plan, layout);
    const std::string path = ::testing::TempDir() + "output_test." + std::to_string(::getpid());
    auto out = usdt::tools::Stream::create(path);
    EXPECT_TRUE(out);
    const usdt::Printed printed{.lists = {{}}, .of_probe = {0}};
    usdt::LiveSurroundings around(flags.question);
    const auto output = line_output(plan, printed, flags, around, *out);
    around.begin(*event);
    output->event(*event);
    EXPECT_EQ(output->write_out(nullptr), Output::Flushed::all);
    std::ostringstream written;
    written << std::ifstream(path).rdbuf();
    text = written.str();
    ::unlink(path.c_str());
    unreadable = output->unreadable();
  }

  std::string text;
  std::uint64_t unreadable;
};

TEST(Output, a_stack_that_could_not_be_read_is_an_error_and_not_an_empty_one) {
  const Shown json(Format::json, true, -EFAULT);
  EXPECT_THAT(json.text, EndsWith("\"kstack\":{\"error\":\"the kernel's stack: Bad address\"}}\n"));
  EXPECT_EQ(json.unreadable, 1U);
  const Shown text(Format::text, true, -EFAULT);
  EXPECT_THAT(text.text, EndsWith("\n    <the kernel's stack: Bad address>\n"));
  EXPECT_EQ(text.unreadable, 1U);
}

TEST(Output, stacks_are_of_hits_in_the_kernel) {
  EXPECT_THAT(Shown(Format::json, true, 8).text, EndsWith("\"kstack\":[\"0x0\"]}\n"));
  EXPECT_THAT(Shown(Format::json, false, 0).text, Not(HasSubstr("kstack")));
}

TEST(EstimatedText, says_how_far_off_the_numbers_of_a_table_may_be_in_both_directions) {
  usdt::Overhead overhead;
  overhead.looked_at = 0.001;
  overhead.own_share = 0.9;
  EXPECT_THAT(estimated_text(overhead), Not(HasSubstr("large")));
  overhead.own_share = 0.5;
  EXPECT_THAT(estimated_text(overhead), HasSubstr("within 33 %"));
  overhead.own_share = 0.09;  // 4,077,664,000 hits were told as 15,686,272
  EXPECT_THAT(estimated_text(overhead), HasSubstr("4 times too large, and no telling how many times too small"));
}

}  // namespace
}  // namespace usdt_trace
