// SPDX-License-Identifier: BSD-2-Clause
// The question that a recording answers, as the recording has it: a replay shows the values that were asked for, and
// words its account as the trace did. recording_info() and list_properties() go to the writer of a recording,
// recorded_question() reads them back. Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/account.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"
#include "usdt/recording.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Returns what a recording of answers to `question` begins with. `made_by`: the program, "usdt-trace 1.0.0".
[[nodiscard]] RecordingInfo recording_info(const Question& question, const Printed& printed, std::string made_by);
/// Returns properties that say by which lists the probes from `first` on are shown.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> list_properties(const Printed& printed,
                                                                               std::size_t first);
/// Returns an account as recordings have it.
[[nodiscard]] RecordedLedger recorded_ledger(const SessionSummary& summary);
/// Returns the account that a recording has, as that of the trace it was made of.
[[nodiscard]] SessionSummary summary_of(const RecordedLedger& ledger);

/// The parts of its question that a recording has.
struct RecordedQuestion {
  Printed printed = {};
  std::string where = {};                             ///< as text; empty: every hit counted
  AskedStacks stacks = {};                            ///< depths, and whether they are in lists alone
  AskedLimits limits = {};                            ///< sample, max_rate and max_overhead
  std::optional<std::chrono::nanoseconds> last = {};  ///< it has only the events of the last while
  std::uint64_t began = 0;                            ///< Question::began; 0: not known
};
/// Reads them. Messages put `option_prefix` before the names of options. Errors: syntax (a list that is none).
[[nodiscard]] Result<RecordedQuestion> recorded_question(const Recording& recording,
                                                         std::string_view option_prefix = {});

}  // namespace v1
}  // namespace usdt
