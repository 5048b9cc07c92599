// SPDX-License-Identifier: BSD-2-Clause
#include "expr/glob.hpp"

#include <string>

#include "usdt/pattern.hpp"

namespace usdt::expr {
namespace {

/// Bytes of the element at the beginning of `glob`. `classes`: false once a '[' had no ']'; such a one is plain, and so
/// are those behind it.
std::size_t element_length(std::string_view glob, bool& classes) {
  if (glob[0] == '\\' && glob.size() > 1) return 2;
  if (glob[0] != '[' || !classes) return 1;
  std::size_t at = 1;
  if (at < glob.size() && (glob[at] == '!' || glob[at] == '^')) ++at;
  const auto skip = [&] { at += glob[at] == '\\' && at + 1 < glob.size() ? 2 : 1; };
  for (bool first = true; at < glob.size() && (first || glob[at] != ']'); first = false) {
    skip();
    if (at + 1 < glob.size() && glob[at] == '-' && glob[at + 1] != ']') {
      ++at;
      skip();
    }
  }
  classes = at < glob.size();
  return classes ? at + 1 : 1;
}

/// By the matcher of names itself, so that both mean the same.
bool takes(std::string_view element, std::size_t character) {
  const char c = static_cast<char>(character);
  return glob_match(element, std::string_view(&c, 1));
}

}  // namespace

std::optional<Glob> Glob::parse(std::string_view text) {
  Glob glob;
  bool classes = true;
  // Counted from the first element's bit; where that is, only their number tells.
  while (!text.empty()) {
    if (text[0] == '*') {
      glob.stays_ |= std::uint64_t{1} << glob.elements_;
      text.remove_prefix(1);
      continue;
    }
    if (glob.elements_ == kMost) return std::nullopt;
    const std::size_t length = element_length(text, classes);
    for (std::size_t c = 0; c < glob.takes_.size(); ++c)
      glob.takes_[c] |= std::uint64_t{takes(text.substr(0, length), c)} << glob.elements_;
    ++glob.elements_;
    text.remove_prefix(length);
  }
  const std::size_t first = kMost - glob.elements_;
  glob.stays_ <<= first;
  for (std::uint64_t& each : glob.takes_) each <<= first;
  return glob;
}

std::array<Glob::Step, 256> Glob::steps(bool ends_at_nul) const {
  std::array<Step, 256> steps;
  for (std::size_t c = 0; c < steps.size(); ++c) steps[c] = {takes_[c], stays_ | (ends_at_nul ? kEnded : 0)};
  if (ends_at_nul) steps[0] = {kMatched, kEnded};
  return steps;
}

std::optional<bool> Glob::matches(std::string_view text, bool cut) const {
  std::uint64_t state = start();
  for (const char c : text.substr(0, kLongestLook))
    state = (state & takes_[static_cast<unsigned char>(c)]) << 1 | (state & stays_);
  const bool matched = (state & kMatched) != 0;
  const bool ends = text.size() < kLongestLook && !cut;
  if (ends || state == 0 || (matched && open_ended())) return matched;
  return std::nullopt;
}

Glob::Beginning Glob::beginning(std::string_view text) {
  Beginning made;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != '*' && text[at] != '?' && text[at] != '['; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    made.text += text[at];
  }
  if (at == text.size())
    made.match = TextMatch::whole;
  else if (text.substr(at) == "*")
    made.match = TextMatch::prefix;
  return made;
}

}  // namespace usdt::expr
