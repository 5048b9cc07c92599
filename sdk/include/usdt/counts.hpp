// SPDX-License-Identifier: BSD-2-Clause
// Counts what became of the hits of a probe: ProbeCounts has the numbers, and counts() is the one table of what each of
// them is called, where it is, and what it means for the sums. The words of ledgers, JSON, recordings, libusdt-c and
// the languages over it are made from that table; whoever adds numbers up goes over it, and so does not miss a new one.
// Plain values, for any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// Counts what became of the hits of one probe. These sums always hold:
/// - A trace with events, and a table: hits == delivered + all that has the role CountRole::lost or kLeftOut. Of a
/// table
///   `delivered` are the hits in its rows.
/// - A trace that only counts: `hits`, and of them those that were left out. Calls whose filter asks what only their
///   end knows are `unfinished` while they have not ended.
/// - The probe that ends spans: as above, with unmatched + unpaired besides.
/// - The probe that begins spans: hits == paired + not_sampled + calls_full + unfinished + abandoned + unpaired.
struct ProbeCounts {
  std::uint64_t hits = 0;        ///< the program ran for a process that counts
  std::uint64_t delivered = 0;   ///< a callback took the event
  std::uint64_t ring_full = 0;   ///< lost: the consumer was too slow for the ring
  std::uint64_t calls_full = 0;  ///< lost: calls and spans whose beginning could not be kept
  std::uint64_t unfinished = 0;  ///< calls and spans that have not ended: by now, or when the trace did
  /// Calls and spans that will not be seen to end: their threads have ended or have become other programs, the function
  /// was left without a return (longjmp()), or others needed the room (TraceOptions::max_open_calls). While the trace
  /// runs, those that are known by now.
  std::uint64_t abandoned = 0;
  std::uint64_t given_up = 0;  ///< of these, those that may have been given up for want of room
  /// PlanOptions::where is not true of `rejected`; of `undecided` it is not known, since something could not be read.
  std::uint64_t rejected = 0, undecided = 0;
  /// Hits that found no room for another row of a table, beyond TableQuestion::max_rows.
  std::uint64_t table_full = 0;
  /// Recorded, but not taken: the consumer had stopped taking events (--max-events), or its callback threw.
  std::uint64_t discarded = 0;
  /// Lost: the event did not get to where it was to be written; not among `delivered`. A tracer does not know: 0.
  std::uint64_t not_written = 0;
  /// Lost: a sink that adds up stacks had no room for another one; not among `delivered`. A tracer does not know: 0.
  std::uint64_t folded_full = 0;
  std::uint64_t paired = 0;     ///< beginnings of spans whose end came
  std::uint64_t unmatched = 0;  ///< ends of spans that had not begun
  std::uint64_t unpaired = 0;   ///< of spans: what pairs them could not be read
  /// Not chosen (TraceOptions::sample), or hit while sites were attached or detached for max_overhead; of the ends of
  /// spans, those whose beginning was not chosen.
  std::uint64_t not_sampled = 0;
  std::uint64_t held_back = 0;  ///< TraceOptions::max_rate
  std::uint64_t faster = 0;     ///< TraceOptions::slow_only
  /// Hits that the filter lets pass under TraceOptions::max_overhead, those included that came while nothing was
  /// attached, as far as can be told. In no other number; else 0.
  std::uint64_t estimated = 0;
  /// Hits that the kernel ran no program for (Link::missed_hits()): in no other number. Nothing: the kernel does not
  /// count them, or only those of several probes together.
  std::optional<std::uint64_t> missed = 0;
};

/// Tells what a number means for the sums.
enum class CountRole : std::uint8_t {
  all,       ///< the hits
  events,    ///< hits that became what was asked for
  lost,      ///< hits that should have become that
  left_out,  ///< hits that should not
  part,      ///< of another number
  pairing,   ///< of spans: how ends and beginnings came together
  estimate,  ///< in no other number
};

/// Lists the parts of a question that a number can come of, as bits; 0: every trace has it.
enum CountCause : std::uint16_t {
  kOfSample = 1,     ///< TraceOptions::sample
  kOfOverhead = 2,   ///< TraceOptions::max_overhead
  kOfRate = 4,       ///< TraceOptions::max_rate
  kOfSlowest = 8,    ///< TraceOptions::slow_only
  kOfWhere = 16,     ///< PlanOptions::where
  kOfTable = 32,     ///< PlanOptions::table
  kOfCalls = 64,     ///< calls, whose events are made where they end
  kOfSpans = 128,    ///< spans
  kIfAny = 1U << 15  ///< beside the parts: it is shown wherever it is not 0
};

/// Describes a number of ProbeCounts.
struct CountInfo {
  std::string_view name;               ///< "ring_full", as JSON calls it
  std::uint64_t ProbeCounts::*member;  ///< its place
  CountRole role;
  std::uint16_t comes_of;  ///< bits of CountCause
  /// Place in the account of a recording, from 1; 0: it is not recorded. Places are never given anew.
  std::uint8_t recorded;
  bool seldom;             ///< a line for people has it only where it is not 0
  std::string_view words;  ///< for people: "the reader was too slow for the ring"
};

/// Returns all numbers, each once, in the order in which they are shown.
[[nodiscard]] std::span<const CountInfo> counts() noexcept;
/// Adds up the numbers that have one of `roles`; UINT64_MAX: there is no such number, as in what somebody made up.
[[nodiscard]] std::uint64_t sum_counts(const ProbeCounts& of, std::initializer_list<CountRole> roles) noexcept;

}  // namespace v1
}  // namespace usdt
