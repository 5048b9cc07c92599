// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "export/metrics.hpp"
#include "http/server.hpp"

namespace usdt::exports {

/// The metrics of the questions that share a destination. A server's thread may take them at any time.
class MetricPage {
 public:
  using Families = std::vector<metrics::Family>;

  /// Adds the place of another question's metrics.
  [[nodiscard]] std::size_t add_slot() {
    const std::lock_guard lock(mutex_);
    slots_.emplace_back();
    return slots_.size() - 1;
  }
  /// Whether no question was added behind it.
  [[nodiscard]] bool is_last(std::size_t slot) const {
    const std::lock_guard lock(mutex_);
    return slot + 1 == slots_.size();
  }
  /// Replaces the metrics of one question.
  void put(std::size_t slot, Families families) {
    auto all = std::make_shared<Families>();
    const std::lock_guard lock(mutex_);
    slots_[slot] = std::move(families);
    for (const Families& each : slots_) all->insert(all->end(), each.begin(), each.end());
    all_ = std::move(all);
  }
  /// Returns the metrics of all questions.
  [[nodiscard]] std::shared_ptr<const Families> families() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Families> slots_;
  std::shared_ptr<const Families> all_ = std::make_shared<Families>();
};

/// Returns what a client that asks for the page gets, in the format it wants.
[[nodiscard]] http::Answer answer_with_page(const MetricPage& page, const http::Request& request);

}  // namespace usdt::exports
