// SPDX-License-Identifier: BSD-2-Clause
// Files that come while a trace runs, and are traced from then on.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "usdt/follow.hpp"
#include "usdt/plan.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"

namespace usdt::session {

/// Describes the outcome of a follower's event: it was refused, or so many `sites` of `part` are attached.
[[nodiscard]] Followed followed(const FollowEvent& event);
[[nodiscard]] Followed followed_in_vain(const FollowEvent& event, const Error& error);
[[nodiscard]] Followed followed_and_attached(const FollowEvent& event, const AttachPlan& part, std::size_t sites);

/// A file that need not be found; without an opened file, one that is found again once it is at rest.
using KnownFile = std::pair<TargetFile, std::shared_ptr<const ElfFile>>;

/// Watches what a question is about.
class Following {
 public:
  explicit Following(const Question& question) : question_(question) {}

  /// Begins to watch before anything is looked for, so that nothing comes unseen between that and begin().
  Result<void> open();
  /// Begins to follow. `known`: the files that are traced already. `on_event` is called from another thread.
  Result<void> begin(const Subjects& subjects, std::optional<pid_t> command, const std::vector<KnownFile>& known,
                     std::function<void()> on_event);
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  [[nodiscard]] std::vector<FollowEvent> take();
  /// Ends the work on an event: its file is traced, or will not be.
  void done(const FollowEvent& event);
  /// Notes that the file could not be attached: it is looked at again once it changes.
  void refused(const FollowEvent& event, bool for_want_of_room = false);
  /// Returns what the follower did so far; nothing: it was not begun.
  [[nodiscard]] std::optional<FollowCounts> counts() const {
    return begun_ ? std::optional(follower_->counts()) : std::nullopt;
  }
  /// Returns how the follower learns of files, in words.
  [[nodiscard]] std::string source() const { return follower_ ? follower_->source() : std::string(); }

 private:
  const Question& question_;
  std::optional<Follower> follower_;
  bool begun_ = false;
};

}  // namespace usdt::session
