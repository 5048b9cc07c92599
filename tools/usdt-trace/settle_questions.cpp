// SPDX-License-Identifier: BSD-2-Clause
#include "settle_questions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/conditions.hpp"
#include "notice.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::Script;
using usdt::tools::ScriptQuestion;

/// Whether the probes of a question fire in what is traced, as far as it is known.
struct Firing {
  bool never = false;
  std::string why = {};  ///< in words; empty: nothing is known against it
};

Firing look_at(const ScriptQuestion& question, const usdt::AskedProcesses& processes) {
  using usdt::tools::Fires;
  if (question.fires_only_if.empty()) return {};
  const std::string when = usdt::tools::describe(question.fires_only_if);
  if (!processes.command.empty()) {
    // It may start others in another way, so that nothing is sure.
    const Fires fires = usdt::tools::judge(question.fires_only_if, usdt::tools::subject_of(processes.command));
    if (fires == Fires::yes) return {};
    const std::string_view but = fires == Fires::no ? ", and the command is not" : "";
    return {.why = fmt::format("its probes fire only if {}{}", when, but)};
  }
  std::vector<pid_t> silent;
  std::size_t sure = 0;
  for (const pid_t pid : processes.pids) {
    const Fires fires = usdt::tools::judge(question.fires_only_if, usdt::tools::subject_of(pid));
    if (fires == Fires::no) silent.push_back(pid);
    sure += fires == Fires::yes ? 1 : 0;
  }
  if (sure > 0 && sure == processes.pids.size()) return {};
  if (silent.empty()) return {.why = fmt::format("its probes fire only if {}", when)};
  return {.never = silent.size() == processes.pids.size() && !processes.children,
          .why = fmt::format("its probes do not fire in process {}: only if {}", fmt::join(silent, ", "), when)};
}

}  // namespace

void leave_chosen(Script& script, const std::vector<std::string>& chosen) {
  std::vector<ScriptQuestion> left;
  const auto take = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(left, name, &ScriptQuestion::name) == left.end())
      left.push_back(*std::ranges::find(script.questions, name, &ScriptQuestion::name));
  };
  for (const std::string& name : chosen) take(name);
  for (std::size_t n = 0; n < chosen.size(); ++n) take(std::string(left[n].otherwise));
  script.questions = std::move(left);
}

std::vector<Flags> settle_questions(const Script& script, const std::vector<std::string>& chosen,
                                    const std::vector<std::string>& given, const std::vector<Flags>& made) {
  const std::string without = given.empty() ? "" : fmt::format(", without --{}", fmt::join(given, ", --"));
  std::vector<Flags> asked;
  const auto index_of = [&](const std::string& name) {
    return std::ranges::find(script.questions, name, &ScriptQuestion::name) - script.questions.begin();
  };
  const auto ask = [&](const Flags& flags) {
    const auto is_it = [&](const Flags& other) { return other.question.name == flags.question.name; };
    if (std::ranges::none_of(asked, is_it)) asked.push_back(flags);
  };
  for (const std::string& name : chosen) {
    const ScriptQuestion& question = script.questions[index_of(name)];
    const Flags& flags = made[index_of(name)];
    const bool is_traced = flags.question.recording.replay.empty();
    const Firing firing = is_traced ? look_at(question, flags.question.processes) : Firing();
    if (is_traced && !question.cost.empty()) notice(flags, question.cost);
    if (!firing.why.empty()) notice(flags, firing.why);
    const bool is_replaced = firing.never && !question.otherwise.empty();
    if (is_replaced) notice(flags, fmt::format("'{}' is asked instead{}", question.otherwise, without));
    ask(is_replaced ? made[index_of(question.otherwise)] : flags);
  }
  return asked;
}

}  // namespace usdt_trace
