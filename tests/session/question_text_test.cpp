// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/question_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/places.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Options with their values; a flag has an empty one.
using Options = std::vector<std::pair<std::string, std::string>>;

/// The text about a point with these options; the last error of an option that was not taken.
Result<QuestionText> text_about(const std::string& point, const Options& options, std::string_view prefix = {}) {
  QuestionText text(prefix);
  text.points = {point};
  for (const auto& [name, value] : options)
    if (auto set = text.set(name, value); !set) return fail(set.error());
  return text;
}

Result<Question> question_about(const std::string& point, const Options& options, std::string_view prefix = {}) {
  auto text = text_about(point, options, prefix);
  return text ? parse_question(*text) : fail(text.error());
}

std::string complaint_about(const std::string& point, const Options& options, std::string_view prefix = {}) {
  const auto question = question_about(point, options, prefix);
  return question ? "nothing is wrong" : question.error().message;
}

/// A message as it is without a prefix before the names of options.
std::string without_dashes(std::string message) {
  for (std::size_t at = message.find("--"); at != message.npos; at = message.find("--", at)) message.erase(at, 2);
  return message;
}

/// A value of the form that an option takes.
std::string value_of(const QuestionOption& option) {
  switch (option.kind) {
    case OptionKind::flag:
      return {};
    case OptionKind::number:
      return std::to_string(option.most);
    case OptionKind::time:
      return "500ms";
    case OptionKind::processes:
      return "1,2";
    case OptionKind::choice:
      return std::string(option.words.back());
    case OptionKind::text:
      return "arg0";
  }
  return {};
}

TEST(QuestionOptions, have_one_name_each_and_stand_in_groups) {
  std::set<std::string_view> names, groups;
  std::string_view group;
  for (const QuestionOption& option : question_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(group == option.group || groups.insert(option.group).second) << option.name << " is apart";
    group = option.group;
    EXPECT_FALSE(option.description.empty()) << option.name;
    EXPECT_EQ(option.value_name.empty(), option.kind == OptionKind::flag) << option.name;
    EXPECT_EQ(option.words.empty(), option.kind != OptionKind::choice && option.name != "ustack") << option.name;
    EXPECT_EQ(find_question_option(option.name), &option);
    EXPECT_TRUE(option.usual_value.empty() || check_option_value(option, option.usual_value)) << option.name;
  }
  EXPECT_GT(names.size(), 55U);
  EXPECT_EQ(find_question_option("no-such"), nullptr);
}

TEST(QuestionOptions, can_be_set_each) {
  for (const QuestionOption& option : question_options()) {
    const auto text = text_about("app:work", {{std::string(option.name), value_of(option)}});
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_TRUE(text->has(option.name));
    EXPECT_EQ(text->values(option.name).empty(), option.kind == OptionKind::flag) << option.name;
  }
}

TEST(QuestionText, has_the_values_of_options_in_their_order) {
  const auto text = text_about("app:work", {{"print", "arg0"}, {"pid", "3,4"}, {"print", "app:x=arg1"}, {"pid", "5"}});
  ASSERT_TRUE(text);
  EXPECT_THAT(text->values("print"), ElementsAre("arg0", "app:x=arg1"));
  EXPECT_THAT(text->values("pid"), ElementsAre("3", "4", "5"));
  EXPECT_THAT(text->values("where"), IsEmpty());
  EXPECT_FALSE(text->has("where"));
}

TEST(QuestionText, sets_options_without_a_value_where_they_have_a_bare_one) {
  const auto text = text_about("app:work", {{"kstack", ""}, {"ustack", ""}, {"in-flight", ""}});
  ASSERT_TRUE(text);
  EXPECT_THAT(text->values("kstack"), ElementsAre(std::to_string(AskedStacks::kUsualKernelDepth)));
  EXPECT_THAT(text->values("ustack"), ElementsAre("dwarf"));
  EXPECT_THAT(text->values("in-flight"), ElementsAre("100"));
}

