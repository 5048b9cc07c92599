// SPDX-License-Identifier: BSD-2-Clause
// The code that a JIT compiler has put at each address, and what was there before: compilers throw code away and put
// other code into its place, and a hit is named later than it happened. Private to stack/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string_view>

namespace usdt::stack {

/// The time, on event_clock(), between two looks: what was found by the second one happened after `from`, and not after
/// `until`.
struct Period {
  std::uint64_t from = 0;
  std::uint64_t until = 0;
  [[nodiscard]] static Period at(std::uint64_t time) noexcept { return {time, time}; }
};

/// A range of addresses, all of one piece of code.
struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t last = 0;  ///< the last address of it
  std::uint64_t code = 0;  ///< where the code begins that the range is of
  std::uint32_t name = 0;  ///< where it begins in the text
  std::uint32_t length = 0;
  Period made = {};
  bool doubtful = false;  ///< it may have been thrown away since, and nothing tells what is there now
};

/// Remembers ranges and the last ones that were replaced.
class CodeHistory {
 public:
  /// Puts `code` into the place of whatever was in its range.
  void put(const CodeRange& code);
  /// Marks what is left of `code` as doubtful.
  void doubt(const CodeRange& code);
  void clear();

  struct Found {
    const CodeRange* code = nullptr;   ///< the newest that may have been there; null: none was
    const CodeRange* other = nullptr;  ///< an older one that may have been there as well
    bool uncertain = false;            ///< others may have been there, `other` or forgotten ones
  };
  /// Returns the code that was at `address` during `when`. `text` has the names: two codes of one name are one answer.
  [[nodiscard]] Found find(std::uint64_t address, Period when, std::string_view text) const;
  /// Counts the ranges that nothing has replaced.
  [[nodiscard]] std::size_t size() const noexcept { return now_.size(); }

 private:
  struct Replaced {
    CodeRange code;
    Period when;
  };
  static constexpr std::size_t kMostReplaced = 4096;

  void remember(const CodeRange& old, const CodeRange& by);

  std::map<std::uint64_t, CodeRange> now_;  ///< ranges that are apart from each other, by their start
  std::deque<Replaced> past_;               ///< in the order in which they were replaced
  std::uint64_t forgotten_until_ = 0;       ///< ranges that were replaced up to then are no longer known
};

}  // namespace usdt::stack
