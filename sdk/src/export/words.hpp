// SPDX-License-Identifier: BSD-2-Clause
// Words of questions (HitField) among what is shown of events: "pid", "elapsed", "ip".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "usdt/hit_field.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"
#include "usdt/surroundings.hpp"

namespace usdt::exports {

/// Facts about one event beside those in it.
struct WordSource {
  std::uint64_t began;     ///< Flags::began
  std::string_view probe;  ///< the name of its probe
  Surroundings& around;    ///< which are about it
};
/// Why an event does not have it.
struct NoWord {
  std::string reason;
};
/// The value of a word for one event.
using WordValue = std::variant<std::uint64_t, std::string, NoWord>;
/// As questions have it: of calls and spans `nsecs` and `elapsed` are of their end, all else is of their beginning.
/// Stacks are folded: "main;serve;read".
[[nodiscard]] WordValue word_value(HitField word, const Event& event, const WordSource& source);
/// The value of an item that is known of every hit: its word, or its attribute.
[[nodiscard]] WordValue value_of_hit(const PrintItem& item, const Event& event, const WordSource& source);
/// HitField::ustack or kstack, or why there is none.
[[nodiscard]] Result<const Stack*> stack_value(HitField word, const Event& event, Surroundings& around);
/// A number as lines show it: times with a unit, addresses in hexadecimal.
[[nodiscard]] std::string word_text(HitField word, std::uint64_t number);

/// Whether an event is shown with what its thread worked for, which is asked for, or recorded: where its list does not
/// name that.
[[nodiscard]] bool shows_trace_context(const Question& question, const Event& event, const PrintList& list);
/// Whether it is shown with the attributes of that.
[[nodiscard]] bool shows_attributes(const Question& question, const Event& event, const PrintList& list);

}  // namespace usdt::exports
