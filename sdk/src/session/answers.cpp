// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/answers.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/try.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Makes each number at least that of `more`.
void raise_to(std::vector<std::uint64_t>& numbers, const std::vector<std::uint64_t>& more) {
  numbers.resize(std::max(numbers.size(), more.size()));
  for (std::size_t n = 0; n < more.size(); ++n) numbers[n] = std::max(numbers[n], more[n]);
}

}  // namespace

ConsumerGroup::ConsumerGroup(std::vector<AnswerConsumer*> consumers) : all_(std::move(consumers)) {}
ConsumerGroup::~ConsumerGroup() = default;

Result<void> ConsumerGroup::check(const AttachPlan& plan) {
  for (AnswerConsumer* consumer : all_) TRY(consumer->check(plan));
  return {};
}

bool ConsumerGroup::flush() {
  bool all = true;
  for (AnswerConsumer* consumer : all_) all &= consumer->flush();
  return all;
}

bool ConsumerGroup::wants_account() const { return std::ranges::any_of(all_, &AnswerConsumer::wants_account); }

void ConsumerGroup::account(const SessionSummary& summary) {
  for (AnswerConsumer* consumer : all_)
    if (consumer->wants_account()) consumer->account(summary);
}

bool ConsumerGroup::wants_table() const { return std::ranges::any_of(all_, &AnswerConsumer::wants_table); }

void ConsumerGroup::look(const ArrangedTable& table) {
  for (AnswerConsumer* consumer : all_)
    if (consumer->wants_table()) consumer->look(table);
}

bool ConsumerGroup::in_no_hurry() const { return std::ranges::all_of(all_, &AnswerConsumer::in_no_hurry); }

std::vector<std::uint64_t> ConsumerGroup::not_written() const {
  std::vector<std::uint64_t> most;
  for (const AnswerConsumer* consumer : all_) raise_to(most, consumer->not_written());
  return most;
}

std::vector<std::uint64_t> ConsumerGroup::folded_full() const {
  std::vector<std::uint64_t> most;
  for (const AnswerConsumer* consumer : all_) raise_to(most, consumer->folded_full());
  return most;
}

std::vector<std::uint64_t> ConsumerGroup::forgotten() {
  std::vector<std::uint64_t> most;
  for (AnswerConsumer* consumer : all_) raise_to(most, consumer->forgotten());
  return most;
}

std::uint64_t ConsumerGroup::unreadable() const {
  return std::accumulate(all_.begin(), all_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const AnswerConsumer* each) { return sum + each->unreadable(); });
}

}  // namespace v1
}  // namespace usdt
