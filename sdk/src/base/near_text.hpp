// SPDX-License-Identifier: BSD-2-Clause
// Suggestions for a mistyped name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace usdt {
inline namespace v1 {

/// Letters inserted, left out, changed or swapped with their neighbour, between `a` and `b`; anything above `most` if
/// it is above. Names of more than 64 letters are pasted, not typed: they are far from everything.
[[nodiscard]] unsigned typing_distance(std::string_view a, std::string_view b, unsigned most) noexcept;
/// How many such mistakes a name of this length may have.
[[nodiscard]] unsigned likely_mistakes(std::string_view name) noexcept;

/// The nearest of `names`, at most three, the likeliest first.
class NearTexts {
 public:
  explicit NearTexts(std::string_view wanted) : wanted_(wanted), most_(likely_mistakes(wanted)) {}
  void offer(std::string_view name);
  [[nodiscard]] std::vector<std::string> best() &&;
  /// "; did you mean A, B?" for the end of a message; empty where none is near.
  [[nodiscard]] std::string question() &&;

 private:
  std::string wanted_;
  unsigned most_;
  std::vector<std::pair<unsigned, std::string>> found_;
};

}  // namespace v1
}  // namespace usdt
