// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
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

/// The metrics of the questions that share a destination. A server's thread may take them at any time. Numbers of a
/// page that is served are read when somebody asks for it: the counters of thousands of sites cost time.
class MetricPage {
 public:
  using Families = std::vector<metrics::Family>;
  using Clock = std::chrono::steady_clock;

  /// Adds the place of another question's metrics. The last one's are shown where questions have one name: the others
  /// are about to end. `question`: its name; empty: it has none.
  [[nodiscard]] std::size_t add_slot(std::string question) {
    const std::lock_guard lock(mutex_);
    slots_.emplace(next_, Slot{.question = std::move(question), .families = {}});
    return next_++;
  }
  /// Whether no question was added behind it.
  [[nodiscard]] bool is_last(std::size_t slot) const {
    const std::lock_guard lock(mutex_);
    return slot + 1 == next_;
  }
  /// Replaces the metrics of one question.
  void put(std::size_t slot, Families families) {
    std::unique_lock lock(mutex_);
    slots_[slot] = {.question = std::move(slots_[slot].question), .families = std::move(families)};
    gather();
    lock.unlock();
    changed_.notify_all();
  }
  /// Nobody asks that question any more.
  void remove_slot(std::size_t slot) {
    std::unique_lock lock(mutex_);
    slots_.erase(slot);
    gather();
    lock.unlock();
    changed_.notify_all();
  }
  /// Whether somebody waits for the metrics of a question: it is to put() them soon.
  [[nodiscard]] bool is_asked(std::size_t slot) const {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find(slot);
    return found != slots_.end() && found->second.is_asked;
  }
  /// Returns the metrics of all questions, asking for those that are a second old or more, and waits for them, but no
  /// longer than half of one: who does not look at its questions for so long, as while others are attached, has the
  /// numbers of before on the page.
  [[nodiscard]] std::shared_ptr<const Families> fresh_families() {
    constexpr std::chrono::seconds fresh{1};
    constexpr std::chrono::milliseconds longest{500};
    std::unique_lock lock(mutex_);
    if (Clock::now() - asked_ < fresh) return all_;
    asked_ = Clock::now();
    for (auto& [number, slot] : slots_) slot.is_asked = true;
    const auto all_are_there = [this] {
      return std::ranges::none_of(slots_, [](const auto& each) { return each.second.is_asked; });
    };
    // Others are not kept waiting for those that are late, either.
    if (!changed_.wait_for(lock, longest, all_are_there)) asked_ = Clock::now();
    return all_;
  }
  /// Returns the metrics of all questions.
  [[nodiscard]] std::shared_ptr<const Families> families() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  struct Slot {
    std::string question;
    Families families;      ///< none: nothing is known yet
    bool is_asked = false;  ///< somebody waits for them
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
  std::condition_variable changed_;
  Clock::time_point asked_ = Clock::time_point() - std::chrono::hours(1);
  std::map<std::size_t, Slot> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<const Families> all_ = std::make_shared<Families>();
};

/// Returns what a client that asks for a page gets, in the format it wants. `own`, `health`: those of SinkOptions.
[[nodiscard]] http::Answer answer_with_page(MetricPage& page, const std::function<std::vector<OwnMetric>()>& own,
                                            const std::function<ProgramHealth()>& health, const http::Request& request);

}  // namespace usdt::exports
