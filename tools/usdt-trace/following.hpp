// SPDX-License-Identifier: BSD-2-Clause
// What comes while a trace runs, and is traced from then on.
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

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What a follower tells, for notices and recordings: it was refused, or so many `sites` of `part` are attached.
[[nodiscard]] usdt::Followed followed(const usdt::FollowEvent& event);
[[nodiscard]] usdt::Followed followed_in_vain(const usdt::FollowEvent& event, const usdt::Error& error);
[[nodiscard]] usdt::Followed followed_and_attached(const usdt::FollowEvent& event, const usdt::AttachPlan& part,
                                                   std::size_t sites);

/// "followed: process 4711 opened /usr/lib/libx.so: 3 sites of 2 probes attached, 12.3 ms after".
[[nodiscard]] std::string followed_text(const usdt::Followed& followed);

/// "waiting on: process 4711 opened /usr/lib/libx.so, which has one side of the spans".
[[nodiscard]] std::string half_came_text(const usdt::Followed& followed);

/// "let go: 37 files: /usr/bin/server, ..., gone, and mapped by nobody: 111 sites detached, their hits stay counted".
[[nodiscard]] std::string let_go_text(const std::vector<std::string>& files, std::size_t sites);

/// A file that need not be found.
using KnownFile = std::pair<usdt::TargetFile, std::shared_ptr<const usdt::ElfFile>>;

/// Watches what the command line is about.
class Following {
 public:
  explicit Following(const Flags& flags) : flags_(flags) {}

  /// Before anything is looked for, so that nothing comes unseen between that and begin().
  usdt::Result<void> open();
  /// `known`: what is traced already. `on_event` is called from another thread.
  usdt::Result<void> begin(const usdt::Subjects& subjects, std::optional<pid_t> command,
                           const std::vector<KnownFile>& known, std::function<void()> on_event);
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  [[nodiscard]] std::vector<usdt::FollowEvent> take();
  /// It is traced, or will not be.
  void done(const usdt::FollowEvent& event);
  /// It could not be attached, and may be what it should be once it changes.
  void refused(const usdt::FollowEvent& event);
  /// What it cannot say of each, at the end, a line each.
  [[nodiscard]] std::vector<std::string> account() const;
  /// Where it knows from.
  [[nodiscard]] std::string source() const { return follower_ ? follower_->source() : std::string(); }

 private:
  const Flags& flags_;
  std::optional<usdt::Follower> follower_;
  bool begun_ = false;
};

}  // namespace usdt_trace
