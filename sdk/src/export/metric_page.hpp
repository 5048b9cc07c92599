// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "export/metrics.hpp"
#include "http/server.hpp"
#include "usdt/sink.hpp"

namespace usdt::exports {

/// The metrics of the questions that share a destination. A server's thread may take them at any time.
class MetricPage {
 public:
  using Families = std::vector<metrics::Family>;

  /// Adds the place of another question's metrics.
  [[nodiscard]] std::size_t add_slot() {
    const std::lock_guard lock(mutex_);
    slots_.emplace(next_, Families());
    return next_++;
  }
  /// Whether no question was added behind it.
  [[nodiscard]] bool is_last(std::size_t slot) const {
    const std::lock_guard lock(mutex_);
    return slot + 1 == next_;
  }
  /// Replaces the metrics of one question.
  void put(std::size_t slot, Families families) {
    const std::lock_guard lock(mutex_);
    slots_[slot] = std::move(families);
    gather();
  }
  /// Nobody asks that question any more.
  void remove_slot(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    slots_.erase(slot);
    gather();
  }
  /// Returns the metrics of all questions.
  [[nodiscard]] std::shared_ptr<const Families> families() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  /// With the lock.
  void gather() {
    auto all = std::make_shared<Families>();
    for (const auto& [number, families] : slots_) all->insert(all->end(), families.begin(), families.end());
    all_ = std::move(all);
  }

  mutable std::mutex mutex_;
  std::map<std::size_t, Families> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<const Families> all_ = std::make_shared<Families>();
};

/// Returns what a client that asks for a page gets, in the format it wants. `own`, `health`: those of SinkOptions.
[[nodiscard]] http::Answer answer_with_page(const MetricPage& page, const std::function<std::vector<OwnMetric>()>& own,
                                            const std::function<ProgramHealth()>& health, const http::Request& request);

}  // namespace usdt::exports
