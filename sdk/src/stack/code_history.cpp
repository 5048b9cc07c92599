// SPDX-License-Identifier: BSD-2-Clause
#include "stack/code_history.hpp"

#include <algorithm>
#include <iterator>

namespace usdt::stack {
namespace {

std::string_view name_of(const CodeRange& code, std::string_view text) {
  return code.name <= text.size() ? text.substr(code.name, code.length) : std::string_view();
}

bool has(const CodeRange& code, std::uint64_t address) { return code.start <= address && address <= code.last; }

}  // namespace

void CodeHistory::clear() {
  now_.clear();
  past_.clear();
  forgotten_until_ = 0;
}

void CodeHistory::remember(const CodeRange& old, const CodeRange& by) {
  CodeRange replaced = old;
  replaced.start = std::max(old.start, by.start);
  replaced.last = std::min(old.last, by.last);
  past_.push_back({replaced, by.made});
  if (past_.size() <= kMostReplaced) return;
  forgotten_until_ = std::max(forgotten_until_, past_.front().when.until);
  past_.pop_front();
}

void CodeHistory::put(const CodeRange& code) {
  auto at = now_.upper_bound(code.start);
  if (at != now_.begin() && std::prev(at)->second.last >= code.start) --at;
  while (at != now_.end() && at->second.start <= code.last) {
    const CodeRange old = at->second;
    at = now_.erase(at);
    remember(old, code);
    if (old.start < code.start) {
      CodeRange before = old;
      before.last = code.start - 1;
      now_.emplace(before.start, before);
    }
    if (old.last > code.last) {
      CodeRange behind = old;
      behind.start = code.last + 1;
      now_.emplace(behind.start, behind);
      break;
    }
  }
  now_.emplace(code.start, code);
}

void CodeHistory::doubt(const CodeRange& code) {
  for (auto at = now_.lower_bound(code.start); at != now_.end() && at->first <= code.last; ++at)
    at->second.doubtful |= at->second.code == code.code && at->second.made.until == code.made.until;
}

CodeHistory::Found CodeHistory::find(std::uint64_t address, Period when, std::string_view text) const {
  const CodeRange* found = nullptr;
  const auto behind = now_.upper_bound(address);
  if (behind != now_.begin() && has(std::prev(behind)->second, address)) {
    const CodeRange& now = std::prev(behind)->second;
    if (now.made.until <= when.from) return {.code = &now, .uncertain = now.doubtful};
    if (now.made.from < when.until) found = &now;
  }
  for (auto each = past_.rbegin(); each != past_.rend() && each->when.until > when.from; ++each) {
    if (!has(each->code, address) || each->code.made.from >= when.until) continue;
    if (found != nullptr && name_of(*found, text) != name_of(each->code, text)) return {found, &each->code, true};
    if (found == nullptr) found = &each->code;
    // What came before it was gone by then.
    if (each->code.made.until <= when.from) return {.code = found};
  }
  return {.code = found, .uncertain = forgotten_until_ > when.from};
}

}  // namespace usdt::stack
