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

#include "export/frames.hpp"
#include "export/stack_output.hpp"
#include "usdt/sink.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
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

TEST(Sink, gives_whole_lines_to_a_caller_and_knows_when_it_takes_no_more) {
  std::vector<std::string> given;
  bool takes = true;
  const auto sink = Sink::open("json", {.write = [&](std::string_view text) {
                                 given.emplace_back(text);
                                 return takes;
                               }});
  ASSERT_TRUE(sink);
  EXPECT_EQ((*sink)->file(), std::nullopt);
  const Question question;
  (*sink)->end_untraced(question);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_THAT(given[0], ::testing::StartsWith("{\"v\":1,\"type\":\"summary\","));
  EXPECT_THAT(given[0], EndsWith("}\n"));
  EXPECT_EQ((*sink)->failure(), std::nullopt);

  takes = false;
  const auto refused = (*sink)->sibling();
  refused->end_untraced(question);
  EXPECT_EQ(given.size(), 2U);
  EXPECT_EQ(refused->failure(), std::nullopt) << "as a reader that has seen enough";
}

TEST(Sink, ends_what_its_function_throws_and_says_so) {
  int calls = 0;
  const auto sink = Sink::open("json", {.write = [&](std::string_view) -> bool {
                                 if (++calls == 1) throw std::runtime_error("the queue is closed");
                                 throw 7;
                               }});
  ASSERT_TRUE(sink);
  const Question question;
  (*sink)->end_untraced(question);
  EXPECT_EQ((*sink)->failure(), "the function that it is given to threw: the queue is closed");
  const auto written = (*sink)->check_written();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::io);
  EXPECT_EQ(written.error().message, "the caller: the function that it is given to threw: the queue is closed");
  (*sink)->sibling()->end_untraced(question);
  EXPECT_EQ(calls, 1) << "nor is it called by others that write there";
}