TEST(QuestionText, names_the_option_and_the_value_that_it_does_not_take) {
  EXPECT_EQ(complaint_about("app:work", {{"top", "0"}}, "--"), "--top: '0' is not a whole number from 1 to 4294967295");
  EXPECT_EQ(complaint_about("app:work", {{"top", "7x"}}), "top: '7x' is not a whole number from 1 to 4294967295");
  EXPECT_THAT(complaint_about("app:work", {{"duration", "5 min"}}), StartsWith("duration: '5 min' is not a time"));
  EXPECT_EQ(complaint_about("app:work", {{"pid", "3,0"}}), "pid: '0' is not a process id");
  EXPECT_EQ(complaint_about("app:work", {{"strings", "yes"}}), "strings: 'yes' is none of: auto, never");
  EXPECT_EQ(complaint_about("app:work", {{"where", ""}}), "where: its value is empty");
  EXPECT_THAT(complaint_about("app:work", {{"count", "3"}}), StartsWith("count: '3'"));
  EXPECT_EQ(complaint_about("app:work", {{"by", "pid"}, {"by", "tid"}}, "--"), "--by takes one KEYS");
}

TEST(QuestionText, stays_as_it_was_after_an_error) {
  QuestionText text;
  ASSERT_TRUE(text.set("pid", "3"));
  EXPECT_EQ(text.set("pid", "4,x").error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(text.values("pid"), ElementsAre("3"));
  EXPECT_FALSE(text.set("top", "0"));
  EXPECT_FALSE(text.has("top"));
}

TEST(QuestionText, proposes_options_with_names_that_are_nearly_so) {
  QuestionText text;
  const auto set = text.set("interwal", "1");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::not_found);
  EXPECT_EQ(set.error().message, "there is no option 'interwal'; did you mean interval?");
  EXPECT_EQ(text.set("nothing-like-it").error().message, "there is no option 'nothing-like-it'");
}

TEST(ParseQuestion, takes_values_and_limits) {
  const auto question = question_about("kfunc:vfs_read", {{"where", "pid == 1"},
                                                          {"print", "count"},
                                                          {"depth", "3"},
                                                          {"string-size", "50"},
                                                          {"strings", "never"},
                                                          {"kstack", ""},
                                                          {"ustack", "fp,20"},
                                                          {"max-events", "7"},
                                                          {"duration", "1.5s"},
                                                          {"sample", "1/100"},
                                                          {"max-rate", "1000/s"}});
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->points.patterns.size(), 1U);
  EXPECT_NE(question->where, nullptr);
  EXPECT_EQ(question->values.print.rest.size(), 1U);
  EXPECT_EQ(question->values.depth, 3U);
  EXPECT_EQ(question->values.string_size, 50U);
  EXPECT_EQ(question->values.likely_texts, false);
  EXPECT_EQ(question->stacks.kernel_depth, 16U);
  EXPECT_EQ(question->stacks.user_depth, 20U);
  EXPECT_EQ(question->stacks.user_method, StackMethod::frame_pointers);
  EXPECT_EQ(question->limits.max_events, 7U);
  EXPECT_EQ(question->limits.seconds, 1.5);
  EXPECT_EQ(question->limits.sample, 100U);
  EXPECT_EQ(question->limits.max_rate, 1000U);
}

TEST(ParseQuestion, takes_processes_following_and_ways_to_attach) {
  const auto question = question_about("app:work", {{"pid", "7,8,7"},
                                                    {"children", ""},
                                                    {"no-follow", ""},
                                                    {"max-followed", "9"},
                                                    {"max-overhead", "5%"},
                                                    {"backend", "perf_uprobe"},
                                                    {"backend", "kprobe_multi"},
                                                    {"carrier", "table"},
                                                    {"max-programs", "3"},
                                                    {"no-wait-for-pages", ""},
                                                    {"allow-unsafe-nop5", ""},
                                                    {"ring-size", "4"},
                                                    {"skip-unknown", ""}});
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_THAT(question->processes.pids, ElementsAre(7, 8));
  EXPECT_TRUE(question->processes.children);
  EXPECT_FALSE(question->following.follow);
  EXPECT_EQ(question->following.max_followed, 9U);
  EXPECT_EQ(question->limits.max_overhead, 0.05);
  EXPECT_EQ(question->attaching.backend, Backend::perf_uprobe);
  EXPECT_EQ(question->attaching.kernel_backend, Backend::kprobe_multi);
  EXPECT_EQ(question->attaching.carrier, Carrier::table);
  EXPECT_EQ(question->attaching.max_programs, 3U);
  EXPECT_EQ(question->attaching.wait_for_pages, false);
  EXPECT_TRUE(question->attaching.allow_unsafe_nop5);
  EXPECT_EQ(question->attaching.ring_megabytes, 4U);
  EXPECT_TRUE(question->points.skip_unknown);
}

