// SPDX-License-Identifier: BSD-2-Clause
// The frame of a program that asks a question: places of what is known of the hit, and scratch words. Private to expr/.
#pragma once

#include <algorithm>
#include <cstddef>

#include "usdt/bpf/filter.h"

namespace usdt::expr {

// Offsets from the frame pointer, where the question is.
constexpr int kUnread = offsetof(usdt_question, unread);
constexpr int kSite = offsetof(usdt_question, site);
constexpr int kDuration = offsetof(usdt_question, duration);
constexpr int kScratch = offsetof(usdt_question, scratch);
// The scratch words: values that wait for others, and pieces of texts.
constexpr int kMostSpills = 5;
constexpr int kBuffer = kScratch + kMostSpills * 8;
constexpr std::size_t kPiece = 16;
static_assert(kBuffer + static_cast<int>(kPiece) + 8 <= static_cast<int>(sizeof(usdt_question)),
              "a piece of a text, its NUL, and one character more");

/// Gives out the scratch words before the buffer. What asks for more than there are gets the last one, and the whole is
/// no program.
class ScratchWords {
 public:
  /// The place of free word `number`. All up to it have to be free.
  [[nodiscard]] int free(int number) {
    exceeded_ |= taken_ + number >= kMostSpills;
    return kScratch + 8 * std::min(taken_ + number, kMostSpills - 1);
  }
  /// The first free word is free no more, until it is given back.
  void take() noexcept { ++taken_; }
  void give_back() noexcept { --taken_; }
  /// Says that so many free words are needed.
  void need(int words) noexcept { exceeded_ |= taken_ + words > kMostSpills; }
  /// Returns whether more words were asked for than there are.
  [[nodiscard]] bool exceeded() const noexcept { return exceeded_; }

 private:
  int taken_ = 0;
  bool exceeded_ = false;
};

}  // namespace usdt::expr
