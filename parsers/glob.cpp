// SPDX-License-Identifier: BSD-2-Clause
#include <cstddef>

#include "usdt/pattern.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

/// One glob against one text. On a mismatch only the latest '*' takes one character more: earlier ones never need
/// to, so the time is bounded by glob times text, whatever the pattern.
class GlobMatch {
 public:
  GlobMatch(std::string_view glob, std::string_view text) noexcept : glob_(glob), text_(text) {}

  bool whole() noexcept {
    while (text_at_ < text_.size()) {
      if (glob_at_ < glob_.size() && glob_[glob_at_] == '*') {
        star_ = ++glob_at_;
        star_text_ = text_at_;
      } else if (step()) {
        ++text_at_;
      } else if (star_ != kNowhere) {
        glob_at_ = star_;
        text_at_ = ++star_text_;
      } else {
        return false;
      }
    }
    while (glob_at_ < glob_.size() && glob_[glob_at_] == '*') ++glob_at_;
    return glob_at_ == glob_.size();
  }

 private:
  /// Matches one character against what stands at glob_at_, and moves behind it on success.
  bool step() noexcept {
    if (glob_at_ == glob_.size()) return false;
    std::size_t at = glob_at_;
    const char c = text_[text_at_];
    bool matched = false;
    if (glob_[at] == '?') {
      matched = true;
      ++at;
    } else if (glob_[at] == '[' && at < unclosed_from_) {
      matched = match_class(c, at);
    } else {
      matched = literal(at) == c;
    }
    if (matched) glob_at_ = at;
    return matched;
  }

  /// The character at `at`, unquoted; moves `at` behind it.
  char literal(std::size_t& at) const noexcept {
    if (glob_[at] == '\\' && at + 1 < glob_.size()) ++at;
    return glob_[at++];
  }

  /// `[a-z]`, `[!a-z]`, `[^a-z]`; a ']' that stands first is a member. A '[' without its ']' is a plain character, and
  /// so is every '[' behind it: none of them is searched for its ']' again.
  bool match_class(char c, std::size_t& at) noexcept {
    const std::size_t open = at++;
    const bool negated = at < glob_.size() && (glob_[at] == '!' || glob_[at] == '^');
    at += negated;
    bool found = false;
    for (bool first = true; at < glob_.size() && (first || glob_[at] != ']'); first = false) {
      const char low = literal(at);
      char high = low;
      if (at + 1 < glob_.size() && glob_[at] == '-' && glob_[at + 1] != ']') high = literal(++at);
      found = found || (low <= c && c <= high);
    }
    if (at == glob_.size()) {
      unclosed_from_ = open;
      at = open + 1;
      return c == '[';
    }
    ++at;
    return found != negated;
  }

  std::string_view glob_;
  std::string_view text_;
  std::size_t glob_at_ = 0;
  std::size_t text_at_ = 0;
  std::size_t star_ = kNowhere;  ///< behind the latest '*'
  std::size_t star_text_ = 0;    ///< where the text that '*' does not take begins
  std::size_t unclosed_from_ = kNowhere;
};

}  // namespace

bool glob_match(std::string_view glob, std::string_view text) noexcept { return GlobMatch(glob, text).whole(); }

bool has_glob(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '*' || text[at] == '?' || text[at] == '[') {
      return true;
    }
  }
  return false;
}

}  // namespace v1
}  // namespace usdt