TEST(ParseQuestion, takes_groups_of_processes_and_waits_for_what_is_not_there) {
  const auto question = question_about(
      "app:work", {{"cgroup", "/a"}, {"cgroup", "/b"}, {"container", "0a"}, {"wait", ""}, {"hold-exec", ""}});
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_THAT(question->processes.cgroups, ElementsAre("/a", "/b"));
  EXPECT_THAT(question->processes.containers, ElementsAre("0a"));
  EXPECT_TRUE(question->following.wait);
  EXPECT_TRUE(question->following.hold_exec);
}

TEST(ParseQuestion, takes_views_and_recordings) {
  const auto latency =
      question_about("app:a ~~ app:b", {{"latency", ""}, {"by", "pid"}, {"pair-by", "arg0"}, {"interval", "2"}});
  ASSERT_TRUE(latency) << latency.error().message;
  EXPECT_TRUE(latency->view.latency);
  EXPECT_EQ(latency->view.interval, 2.0);
  EXPECT_EQ(latency->points.pairing.begin.size(), 1U);
  const auto stacks = question_about("kfunc:vfs_read", {{"folded", ""}});
  ASSERT_TRUE(stacks) << stacks.error().message;
  EXPECT_TRUE(stacks->view.kernel_stacks) << "the keys that hits in the kernel have by default";
  const auto recording = question_about("app:a", {{"dump-on", "arg0 > 3"}, {"last", "10s"}, {"record", "x.rec"}});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->recording.file, "x.rec");
  EXPECT_EQ(recording->recording.last, std::chrono::seconds(10));
  EXPECT_NE(recording->recording.dump_on, nullptr);
  EXPECT_EQ(question_about("app:a", {{"dump-on", "exit"}, {"last", "10s"}, {"record", "x"}})->recording.dump_on,
            nullptr);
}

TEST(ParseQuestion, takes_forms_of_lines) {
  const auto question = question_about("app:a", {{"format-string", "%{comm} %{arg0}"}});
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_FALSE(question->values.format.empty());
  EXPECT_EQ(question->values.print.rest.size(), 1U);
  EXPECT_THAT(complaint_about("app:a", {{"format-string", "%{arg0}"}, {"print", "arg1"}}),
              StartsWith("format-string names its values in place"));
}

TEST(ParseQuestion, makes_functions_mean_what_options_say) {
  const auto question = question_about(
      "ucall:./app:work", {{"no-inline", ""}, {"ret-probes", ""}, {"args", "i32, str"}, {"debuginfod", ""}});
  ASSERT_TRUE(question) << question.error().message;
  const auto& function = std::get<FunctionPattern>(question->points.patterns.front());
  EXPECT_FALSE(function.inlined);
  EXPECT_EQ(function.ret_probes, true);
  EXPECT_TRUE(function.debuginfod);
  EXPECT_TRUE(question->points.debuginfod);
  EXPECT_EQ(function.args.size(), 2U);
  EXPECT_EQ(complaint_about("ucall:./app:work", {{"no-ret-probes", ""}, {"ret-probes", ""}}, "--"),
            "--ret-probes excludes --no-ret-probes");
}

TEST(ChooseFunctions, leaves_patterns_of_other_points_as_they_are) {
  QuestionText text;
  ASSERT_TRUE(text.set("no-inline"));
  std::vector<PointPattern> patterns = {*parse_pattern("app:work"), *parse_pattern("uprobe:./app:work")};
  ASSERT_TRUE(choose_functions(text, patterns));
  EXPECT_TRUE(std::holds_alternative<ProbePattern>(patterns[0]));
  EXPECT_FALSE(std::get<FunctionPattern>(patterns[1]).inlined);
  ASSERT_TRUE(text.set("args", "i32, nothing"));
  EXPECT_EQ(choose_functions(text, patterns).error().kind, ErrorKind::syntax);
}

