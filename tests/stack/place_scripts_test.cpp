// SPDX-License-Identifier: BSD-2-Clause
// Functions of scripts among native ones: by where the interpreter's loop has its frames on the stack.
#include "stack/place_scripts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace usdt::stack {
namespace {

/// Native functions, each with its frame at 16 times its address: 1 begins at 16, 2 at 32.
Walked native(std::initializer_list<std::uint64_t> addresses, FrameIssue end = FrameIssue::none) {
  Walked walked{.steps = {}, .end = end};
  for (const std::uint64_t address : addresses) {
    Step& step = walked.steps.emplace_back();
    step.address = address;
    step.stack = 16 * address;
  }
  return walked;
}

usdt_script_frame function(std::uint64_t code, std::uint64_t activation, std::uint32_t flags = 0) {
  return {.code = code, .cookie = 0, .instruction = 0, .activation = activation, .flags = flags, .reserved = 0};
}

/// "1 [7 8] 3": native functions by their addresses, those of scripts in brackets by their codes, issues as they are.
std::string text_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    text += text.empty() ? "" : " ";
    if (place.issue != FrameIssue::none)
      text += place.issue == FrameIssue::script_alone ? "alone" : "apart";
    else if (place.step != nullptr)
      text += place.step->issue != FrameIssue::none ? "issue" : std::to_string(place.step->address);
    else
      for (const usdt_script_frame& each : place.scripts)
        text += (&each == &place.scripts.front() ? "[" : " ") + std::to_string(each.code) +
                (&each == &place.scripts.back() ? "]" : "");
  }
  return text;
}

std::string placed(const Walked& walked, const std::vector<usdt_script_frame>& scripts) {
  return text_of(place_scripts(walked, scripts));
}

/// The functions at odd addresses are calls of the loop.
std::string placed_by_loops(const Walked& walked, const std::vector<usdt_script_frame>& scripts) {
  return text_of(place_by_loops(walked, scripts, [](const Step& step) { return step.address % 2 == 1; }));
}

TEST(PlaceScripts, takes_the_place_of_the_loop_that_runs_them) {
  EXPECT_EQ(placed(native({1, 2, 3, 4}), {function(7, 40), function(8, 40, USDT_SCRIPT_ENTRY)}), "1 [7 8] 3 4");
  EXPECT_EQ(placed(native({1, 2, 3, 4}), {function(7, 16, USDT_SCRIPT_ENTRY), function(8, 63, USDT_SCRIPT_ENTRY)}),
            "[7] 2 [8] 4");
}

TEST(PlaceScripts, leaves_native_functions_where_there_are_none) { EXPECT_EQ(placed(native({1, 2, 3}), {}), "1 2 3"); }

TEST(PlaceScripts, leaves_a_loop_that_runs_none_yet) {
  EXPECT_EQ(placed(native({1, 2, 3}),
                   {function(9, 16, USDT_SCRIPT_ENTRY | USDT_SCRIPT_MARK), function(7, 32, USDT_SCRIPT_ENTRY)}),
            "1 [9] [7] 3")
      << "the mark is no function: whoever shows places passes over it";
}

TEST(PlaceScripts, knows_where_an_activation_is_by_its_mark) {
  EXPECT_EQ(placed(native({1, 2, 3}),
                   {function(7, 0), function(8, 0), function(9, 40, USDT_SCRIPT_ENTRY | USDT_SCRIPT_MARK)}),
            "1 [7 8 9] 3");
}

TEST(PlaceScripts, that_are_beyond_the_copied_stack_come_behind_it) {
  EXPECT_EQ(placed(native({1, 2, 3}, FrameIssue::copy_ended),
                   {function(7, 16, USDT_SCRIPT_ENTRY), function(8, 60), function(9, 60, USDT_SCRIPT_ENTRY)}),
            "[7] 2 3 alone [8 9]");
}

TEST(PlaceScripts, of_a_whole_stack_that_lie_nowhere_on_it_come_apart) {
  EXPECT_EQ(placed(native({1, 2}), {function(7, 4096, USDT_SCRIPT_ENTRY)}), "1 2 apart [7]");
  EXPECT_EQ(placed(native({1, 2}), {function(7, 0, USDT_SCRIPT_ENTRY)}), "1 2 apart [7]");
}

TEST(PlaceScripts, of_several_stacks_come_apart) {
  // A program that goes from one stack to another (greenlets) has activations in no order.
  EXPECT_EQ(placed(native({1, 2, 3}), {function(7, 40, USDT_SCRIPT_ENTRY), function(8, 20, USDT_SCRIPT_ENTRY)}),
            "1 2 3 apart [7] [8]");
  EXPECT_EQ(placed(native({1, 2, 3}), {function(7, 40, USDT_SCRIPT_ENTRY), function(8, 40, USDT_SCRIPT_ENTRY)}),
            "1 2 3 apart [7] [8]");
}

TEST(PlaceScripts, without_frames_of_native_functions_come_apart) {
  Walked walked = native({1, 2, 3}, FrameIssue::chain_ended);
  for (Step& step : walked.steps) step.stack = 0;
  EXPECT_EQ(placed(walked, {function(7, 40, USDT_SCRIPT_ENTRY)}), "1 2 3 apart [7]");
}

