// SPDX-License-Identifier: BSD-2-Clause
// From a question to a plan: finds what it names and plans how to attach that. Neither needs privilege, and nothing is
// attached (tracer.hpp does that with the plan).
//
//     usdt::QuestionPlanner planner(question, {.pids = {4711}});
//     const auto planned = planner.plan();
//     for (const auto& notice : planner.take_notices()) log(notice.text);
//
// A planner is used by one thread at a time, and has a copy of its question. The plans that it makes are the caller's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "usdt/features.hpp"
#include "usdt/kernel.hpp"
#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/question.hpp"
#include "usdt/result.hpp"
#include "usdt/select.hpp"

namespace usdt {
inline namespace v1 {

/// Something that people should know, although nothing failed.
struct SessionNotice {
  /// The subject of a notice.
  enum class Kind : std::uint8_t {
    // Found and planned:
    unmatched,        ///< a pattern means nothing, beside others that do
    copies,           ///< functions have copies in others
    file,             ///< something in a file could not be read
    missing,          ///< points may be missing
    missing_process,  ///< a process that is named has ended, beside others that live
    left_out,         ///< points are left out, and why
    incomplete,       ///< the same in one line, where an answer is about all points together
    shortened,        ///< not all values of a site are read
    unused_print,     ///< a print list is for no probe yet
    recording,        ///< how a recording was made, and what was said then
    // During a trace:
    waiting,      ///< something is waited for
    following,    ///< the means by which a follower learns of files
    scope,        ///< fewer processes are traced than were named
    attached,     ///< how much is traced
    others_pay,   ///< processes that are not traced have the breakpoints
    followed,     ///< something came, and is traced or not
    released,     ///< files that are gone were detached
    changed,      ///< a file that is traced changed
    moved_code,   ///< a process runs other memory in the place of a file
    given_up,     ///< more calls are open than there is room for
    interpreter,  ///< a process runs an interpreter whose functions are not among the stacks
    cgroup,       ///< a cgroup went, or came again
    detaching,    ///< the end takes a while
    ended,        ///< something to say at the end
  };
  Kind kind = Kind::missing;
  std::string subject = {};  ///< the pattern, file or point that it is about; empty: several
  std::string text = {};     ///< a line for people
  std::string detail = {};   ///< the line for people who want to know how, too; empty: it is the same line

  /// Whether it says what became of a trace while it ran: recordings keep such notices.
  [[nodiscard]] bool is_of_trace() const noexcept;
};

/// The processes that a question is about, as they were found. Nothing of these: everybody.
struct Subjects {
  std::vector<pid_t> pids = {};                       ///< those of AskedProcesses::pids that live
  std::optional<std::filesystem::path> program = {};  ///< the command's
  std::vector<std::filesystem::path> cgroups = {};    ///< directories
};

/// Finds the processes that a question is about, where nothing is waited for. Errors: not_found (none of the processes
/// lives; no such command, cgroup or container), invalid_argument (find_container()).
[[nodiscard]] Result<Subjects> find_subjects(const AskedProcesses& processes);

/// The points that a question names, as they were found.
struct FoundPoints {
  SearchScope scope = {};
  Selection selection = {};
  std::optional<Selection> ends = {};  ///< of spans

  /// Whether nothing was found; of spans, nothing of one side.
  [[nodiscard]] bool lacks_something() const;
};

/// A plan, and by which list each of its probes is shown.
struct PlannedQuestion {
  AttachPlan plan;
  Printed printed = {};
};

/// The plan of a trace that runs, for plans of what comes.
struct TracedSoFar {
  const AttachPlan& plan;
  const Printed& printed;
};

/// Plans one question.
class QuestionPlanner {
 public:
  /// The reason to plan. A plan that is only explained is one that nobody waits for, and without privilege.
  enum class Purpose : std::uint8_t { trace, explain };

  /// Plans `question`, which is complete and checked, about `subjects`.
  QuestionPlanner(Question question, Subjects subjects, Purpose purpose = Purpose::trace);

  /// Finds what the question names. Errors: as select(); not_found (no process that could be looked at).
  [[nodiscard]] Result<FoundPoints> find();
  /// Plans what was found. Errors: as plan_attach() and plan_spans(); invalid_argument (a print list names what is not
  /// there); no_permission (the kernel does not tell this user what it can do).
  [[nodiscard]] Result<PlannedQuestion> plan(const FoundPoints& found);
  /// Does both.
  [[nodiscard]] Result<PlannedQuestion> plan();

  /// Finds what there is already of a question that waits (AskedFollowing::wait); of spans maybe one side.
  [[nodiscard]] FoundPoints find_beginning() const;
  /// Adds to `found` what the question names in a file that came.
  void add_file(ProbeFile file, FoundPoints& found) const;
  /// Plans what was waited for. Errors as plan(), but that a print list need not be for a probe that is there.
  [[nodiscard]] Result<PlannedQuestion> plan_first(const FoundPoints& found);
  /// Plans a file that came while the trace runs. Errors as plan_first(); not_supported (one side of spans).
  [[nodiscard]] Result<PlannedQuestion> plan_more(ProbeFile file, const TracedSoFar& before);

  /// The running kernel, as plans of this question see it.
  [[nodiscard]] KernelFacts kernel() const;
  /// Notices since the last call, in order. They are of calls that failed, too.
  [[nodiscard]] std::vector<SessionNotice> take_notices();

 private:
  [[nodiscard]] Result<Selection> select(const std::vector<PointPattern>& patterns, const SearchScope& scope);
  [[nodiscard]] Result<PlannedQuestion> plan_selection(const FoundPoints& found, const AttachPlan* before) const;
  [[nodiscard]] Result<PlannedQuestion> plan_what_came(const FoundPoints& found, const TracedSoFar* before);

  Question question_;
  Subjects subjects_;
  Purpose purpose_;
  std::vector<SessionNotice> notices_ = {};
};

/// Whether a pattern leaves open which files are meant.
[[nodiscard]] bool looks_everywhere(const PointPattern& pattern);
/// Whether calls are traced from entry to return: only they can be unfinished.
[[nodiscard]] bool traces_calls(const AttachPlan& plan);
/// Says whether what the lists name is in a plan, such as that of a recording. `may_come`: probes may come to which a
/// list without any belongs, which is a notice then. Errors: invalid_argument.
[[nodiscard]] Result<void> check_printed(const Question& question, const AttachPlan& plan, const Printed& printed,
                                         bool may_come, std::vector<SessionNotice>& notices);
/// Says whether events of a plan, or of those of its probes that are marked, have the durations that View::slowest
/// compares. Errors: invalid_argument.
[[nodiscard]] Result<void> check_durations(const Question& question, const AttachPlan& plan,
                                           const std::vector<bool>& probes = {});

}  // namespace v1
}  // namespace usdt
