// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace usdt_broker {

/// What one user may have of something, over all connections, closed ones included: clients may keep what they were
/// given, and nobody tells when it goes. All of it is given back within an hour, little by little.
class Allowance {
 public:
  /// Takes so much out of it; false: there is not as much left of `most`. Processes that share the memory may call it
  /// at once.
  [[nodiscard]] bool take(std::uint64_t amount, std::uint64_t most) noexcept;
  /// Whether all of it has been given back by now.
  [[nodiscard]] bool is_whole() const noexcept;
  /// Begins anew.
  void reset() noexcept;

 private:
  /// Gives back what time has earned.
  void give_back(std::uint64_t most) noexcept;

  std::atomic<std::int64_t> given_back_ = 0;  ///< until when: seconds of CLOCK_MONOTONIC
  std::atomic<std::uint64_t> used_ = 0;
};

struct Budget {
  Allowance places;     ///< that are attached
  Allowance map_bytes;  ///< which the kernel keeps for the maps of programs

  [[nodiscard]] bool is_whole() const noexcept { return places.is_whole() && map_bytes.is_whole(); }
};

/// The budgets of all users, in memory that a broker has in common with its workers.
class Budgets {
 public:
  Budgets();
  Budgets(const Budgets&) = delete;
  Budgets& operator=(const Budgets&) = delete;
  ~Budgets();

  static constexpr std::size_t kMostUsers = 4096;
  /// Returns that of a user; null: so many users have taken of theirs within an hour. One who has taken nothing, and is
  /// not served (`is_served`), makes room for another.
  [[nodiscard]] Budget* of(uid_t user, const std::function<bool(uid_t)>& is_served);

 private:
  Budget* all_ = nullptr;
  std::map<uid_t, std::size_t> number_of_ = {};
};

}  // namespace usdt_broker
