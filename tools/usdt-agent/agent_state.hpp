// SPDX-License-Identifier: BSD-2-Clause
// The agent's own numbers and health. Its loop writes them down, and the thread that serves pages reads them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "running_file.hpp"

namespace usdt_agent {

/// How often files were read again.
struct Reloads {
  std::uint64_t done = 0, refused = 0;
};

class AgentState {
 public:
  /// Writes down how things are. For the loop's thread.
  void take(const std::vector<std::shared_ptr<RunningFile>>& files, const Exports& exports, const Reloads& reloads);
  /// Returns "questions: 0 starting, 1 waiting, 3 traced, 0 failing".
  [[nodiscard]] std::string in_words() const;

  /// Returns the agent's own metrics. From any thread.
  [[nodiscard]] std::vector<usdt::OwnMetric> metrics() const;
  /// The agent is well if its loop goes on and no question fails; one that waits is said, and is no failure: what it
  /// traces may come any day. From any thread.
  [[nodiscard]] usdt::ProgramHealth health() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// A place where answers go.
  struct Place {
    std::string name;
    std::optional<usdt::Backlog> backlog;
    bool is_sent;
    std::string trouble;
  };

  void add_places(std::vector<usdt::OwnMetric>& metrics) const;

  mutable std::mutex mutex_;
  std::array<std::uint64_t, 4> questions_ = {};  ///< by FileState
  std::uint64_t restarts_ = 0;                   ///< sessions
  Reloads reloads_ = {};
  std::vector<Place> places_ = {};
  std::string failures_ = {}, waiting_ = {};  ///< a line for each file
  Clock::time_point taken_ = Clock::now();
};

}  // namespace usdt_agent