TEST(Sink, there_is_one_for_each_name_in_the_table_and_for_no_other) {
  for (const SinkFormat& format : sink_formats()) {
    const auto sink = Sink::open(format.name, {.write = [](std::string_view) { return true; },
                                               .file = format.is_sent ? "http://127.0.0.1:9" : ""});
    ASSERT_TRUE(sink) << format.name;
    EXPECT_EQ((*sink)->format().name, format.name);
    EXPECT_FALSE(format.description.empty());
  }
  const auto other = Sink::open("jsno", {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "\"jsno\" is no format: text, json, csv, folded, flame, report, pprof, perfetto, prometheus, otlp, "
            "clickhouse, record");
}

TEST(FoldedStacks, take_no_more_new_ones_than_there_is_room_for_and_go_on_with_those_they_know) {
  exports::FoldedStacks stacks(250);
  EXPECT_TRUE(stacks.add("main;b", 1));
  EXPECT_TRUE(stacks.add("main;a", 2.5));
  EXPECT_FALSE(stacks.add("main;c", 1));
  EXPECT_TRUE(stacks.add("main;b", 1));
  EXPECT_THAT(stacks.all(), ::testing::ElementsAre(::testing::Pair("main;a", 2.5), ::testing::Pair("main;b", 2)));
}

TEST(FoldedText, marks_frames_and_keeps_their_separator_out_of_names) {
  Stack stack;
  stack.frames = {{.address = ProcessAddr(4), .kernel = true, .function = "vfs_read"},
                  {.address = ProcessAddr(3), .inlined = true, .function = "inner", .module = "/bin/x"},
                  {.address = ProcessAddr(3), .function = "operator;", .module = "/bin/x"},
                  {.address = ProcessAddr(2), .function = "LazyCompile:~a"},
                  {.address = ProcessAddr(1), .issue = FrameIssue::no_file}};
  EXPECT_EQ(exports::folded_text(stack, exports::FoldedMarks::jit),
            "[unknown]_[j];LazyCompile:~a_[j];operator:;inner_[i];vfs_read_[k]");
  EXPECT_EQ(exports::folded_text(stack), "[unknown];LazyCompile:~a;operator:;inner_[i];vfs_read_[k]");
}

Frame of_javascript() {
  return {.address = ProcessAddr(0x10),
          .function = "total",
          .distance = 0x1c,
          .language = "javascript",
          .source = "/srv/a.js",
          .definition_line = 12,
          .definition_column = 8,
          .tier = CodeTier::optimized};
}

TEST(FrameText, says_that_a_line_is_that_of_a_definition) {
  Frame frame = of_javascript();
  EXPECT_EQ(exports::frame_text(frame), "total+0x1c defined at /srv/a.js:12 (javascript, optimized)");
  frame.definition_line = 0;
  frame.tier = CodeTier::unknown;
  EXPECT_EQ(exports::frame_text(frame), "total+0x1c (javascript)");
  const Frame script{.function = "total", .language = "php", .source = "/srv/a.php", .line = 12};
  EXPECT_EQ(exports::frame_text(script), "total at /srv/a.php:12 (php)") << "the line that runs";
}

TEST(FrameJson, has_the_definition_in_a_field_of_its_own) {
  rapidjson::StringBuffer buffer;
  io::JsonWriter json(buffer);
  exports::write_frames(json, {.frames = {of_javascript()}});
  EXPECT_EQ(std::string_view(buffer.GetString()),
            R"([{"address":"0x10","function":"total","offset":28,"language":"javascript","tier":"optimized",)"
            R"("definition":{"file":"/srv/a.js","line":12,"column":8}}])");
}

TEST(FoldedText, marks_functions_that_a_jit_compiler_made_native) {
  const Stack stack{.frames = {of_javascript(), {.function = "f", .language = "python"}}};
  EXPECT_EQ(exports::folded_text(stack, exports::FoldedMarks::jit), "f;total_[j]");
}

TEST(FoldedSink, refuses_what_is_not_by_a_stack) {
  Question question;
  EXPECT_THAT(check_sink_format("folded", question).error().message, HasSubstr("are of stacks"));
  question.stacks.user_depth = 8;
  EXPECT_TRUE(check_sink_format("folded", question));
  question.view.slowest = 3;
  EXPECT_THAT(check_sink_format("folded", question).error().message, HasSubstr("count hits"));
  question.view = *parse_view({.by = "ustack", .sum = "arg0"});
  EXPECT_TRUE(check_sink_format("folded", question));
  question.view = *parse_view({.by = "ustack", .average = "arg0"});
  EXPECT_THAT(check_sink_format("folded", question).error().message, HasSubstr("for each stack"));
  question.view = *parse_view({.by = "ustack", .log2 = "arg0"});
  EXPECT_THAT(check_sink_format("folded", question).error().message, HasSubstr("for each stack"));
  question.view = *parse_view({.by = "pid"});
  EXPECT_THAT(check_sink_format("folded", question).error().message, HasSubstr("are of stacks"));
}

TEST(ReportSink, takes_whatever_one_question_asks) {
  Question question;
  EXPECT_TRUE(check_sink_format("report", question));
  question.view = *parse_view({.by = "ustack", .average = "arg0"});
  EXPECT_TRUE(check_sink_format("report", question));
}

/// Their answers say whose they are, or are numbers and spans with names.
TEST(Sink, has_the_answers_to_several_questions_in_one_place_unless_its_form_is_of_one) {
  std::vector<std::string_view> of_one;
  for (const SinkFormat& format : sink_formats())
    if (format.of_one_question) of_one.push_back(format.name);
  EXPECT_THAT(of_one, ElementsAre("csv", "folded", "flame", "report", "pprof"));
  Question question;
  question.name = "gc";
  for (const std::string_view form : {"csv", "report"}) EXPECT_TRUE(check_sink_format(form, question)) << form;
}

TEST(CsvSink, says_which_probe_has_columns_of_its_own) {
  Question question;
  question.values.print = *parse_prints({"arg0", "app:work=arg1"});
  EXPECT_THAT(check_sink_format("csv", question).error().message, HasSubstr("and app:work has a list of its own"));
}

TEST(Sink, what_comes_out_of_a_recording_is_not_recorded_again) {
  const auto sink = Sink::open("record", {.write = [](std::string_view) { return true; }});
  ASSERT_TRUE(sink);
  const Question question;
  const AttachPlan plan;
  const Printed printed;
  LiveSurroundings around(question);
  (*sink)->begin({.question = question, .plan = plan, .layout = nullptr, .printed = printed, .around = around});
  EXPECT_FALSE((*sink)->flush());
  (*sink)->flush_rest();
  (*sink)->summary({.probes = {}, .skipped = {}, .missed = 0, .changed = {}});
  EXPECT_EQ((*sink)->failure(), "what comes out of a recording is not recorded again");
}

TEST(Sink, has_one_answer_in_a_form_that_is_of_one_question) {
  const auto first = Sink::open("csv", {.write = [](std::string_view) { return true; }});
  ASSERT_TRUE(first);
  const auto second = (*first)->sibling();
  const Question question;
  const AttachPlan plan;
  const Printed printed;
  LiveSurroundings around(question);
  const AnswerStart start{.question = question, .plan = plan, .layout = nullptr, .printed = printed, .around = around};
  (*first)->begin(start);
  second->begin(start);
  (*first)->begin(start);
  second->flush_rest();
  EXPECT_EQ((*first)->failure(), std::nullopt);
  EXPECT_EQ(second->failure(), "csv is of one question, and this one has the answer to another");
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
