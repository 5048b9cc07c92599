// SPDX-License-Identifier: BSD-2-Clause
// Words of questions (usdt::HitField) among what is shown of events: "pid", "elapsed", "ip".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What is known of one event beside what it has.
struct WordSource {
  std::uint64_t began;         ///< Flags::began
  std::string_view probe;      ///< the name of its probe
  usdt::Surroundings& around;  ///< which are about it
};
/// Why an event does not have it.
struct NoWord {
  std::string reason;
};
/// What a word is of one event.
using WordValue = std::variant<std::uint64_t, std::string, NoWord>;
/// As questions have it: of calls and spans `nsecs` and `elapsed` are of their end, all else is of their beginning.
/// Stacks are folded: "main;serve;read".
[[nodiscard]] WordValue word_value(usdt::HitField word, const usdt::Event& event, const WordSource& source);
/// HitField::ustack or kstack, or why there is none.
[[nodiscard]] usdt::Result<const usdt::Stack*> stack_value(usdt::HitField word, const usdt::Event& event,
                                                           usdt::Surroundings& around);
/// A number as lines show it: times with a unit, addresses in hexadecimal.
[[nodiscard]] std::string word_text(usdt::HitField word, std::uint64_t number);

}  // namespace usdt_trace
