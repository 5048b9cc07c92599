// SPDX-License-Identifier: BSD-2-Clause
// Watch over a trace that runs: changes of files and the like are looked for again and again, and told once.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "session/live_run.hpp"
#include "usdt/answers.hpp"
#include "usdt/plan.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

/// Watches one trace. All that it is made of lives longer.
class TraceWatch {
 public:
  TraceWatch(const LiveRun& run, const AttachPlan& first_plan, Tracer& tracer, AnswerConsumer& told)
      : run_(run), first_plan_(first_plan), tracer_(tracer), told_(told) {}

  /// Tells of files that changed. `follows`: what takes their place is traced, too.
  void tell_changes(bool follows);
  /// Tells at which sites not all values are read.
  void tell_shortened();
  /// Tells that processes that are not traced have the breakpoints.
  void tell_others_pay();
  /// Tells of interpreters whose functions are not among the stacks.
  void tell_unknown_interpreters();
  /// Tells that there is no room for the calls that are open: who waits for the end of a trace would learn it too late.
  void tell_given_up();
  /// Looks at a command and what it started, more and more seldom: whether they run code from other memory than the
  /// files'. Processes that are traced by number were looked at before.
  void tell_moved_code();
  /// Does so at the end of a trace of everybody.
  void tell_moved_code_of_all();
  /// Looks for cgroups again.
  void tell_cgroups();

  /// A file went; it may come again, as its name is watched.
  void expect_again() noexcept { may_come_again_ = true; }
  /// Every site was detached, and none may come again.
  [[nodiscard]] bool nothing_left() const noexcept { return nothing_left_; }

 private:
  void tell_moved_code_of(const std::vector<pid_t>& pids);

  const LiveRun& run_;
  const AttachPlan& first_plan_;
  Tracer& tracer_;
  AnswerConsumer& told_;
  std::size_t changes_told_ = 0;
  std::size_t shortened_told_ = 0;  ///< sites with fewer values
  bool others_pay_told_ = false;
  bool given_up_told_ = false;
  bool nothing_left_ = false;
  bool may_come_again_ = false;
  Clock::time_point next_account_ = {};
  Clock::time_point next_moved_look_ = {};
  Clock::duration moved_pause_ = {};  ///< until the one after it
  std::set<std::string> moved_told_ = {};
};

}  // namespace usdt::session
