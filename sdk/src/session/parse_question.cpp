// SPDX-License-Identifier: BSD-2-Clause
// Makes a question of a text: each option that is set does its part, then come the parts that are made of several.
#include <fmt/format.h>

#include <utility>

#include "base/try.hpp"
#include "session/option_names.hpp"
#include "session/option_rows.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using session::OptionRow;
using session::QuestionDraft;

/// Puts all options that are set into the draft.
Result<void> take_options(QuestionDraft& draft, const QuestionText& text) {
  for (const OptionRow& row : session::option_rows()) {
    if (!text.has(row.option.name)) continue;
    if (auto taken = row.take(draft, {row.option, text.values(row.option.name), text.option_prefix()}); !taken)
      return taken;
  }
  return {};
}

void apply_functions(const session::FunctionChoice& choice, std::vector<PointPattern>& patterns) {
  for (PointPattern& pattern : patterns) {
    auto* const function = std::get_if<FunctionPattern>(&pattern);
    if (function == nullptr) continue;
    function->inlined = choice.inlined;
    function->debuginfod = choice.debuginfod;
    if (choice.ret_probes) function->ret_probes = choice.ret_probes;
    function->args = choice.args;
  }
}

/// Returns what does for a recording what an option does for a trace.
std::string_view instead_in_replay(std::string_view name) {
  if (name == "pid") return "--where 'pid == PID' chooses among its events";
  if (name == "ustack" || name == "kstack")
    return "events have the stacks that they were recorded with, and are shown with them";
  if (name == "rate") return "its events have times of their own, and are read at once";
  return "names of probes and --where choose among its events";
}

/// Checks that nothing that is about tracing alone is asked of a recording.
Result<void> check_replay(const QuestionText& text) {
  if (!text.has("replay")) return {};
  const std::string_view prefix = text.option_prefix();
  for (const QuestionOption& option : question_options()) {
    if (option.of_replay || !text.has(option.name)) continue;
    return session::refuse(
        fmt::format("--{} does not go with --replay: {}", option.name, instead_in_replay(option.name)), prefix);
  }
  return text.command.empty() ? Result<void>()
                              : session::refuse("a command does not go with --replay, which traces nothing", prefix);
}

/// Checks that there is something to ask about.
Result<void> check_points(const QuestionText& text) {
  if (!text.points.empty() || text.has("replay")) return {};
  return fail(ErrorKind::invalid_argument, "name a probe to trace; usdt-list shows which there are");
}

/// Checks what cannot be seen from a question any more.
Result<void> check_given(const QuestionText& text, const Question& question) {
  if (question.view.no_events() && text.has("strings"))
    return session::refuse("--strings is of events: --count and tables show none", text.option_prefix());
  return {};
}

Result<void> make_points(QuestionDraft& draft, const QuestionText& text) {
  auto named = TRY(parse_points(text.points));
  AskedPoints& points = draft.question.points;
  points.patterns = std::move(named.patterns);
  points.ends = std::move(named.ends);
  points.debuginfod = draft.functions.debuginfod;
  for (auto* patterns : {&points.patterns, &points.ends}) apply_functions(draft.functions, *patterns);
  return {};
}

Result<void> make_view(QuestionDraft& draft, const QuestionText& text) {
  ViewText& asked = draft.view;
  if (asked.folded && asked.by.empty())
    asked.by = all_in_kernel(draft.question) ? "comm, ustack, kstack" : "comm, ustack";
  auto view = TRY(parse_view(asked, text.option_prefix()));
  draft.question.view = std::move(view);
  return {};
}

}  // namespace

Result<Question> parse_question(const QuestionText& text) {
  for (const auto& checked : {check_replay, check_points}) TRY(checked(text));
  QuestionDraft draft;
  Question& question = draft.question;
  question.option_prefix = text.option_prefix();
  question.processes.command = text.command;
  for (const auto& part : {take_options, make_points, make_view}) TRY(part(draft, text));
  complete_question(question);
  TRY(check_given(text, question));
  TRY(check_question(question));
  return std::move(question);
}

Result<void> choose_functions(const QuestionText& text, std::vector<PointPattern>& patterns) {
  QuestionDraft draft;
  TRY(take_options(draft, text));
  apply_functions(draft.functions, patterns);
  return {};
}

}  // namespace v1
}  // namespace usdt
