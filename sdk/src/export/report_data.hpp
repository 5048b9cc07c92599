// SPDX-License-Identifier: BSD-2-Clause
// The data that a report has of the events of a trace, and how its page is given them (report_page.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/output.hpp"
#include "export/report_fold.hpp"
#include "export/table_output.hpp"
#include "io/json.hpp"
#include "usdt/account.hpp"
#include "usdt/question.hpp"

namespace usdt::exports::report {

inline constexpr std::size_t kMostSpans = 200'000;      ///< that are shown by themselves
inline constexpr std::size_t kMostThreads = 4096;       ///< that are told apart
inline constexpr std::size_t kMostColumns = 1024;       ///< of heat maps
inline constexpr std::size_t kMostValues = 16;          ///< names of values that are counted,
inline constexpr std::size_t kMostTexts = 2000;         ///< and of each so many different ones
inline constexpr std::size_t kMostValueBytes = 200;     ///< of the values of a span as text
inline constexpr std::size_t kMostTextBytes = 6 << 20;  ///< of all of them on the page
inline constexpr std::size_t kMostRows = 2000;          ///< of a table on the page
inline constexpr std::size_t kMostHistograms = 100;     ///< of rows and probes on the page
inline constexpr std::size_t kMostFrames = 20'000;      ///< of the flame graph on the page,
inline constexpr std::size_t kMostFrameBytes = 300;     ///< and of the name of one
inline constexpr std::size_t kMostTimedProbes = 1000;   ///< that have a histogram of their own
inline constexpr std::size_t kMostProbeRows = 64;  ///< of the heat map of events by probe, without that of the others
inline constexpr unsigned kHeatSubBits = 2;        ///< of rows of heat maps: as log2_buckets() has it

/// A number by which events are counted, and of the first ones when there were how many of which size.
struct Measure {
  NumberCounts numbers = {};
  HeatGrid heat{kMostColumns};
};

struct Thread {
  std::uint32_t pid = 0, tid = 0;
  std::string comm = {};
  std::uint64_t count = 0;
  std::uint64_t longest = 0;  ///< ns
  Int128 duration = 0;        ///< ns, of all of it
};

/// The threads of a trace by number. Those that there is no room for are one, the last.
class Threads {
 public:
  /// Counts an event of its thread, and returns the number of that.
  std::uint32_t add(const Event& event);
  [[nodiscard]] const std::vector<Thread>& all() const noexcept { return threads_; }
  /// Whether the last one stands for several.
  [[nodiscard]] bool has_others() const noexcept { return threads_.size() > kMostThreads; }

 private:
  std::map<std::uint64_t, std::uint32_t> numbers_;  ///< by process and thread
  std::vector<Thread> threads_;
};

/// A value of events that has a name.
struct NamedValue {
  TextCounts texts{kMostTexts};
  Measure numbers = {};     ///< where it is a whole number
  std::size_t number = 0;   ///< of the values with a number: its place in KeptSpan::rows, if it is within
  bool is_address = false;  ///< some of the numbers look like one: they are no sizes
};

/// The events of one probe.
struct ProbeEvents {
  NumberCounts durations = {};
  std::uint64_t count = 0;
  bool is_timed = false;  ///< it has `durations` of its own
  bool has_row = false;   ///< in the heat map of events by probe
};

/// All that is kept of events.
struct EventFolds {
  std::uint64_t first = UINT64_MAX, last = 0;  ///< ns of CLOCK_MONOTONIC
  std::int64_t wall_offset = 0;                ///< of the first event
  std::vector<ProbeEvents> probes = {};        ///< by AttachPlan::probes
  std::size_t timed_probes = 0, probe_rows = 0;
  NumberCounts other_durations = {};  ///< of probes that there is no room for
  Threads threads = {};
  HeatGrid durations{kMostColumns}, hits{kMostColumns};  ///< by log2_key() of the duration; by probe, -1: others
  std::map<std::string, NamedValue, std::less<>> values = {};
  std::size_t measures = 0;          ///< of the values, how many have a number
  std::uint64_t unnamed_values = 0;  ///< values of names that there is no room for
  KeptSpans spans{kMostSpans};
};

/// Writes members of the page's object about events. `names`: of probes. Empties `folds`.
void write_events(io::JsonWriter& json, EventFolds& folds, const ShortNames& names);
/// Writes "ledger": what became of the hits.
void write_ledger(io::JsonWriter& json, const SessionSummary& summary, const Question& question,
                  const AttachPlan& plan);
/// Writes a table as an element of "tables".
void write_report_table(io::JsonWriter& json, const ShownTable& shown);
/// Writes "slices": a heat map whose hits are known by stretch of time alone.
void write_slices(io::JsonWriter& json, const HeatMap& map, const View& view);

}  // namespace usdt::exports::report
