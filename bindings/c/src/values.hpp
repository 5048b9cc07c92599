// SPDX-License-Identifier: BSD-2-Clause
// Answers as values: what sessions and recordings hand out in place of text.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>

#include "handles.hpp"
#include "usdt/answers.hpp"

namespace usdtc {

/// Takes the answers to a question as values: its events, the rows of the latest look at its table, and its account.
class ValueTaker final : public usdt::AnswerConsumer {
 public:
  /// Says what becomes of events.
  enum class Events : std::uint8_t { unwanted, kept, handed_on };

  /// Hands events to `on_event` from now on; null: keeps them for take().
  void want_events(usdtc_on_event on_event, void* user);
  /// Keeps events that take at most so many bytes together; what comes beyond is lost. Unless it is called there is no
  /// limit.
  void keep_at_most(std::uint64_t bytes) noexcept { most_bytes_ = bytes; }

  void begin(const usdt::AnswerStart& start) override;
  void trace(const usdt::AttachPlan& plan, std::size_t probes) override;
  void event(const usdt::Event& event) override;
  void table(const usdt::ArrangedTable& table) override;
  void slowest(const usdt::SlowestEvents& events, bool last) override;
  [[nodiscard]] bool wants_account() const override { return Clock::now() >= next_account_; }
  void account(const usdt::SessionSummary& summary) override;
  void summary(const usdt::SessionSummary& summary) override { summary_ = summary; }
  [[nodiscard]] bool in_no_hurry() const override { return events_ == Events::unwanted; }

  /// Events that found no room, by probe of the plan.
  [[nodiscard]] std::vector<std::uint64_t> not_written() const override { return lost_; }
  /// Events that were handed on or kept.
  [[nodiscard]] std::size_t events_so_far() const noexcept { return events_so_far_; }
  /// Takes the oldest events that are kept, at most `limit`.
  [[nodiscard]] std::unique_ptr<usdtc_batch> take(std::size_t limit);
  /// Copies the rows of the latest look. Errors: invalid_argument (the question is about no table), not_found (nobody
  /// has looked yet).
  [[nodiscard]] usdt::Result<usdtc_rows*> rows() const;
  /// Copies the latest account. Errors: not_found (there is none yet).
  [[nodiscard]] usdt::Result<usdtc_ledger*> ledger() const;

 private:
  using Clock = std::chrono::steady_clock;

  void give(usdtc_event&& event);
  void keep(usdtc_event&& event);

  Events events_ = Events::unwanted;
  usdtc_on_event on_event_ = nullptr;
  void* user_ = nullptr;
  std::size_t events_so_far_ = 0;
  std::deque<usdtc_event> kept_ = {};
  std::uint64_t kept_bytes_ = 0, most_bytes_ = UINT64_MAX;
  std::vector<std::uint64_t> lost_ = {};
  usdt::View view_ = {};
  usdt::Surroundings* around_ = nullptr;
  std::shared_ptr<const PlanTexts> texts_ = nullptr;
  std::optional<usdtc_rows> rows_ = {};
  std::optional<usdt::SessionSummary> summary_ = {};
  Clock::time_point next_account_ = Clock::now();
};

}  // namespace usdtc