TEST(ParseQuestion, refuses_parts_that_do_not_go_together) {
  const std::vector<std::pair<Options, std::string>> wrong = {
      {{{"where", "arg0 >"}}, "--where: "},
      {{{"pair-by", "arg0"}}, "--pair-by is about spans"},
      {{{"ustack", "513"}}, "--ustack: \"513\" is neither a number up to 512"},
      {{{"ustack", "fp,"}}, "--ustack: \"fp,\" is neither"},
      {{{"ustack-size", "6"}}, "--ustack-size: not a multiple of 4 KiB"},
      {{{"sample", "1/"}}, "--sample: \"1/\" is not 1/N"},
      {{{"max-rate", "1000"}}, "--max-rate: \"1000\" is not N/s"},
      {{{"max-overhead", "0"}}, "--max-overhead: \"0\" is not a number of percent"},
      {{{"last", "1s"}}, "--last goes with --record FILE"},
      {{{"record", "x"}, {"last", "25h"}}, "--last: \"25h\" is no time up to 24h"},
      {{{"record", "x"}, {"dump-on", "exit"}}, "--dump-on goes with --last"},
      {{{"count", ""}, {"strings", "auto"}}, "--strings is of events"},
      {{{"top", "3"}}, "--top is about a table"},
      {{{"wait-for-pages", ""}, {"no-wait-for-pages", ""}}, "--wait-for-pages excludes --no-wait-for-pages"},
      {{{"replay", "x"}, {"pid", "1"}}, "--pid does not go with --replay: --where 'pid == PID' chooses"},
      {{{"replay", "x"}, {"depth", "2"}}, "--depth does not go with --replay: names of probes"},
  };
  for (const auto& [options, complaint] : wrong) {
    EXPECT_THAT(complaint_about("app:work", options, "--"), StartsWith(complaint));
    EXPECT_THAT(complaint_about("app:work", options), StartsWith(without_dashes(complaint)));
  }
}

TEST(ParseQuestion, wants_points_unless_a_recording_has_them) {
  QuestionText text;
  EXPECT_THAT(parse_question(text).error().message, StartsWith("name a probe to trace"));
  ASSERT_TRUE(text.set("replay", "x.rec"));
  EXPECT_TRUE(parse_question(text));
  text.command = {"ls"};
  EXPECT_THAT(parse_question(text).error().message, StartsWith("a command does not go with replay"));
  EXPECT_EQ(question_about("nothing", {}).error().kind, ErrorKind::syntax);
}

/// The words of a command line as a shell makes them: without quotes, up to a pipe.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words(1);
  char quote = '\0';
  for (const char c : line) {
    if (quote == '\0' && c == '|') break;
    if (c == quote)
      quote = '\0';
    else if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (quote == '\0' && c == ' ' && !words.back().empty())
      words.emplace_back();
    else if (quote != '\0' || c != ' ')
      words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// The words of the lines of a page that run usdt-trace, behind the name of the program.
std::vector<std::vector<std::string>> lines_of_page(const char* name) {
  std::ifstream file(test::source_dir() / "docs" / name);
  std::vector<std::vector<std::string>> lines;
  std::string line, more;
  while (std::getline(file, line)) {
    const std::size_t program = line.find("usdt-trace ");
    if (!line.starts_with("# ") || program == line.npos) continue;
    while (line.ends_with('\\') && std::getline(file, more)) line.replace(line.size() - 1, 1, more);
    lines.push_back(words_of(line.substr(program + 11)));
  }
  return lines;
}

/// The option that a word of a command line names; null: it names a point.
const QuestionOption* option_of_word(std::string_view word) {
  if (word.starts_with("--")) return find_question_option(word.substr(2, word.find('=') - 2));
  for (const QuestionOption& option : question_options())
    if (word.size() == 2 && word[0] == '-' && word.substr(1) == option.short_name) return &option;
  return nullptr;
}

/// What the words of a command line ask.
Result<QuestionText> text_of_words(const std::vector<std::string>& words) {
  QuestionText text("--");
  for (std::size_t n = 0; n < words.size(); ++n) {
    const std::string& word = words[n];
    if (word == "--") {
      text.command.assign(words.begin() + static_cast<std::ptrdiff_t>(n) + 1, words.end());
      return text;
    }
    if (word == "--export") {  // where answers go is no part of a question
      ++n;
      continue;
    }
    const QuestionOption* const option = option_of_word(word);
    if (option == nullptr) {
      text.points.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const bool beside = option->kind != OptionKind::flag && option->bare_value.empty() && equals == word.npos;
    const std::string value = beside ? words.at(++n) : equals == word.npos ? "" : word.substr(equals + 1);
    if (auto set = text.set(option->name, value); !set) return fail(set.error());
  }
  return text;
}

TEST(ParseQuestion, takes_the_questions_of_the_cookbook) {
  const auto lines = lines_of_page("cookbook.md");
  EXPECT_GT(lines.size(), 25U);
  for (const auto& words : lines) {
    const auto text = text_of_words(words);
    ASSERT_TRUE(text) << text.error().message;
    const auto question = parse_question(*text);
    EXPECT_TRUE(question) << words.front() << ": " << question.error().message;
  }
}

}  // namespace
}  // namespace usdt
