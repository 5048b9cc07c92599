// SPDX-License-Identifier: BSD-2-Clause
// Mapped files that could not be read: who makes probes at run time maps a file and writes its head afterwards, at once
// or much later. Private to follow/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "follow/task_rings.hpp"

namespace usdt::follow {

/// An inode as records tell it: of btrfs and overlayfs another device than stat(2) tells.
using MappedFile = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;

inline MappedFile file_of(const TaskEvent& event) noexcept {
  return {event.major, event.minor, event.inode, event.generation};
}

/// Times are nanoseconds of one clock.
class UnreadFiles {
 public:
  /// A look at it was in vain. It is due again soon, then less and less often, for five seconds.
  void add(const TaskEvent& event, std::uint64_t now) {
    if (files_.size() >= kMost) return;
    Unread& unread = files_.try_emplace(file_of(event), Unread{event}).first->second;
    unread.looked = now;
    unread.next = unread.looks < kLooks ? now + (kSoon << unread.looks) : kNever;
    ++unread.looks;
  }
  void forget(const TaskEvent& event) { files_.erase(file_of(event)); }
  /// True: it is one of these, mapped again, which may mean that it is written by now. JIT compilers map the same file
  /// all the time: it is looked at ten times a second at most.
  bool mapped_again(const TaskEvent& event) {
    const auto found = files_.find(file_of(event));
    if (found == files_.end()) return false;
    found->second.event = event;
    found->second.next = std::min(found->second.next, found->second.looked + kOften);
    return true;
  }
  [[nodiscard]] std::vector<TaskEvent> due(std::uint64_t now) const {
    std::vector<TaskEvent> events;
    for (const auto& [file, unread] : files_)
      if (unread.next <= now) events.push_back(unread.event);
    return events;
  }
  /// How long nothing is due, at most `longest`.
  [[nodiscard]] std::uint64_t rest(std::uint64_t now, std::uint64_t longest) const {
    for (const auto& [file, unread] : files_) longest = std::min(longest, unread.next - std::min(unread.next, now));
    return longest;
  }

 private:
  struct Unread {
    TaskEvent event;
    unsigned looks = 0;
    std::uint64_t looked = 0, next = 0;
  };
  static constexpr std::size_t kMost = 1024;
  static constexpr unsigned kLooks = 9;
  static constexpr std::uint64_t kSoon = 10'000'000, kOften = 100'000'000, kNever = UINT64_MAX;
  std::map<MappedFile, Unread> files_;
};

}  // namespace usdt::follow
