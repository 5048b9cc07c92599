// SPDX-License-Identifier: BSD-2-Clause
#include "bounded_notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace usdt_agent {

using Kind = usdt::SessionNotice::Kind;

void BoundedNotices::notice(const usdt::SessionNotice& notice) {
  constexpr std::string_view waiting = "waiting: ";
  if (notice.kind == Kind::waiting)
    waits_for_ = notice.text.substr(notice.text.starts_with(waiting) ? waiting.size() : 0);
  if (notice.kind == Kind::attached) waits_for_.clear();
  const bool is_once = notice.kind == Kind::attached || notice.kind == Kind::detaching || notice.kind == Kind::ended;
  if (is_once || (left_out_ == 0 && take_room())) return notices_.notice(notice);
  ++left_out_;
  last_ = notice;
}

void BoundedNotices::end(const usdt::AnswerEnd& end) {
  say_left_out();
  notices_.end(end);
}

void BoundedNotices::say_what_was_left_out() {
  if (left_out_ > 0 && take_room()) say_left_out();
}

void BoundedNotices::say_left_out() {
  if (left_out_ == 0) return;
  usdt::SessionNotice last = std::exchange(last_, {});
  if (left_out_ > 1) {
    last.text = fmt::format("{} (and {} more within a moment)", last.text, left_out_ - 1);
    last.detail.clear();
  }
  left_out_ = 0;
  notices_.notice(last);
}

bool BoundedNotices::take_room() {
  constexpr std::chrono::duration<double> most{20}, one{1};
  const auto now = Clock::now();
  room_ = std::min<std::chrono::duration<double>>(room_ + (now - std::exchange(looked_, now)), most);
  if (room_ < one) return false;
  room_ -= one;
  return true;
}

}  // namespace usdt_agent
