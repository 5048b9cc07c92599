// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
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

  /// Adds the place of another question's metrics. The last one's are shown where questions have one name: the others
  /// are about to end. `question`: its name; empty: it has none.
  [[nodiscard]] std::size_t add_slot(std::string question) {
    const std::lock_guard lock(mutex_);
    slots_.emplace(next_, Slot{std::move(question), {}});
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
    slots_[slot].families = std::move(families);
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
  struct Slot {
    std::string question;
    Families families;  ///< none: nothing is known yet
  };

  /// Puts the families of all questions together. The lock is held.
  void gather() {
    std::map<std::string_view, std::size_t> last;
    for (const auto& [number, slot] : slots_)
      if (!slot.families.empty()) last[slot.question] = number;
    auto all = std::make_shared<Families>();
    for (const auto& [number, slot] : slots_)
      if (slot.question.empty() || last[slot.question] == number)
        all->insert(all->end(), slot.families.begin(), slot.families.end());
    all_ = std::move(all);
  }

  mutable std::mutex mutex_;
  std::map<std::size_t, Slot> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<const Families> all_ = std::make_shared<Families>();
};

/// Returns what a client that asks for a page gets, in the format it wants. `own`, `health`: those of SinkOptions.
[[nodiscard]] http::Answer answer_with_page(const MetricPage& page, const std::function<std::vector<OwnMetric>()>& own,
                                            const std::function<ProgramHealth()>& health, const http::Request& request);

}  // namespace usdt::exports
