// SPDX-License-Identifier: BSD-2-Clause
// Processes of a family, as /proc tells of them: for usdt-broker's links, each of which is for one process. Private to
// attach/link.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "program/family.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// The processes that a family names, and what they start. Each is held by a pidfd: its number is never another's.
class FamilyMembers {
 public:
  explicit FamilyMembers(Family family);

  /// Looks who has come, and forgets who has ended. Children whose parents had ended before are not found.
  void look();
  [[nodiscard]] std::set<pid_t> living() const;
  /// Whether a member that look() has found goes on.
  [[nodiscard]] bool lives(pid_t pid) const;

 private:
  void take_children_of(pid_t parent, bool loud_alone);
  void add(pid_t pid, sys::UniqueFd fd);

  Family family_;
  std::map<pid_t, sys::UniqueFd> members_;
};

/// A thread that looks again and again who belongs to a family, and tells.
class FamilyWatch {
 public:
  /// Called in the thread after each look. It returns soon once the watch ends().
  using OnLook = std::function<void(const FamilyWatch&)>;

  /// Errors: limit (threads).
  [[nodiscard]] static Result<std::unique_ptr<FamilyWatch>> start(const Family& family, OnLook on_look);
  FamilyWatch(const FamilyWatch&) = delete;
  FamilyWatch& operator=(const FamilyWatch&) = delete;
  /// Ends the thread; on_look is not called any more.
  ~FamilyWatch();

  /// For on_look: what was found.
  [[nodiscard]] const FamilyMembers& members() const noexcept { return members_; }
  [[nodiscard]] bool ends() const;

 private:
  FamilyWatch(const Family& family, OnLook on_look) : members_(family), on_look_(std::move(on_look)) {}
  void run();

  FamilyMembers members_;
  OnLook on_look_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_ = {};
};

}  // namespace usdt::backends