TEST(PlaceScripts, whose_outermost_was_not_recorded_are_placed_by_the_others) {
  EXPECT_EQ(placed(native({1, 2, 3}), {function(7, 40), function(8, 40)}), "1 [7 8] 3");
  EXPECT_EQ(placed(native({1, 2, 3}), {function(7, 0), function(8, 0)}), "1 2 3 apart [7 8]");
}

TEST(PlaceScripts, without_marks_takes_the_places_of_as_many_loops) {
  const std::vector<usdt_script_frame> scripts{function(7, 0, USDT_SCRIPT_ENTRY), function(8, 0),
                                               function(9, 0, USDT_SCRIPT_ENTRY)};
  EXPECT_EQ(placed_by_loops(native({2, 1, 4, 3, 6}), scripts), "2 [7] 4 [8 9] 6");
}

TEST(PlaceScripts, without_marks_come_apart_where_loops_are_more_or_fewer) {
  const std::vector<usdt_script_frame> scripts{function(7, 0, USDT_SCRIPT_ENTRY)};
  EXPECT_EQ(placed_by_loops(native({1, 3}), scripts), "1 3 apart [7]");
  EXPECT_EQ(placed_by_loops(native({2, 4}), scripts), "2 4 apart [7]");
  EXPECT_EQ(placed_by_loops(native({1, 2}, FrameIssue::copy_ended), scripts), "1 2 apart [7]")
      << "there may be more of them further up";
}

/// A function of Ruby, with its frame and next instruction at numbers of its own.
usdt_script_frame ruby(std::uint64_t code, std::uint32_t flags = 0) {
  return {.code = code,
          .cookie = 0,
          .instruction = (flags & USDT_SCRIPT_IN_C) != 0 ? 0 : 1000 + code,
          .activation = 100 + code,
          .flags = flags,
          .reserved = 0};
}

/// Native functions that have what the loop keeps of a function in the two registers; 0: they have something else
/// there.
Walked native_with(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> steps,
                   FrameIssue end = FrameIssue::none) {
  Walked walked{.steps = {}, .end = end};
  for (const auto& [address, of_function] : steps) {
    Step& step = walked.steps.emplace_back();
    step.address = address;
    if (of_function != 0) step.kept = {100 + of_function, 1000 + of_function};
  }
  return walked;
}

std::string placed_by_registers(const Walked& walked, const std::vector<usdt_script_frame>& scripts) {
  return text_of(place_by_registers(walked, scripts));
}

TEST(PlaceScriptsByRegisters, takes_the_place_of_the_outermost_that_has_its_frame) {
  const std::vector<usdt_script_frame> scripts{ruby(7, USDT_SCRIPT_IN_C), ruby(8), ruby(9, USDT_SCRIPT_ENTRY), ruby(10),
                                               ruby(11, USDT_SCRIPT_ENTRY)};
  EXPECT_EQ(placed_by_registers(native_with({{1, 8}, {2, 8}, {3, 0}, {4, 10}, {5, 10}, {6, 0}}), scripts),
            "1 [7 8 9] 3 4 [10 11] 6")
      << "functions that the loop calls may have its registers, too";
}

TEST(PlaceScriptsByRegisters, takes_no_place_of_a_function_that_has_one_of_them) {
  Walked walked = native_with({{1, 8}, {2, 8}, {3, 8}});
  walked.steps[2].kept[1] = 5;
  EXPECT_EQ(placed_by_registers(walked, {ruby(8, USDT_SCRIPT_ENTRY)}), "1 [8] 3");
}

TEST(PlaceScriptsByRegisters, goes_on_alone_behind_the_end_of_the_copy) {
  const std::vector<usdt_script_frame> scripts{ruby(8, USDT_SCRIPT_ENTRY), ruby(9, USDT_SCRIPT_ENTRY)};
  EXPECT_EQ(placed_by_registers(native_with({{1, 8}, {2, 0}}, FrameIssue::copy_ended), scripts), "[8] 2 alone [9]");
}

TEST(PlaceScriptsByRegisters, comes_apart_where_nobody_has_its_frame) {
  EXPECT_EQ(placed_by_registers(native_with({{1, 0}, {2, 0}}), {ruby(8, USDT_SCRIPT_ENTRY)}), "1 2 apart [8]");
  EXPECT_EQ(placed_by_registers(native_with({{1, 0}}, FrameIssue::chain_ended), {ruby(8, USDT_SCRIPT_ENTRY)}),
            "1 apart [8]");
}

TEST(PlaceScriptsByRegisters, comes_before_the_next_one_while_it_has_not_begun) {
  const std::vector<usdt_script_frame> scripts{ruby(8, USDT_SCRIPT_ENTRY), ruby(9, USDT_SCRIPT_ENTRY)};
  EXPECT_EQ(placed_by_registers(native_with({{1, 0}, {2, 9}, {3, 0}}), scripts), "1 [8] [9] 3");
}

TEST(PlaceScriptsByRegisters, ends_with_functions_in_c_that_native_code_called) {
  const std::vector<usdt_script_frame> scripts{ruby(8, USDT_SCRIPT_ENTRY), ruby(9, USDT_SCRIPT_IN_C)};
  EXPECT_EQ(placed_by_registers(native_with({{1, 8}, {2, 0}}), scripts), "[8] 2 [9]");
  EXPECT_EQ(placed_by_registers(native_with({{1, 8}, {2, 0}}, FrameIssue::copy_ended), scripts), "[8] 2 alone [9]");
}

}  // namespace
}  // namespace usdt::stack
