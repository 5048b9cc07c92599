// SPDX-License-Identifier: BSD-2-Clause
#include "flags_together.hpp"

#include <algorithm>
#include <array>

#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

/// What does not go together, and whether it is asked for.
struct Rule {
  bool broken = false;
  const char* why = "";
};

/// What output in a format cannot have.
std::array<Rule, 5> rules_of_output(const Flags& flags, const RawFlags& raw) {
  const usdt::Question& question = flags.question;
  const bool csv = flags.output.format == Format::csv;
  return {
      Rule{question.view.folded && flags.output.format == Format::json, "--folded is text: JSON has the stacks anyway"},
      Rule{csv && (question.view.folded || !question.values.format.empty()),
           "--format csv has columns: --folded and --format-string are lines of their own"},
      Rule{csv && !question.values.print.for_probes.empty(),
           "--format csv has the same columns for all probes: one --print LIST"},
      Rule{csv && !question.name.empty(), "--format csv is of one question: those of a script have different columns"},
      Rule{question.view.no_events() && !raw.strings.empty(), "--strings is of events: --count and tables show none"},
  };
}

}  // namespace

usdt::Result<void> check_together(const Flags& flags, const RawFlags& raw) {
  const auto rules = rules_of_output(flags, raw);
  const auto broken = std::ranges::find(rules, true, &Rule::broken);
  return broken == rules.end() ? usdt::check_question(flags.question) : wrong(broken->why);
}

}  // namespace usdt_trace
