// SPDX-License-Identifier: BSD-2-Clause
#include "export/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "export/frames.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"
#include "usdt/event.hpp"

namespace usdt::exports::report {
namespace {

using io::json_key;
using io::json_text;
using io::JsonWriter;

/// A number; as text where numbers of JavaScript do not have all its digits.
void number(JsonWriter& json, const Int128& number) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const std::string digits = decimal_text(number);
  if (number > kMost || number < -kMost) return json_text(json, digits);
  json.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
}

void member(JsonWriter& json, std::string_view name, const Int128& value) { json_key(json, name), number(json, value); }
void member(JsonWriter& json, std::string_view name, std::string_view value) {
  json_key(json, name), json_text(json, value);
}

void write_bars(JsonWriter& json, const ArrangedRow& row, const View* view) {
  json_key(json, "bars"), json.StartArray();
  for (const ArrangedRow::Bar& bar : row.bars) {
    json.StartArray();
    if (const auto* whole = std::get_if<Bucket>(&bar.range)) {
      number(json, whole->first), number(json, whole->last);
    } else {
      const auto& real = std::get<RealBucket>(bar.range);
      io::json_real(json, real.first), io::json_real(json, real.end);
    }
    json.Uint64(bar.count);
    if (view != nullptr) json_text(json, range_text(*view, bar.range));
    json.EndArray();
  }
  json.EndArray();
}

void write_percentiles(JsonWriter& json, const ArrangedRow& row) {
  for (const auto& [name, permille] : {std::pair("p50", 500U), {"p90", 900U}, {"p99", 990U}, {"p99.9", 999U}})
    member(json, name, row.percentile(permille));
}

/// Members of an object: "count", "sum", extremes and percentiles, all numbers of `row` that there are.
void write_numbers(JsonWriter& json, const ArrangedRow& row) {
  member(json, "count", row.count);
  member(json, "sum", row.sum);
  member(json, "min", row.minimum);
  member(json, "max", row.maximum);
  write_percentiles(json, row);
}

/// "heat": columns from old to new, each its beginning, ns since `origin`, and what rows have.
void write_heat(JsonWriter& json, const HeatGrid& grid, std::uint64_t origin) {
  json_key(json, "heat"), json.StartObject();
  member(json, "step", grid.step());
  json_key(json, "columns"), json.StartArray();
  for (const auto& [column, rows] : grid.columns()) {
    json.StartArray();
    number(json, Int128(column * grid.step()) - origin);
    for (const auto& [row, count] : rows) json.Int64(row), json.Uint64(count);
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
}

/// "ranges": what numbers rows of heat maps stand for, by key.
void write_ranges(JsonWriter& json, const HeatGrid& grid) {
  std::set<std::int64_t> keys;
  for (const auto& [column, rows] : grid.columns())
    for (const auto& [row, count] : rows) keys.insert(row);
  json_key(json, "ranges"), json.StartArray();
  for (const std::int64_t key : keys) {
    const Bucket bucket = Bucket::log2(key, kHeatSubBits);
    json.StartArray();
    json.Int64(key), number(json, bucket.first), number(json, bucket.last);
    json.EndArray();
  }
  json.EndArray();
}

}  // namespace

std::uint32_t Threads::add(const Event& event) {
  const std::uint64_t key = std::uint64_t{event.pid()} << 32 | event.tid();
  auto known = numbers_.find(key);
  if (known == numbers_.end() && threads_.size() < kMostThreads) {
    known = numbers_.emplace(key, static_cast<std::uint32_t>(threads_.size())).first;
    threads_.push_back({.pid = event.pid(), .tid = event.tid()});
  }
  if (known == numbers_.end() && threads_.size() == kMostThreads) threads_.emplace_back();
  const auto number = known == numbers_.end() ? static_cast<std::uint32_t>(kMostThreads) : known->second;
  Thread& thread = threads_[number];
  if (number < kMostThreads && thread.comm != event.comm()) thread.comm = event.comm();
  ++thread.count;
  thread.duration += event.duration();
  thread.longest = std::max(thread.longest, event.duration());
  return number;
}

namespace {

void write_probes(JsonWriter& json, const std::vector<ProbeEvents>& probes, const ShortNames& names) {
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < probes.size(); ++n)
    if (probes[n].count > 0) order.push_back(n);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t n) { return probes[n].count; });
  member(json, "probes_folded", order.size() - std::min(order.size(), kMostRows));
  json_key(json, "probes"), json.StartArray();
  for (std::size_t place = 0; place < std::min(order.size(), kMostRows); ++place) {
    const ProbeEvents& probe = probes[order[place]];
    json.StartObject();
    member(json, "number", order[place]);
    member(json, "name", io::printable(names[order[place]]));
    member(json, "events", probe.count);
    if (const ArrangedRow row = probe.durations.row(); row.count > 0) {
      write_numbers(json, row);
      if (place < kMostHistograms) write_bars(json, row, nullptr);
    }
    json.EndObject();
  }
  json.EndArray();
}

void write_threads(JsonWriter& json, const Threads& threads) {
  member(json, "threads_folded", threads.has_others() ? threads.all().back().count : 0);
  json_key(json, "threads"), json.StartArray();
  for (std::size_t n = 0; n < threads.all().size(); ++n) {
    const Thread& thread = threads.all()[n];
    json.StartArray();
    json.Uint(thread.pid), json.Uint(thread.tid);
    json_text(json, n == kMostThreads ? "other threads" : io::escaped(thread.comm));
    json.Uint64(thread.count), number(json, thread.duration), json.Uint64(thread.longest);
    json.EndArray();
  }
  json.EndArray();
}

void begin_measure(JsonWriter& json, std::string_view name, std::string_view kind) {
  json.StartObject();
  member(json, "name", name);
  member(json, "kind", kind);
}

/// "measures": numbers that have a histogram or a heat map.
void write_measures(JsonWriter& json, const EventFolds& folds) {
  NumberCounts durations = folds.other_durations;
  for (const ProbeEvents& probe : folds.probes) durations.add(probe.durations);
  json_key(json, "measures"), json.StartArray();
  if (const ArrangedRow row = durations.row(); row.count > 0) {
    begin_measure(json, "duration", "duration");
    write_numbers(json, row), write_bars(json, row, nullptr);
    write_heat(json, folds.durations, folds.first), write_ranges(json, folds.durations);
    json.EndObject();
  }
  for (const auto& [name, value] : folds.values) {
    if (value.numbers.numbers.count() == 0 || value.is_address) continue;
    begin_measure(json, io::printable(name), "value");
    const ArrangedRow row = value.numbers.numbers.row();
    write_numbers(json, row), write_bars(json, row, nullptr);
    if (value.number < kRowsOfSpans) {
      member(json, "rows", value.number);
      write_heat(json, value.numbers.heat, folds.first), write_ranges(json, value.numbers.heat);
    }
    json.EndObject();
  }
  begin_measure(json, "events by probe", "probe");
  write_heat(json, folds.hits, folds.first);
  json.EndObject();
  json.EndArray();
}

/// "tops": values by their text, most frequent first.
void write_tops(JsonWriter& json, const EventFolds& folds) {
  constexpr std::size_t kMostShown = 200;
  member(json, "values_folded", folds.unnamed_values);
  json_key(json, "tops"), json.StartArray();
  for (const auto& [name, value] : folds.values) {
    const auto ranked = value.texts.ranked();
    TextCounts::Counted others = value.texts.others();
    json.StartObject();
    member(json, "name", io::printable(name));
    json_key(json, "rows"), json.StartArray();
    for (std::size_t n = 0; n < ranked.size(); ++n) {
      const auto& [text, counted] = ranked[n];
      if (n >= kMostShown) {
        others.count += counted.count;
        others.duration += counted.duration;
        continue;
      }
      json.StartArray();
      json_text(json, text), json.Uint64(counted.count), number(json, counted.duration);
      json.EndArray();
    }
    json.EndArray();
    member(json, "others", others.count);
    json.EndObject();
  }
  json.EndArray();
}

template <class Of>
void write_column(JsonWriter& json, std::string_view name, const std::vector<KeptSpan>& spans, const Of& of) {
  json_key(json, name), json.StartArray();
  for (const KeptSpan& span : spans) json.Int64(static_cast<std::int64_t>(of(span)));
  json.EndArray();
}

/// The texts of spans, each once; those of the longest spans where there is no room for all.
class SpanTexts {
 public:
  explicit SpanTexts(const std::vector<KeptSpan>& spans) {
    std::vector<const KeptSpan*> order;
    for (const KeptSpan& span : spans) order.push_back(&span);
    std::ranges::stable_sort(order, std::greater<>(), &KeptSpan::duration);
    std::size_t bytes = 0;
    for (const KeptSpan* span : order) {
      if (numbers_.contains(span->values)) continue;
      if (bytes + span->values.size() > kMostTextBytes) {
        ++left_out_;
        continue;
      }
      bytes += span->values.size();
      texts_.push_back(numbers_.emplace(span->values, texts_.size()).first->first);
    }
  }
  /// Returns the number of a text; -1: it was left out.
  [[nodiscard]] std::int64_t number_of(const KeptSpan& span) const {
    const auto found = numbers_.find(span.values);
    return found == numbers_.end() ? -1 : static_cast<std::int64_t>(found->second);
  }
  [[nodiscard]] const std::vector<std::string_view>& all() const noexcept { return texts_; }
  /// Returns how many spans have no text.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  std::unordered_map<std::string_view, std::size_t> numbers_;
  std::vector<std::string_view> texts_;
  std::uint64_t left_out_ = 0;
};

/// "spans": by column, in the order of time. Each beginning is the time since the one before, ns.
void write_spans(JsonWriter& json, EventFolds& folds) {
  const std::uint64_t all = folds.spans.added();
  const std::vector<KeptSpan> spans = folds.spans.take();
  const SpanTexts texts(spans);
  json_key(json, "spans"), json.StartObject();
  member(json, "all", all);
  member(json, "without_values", texts.left_out());
  std::uint64_t before = folds.first;
  write_column(json, "begins", spans,
               [&](const KeptSpan& span) { return span.begin - std::exchange(before, span.begin); });
  write_column(json, "durations", spans, [](const KeptSpan& span) { return span.duration; });
  write_column(json, "threads", spans, [](const KeptSpan& span) { return span.thread; });
  write_column(json, "probes", spans, [](const KeptSpan& span) { return span.probe; });
  write_column(json, "values", spans, [&](const KeptSpan& span) { return texts.number_of(span); });
  json_key(json, "rows"), json.StartArray();
  for (std::size_t n = 0; n < std::min(folds.measures, kRowsOfSpans); ++n) {
    json.StartArray();
    for (const KeptSpan& span : spans) span.rows[n] == kNoRow ? json.Null() : json.Int(span.rows[n]);
    json.EndArray();
  }
  json.EndArray();
  json_key(json, "texts"), json.StartArray();
  for (const std::string_view text : texts.all()) json_text(json, text);
  json.EndArray();
  json.EndObject();
}

}  // namespace

void write_events(JsonWriter& json, EventFolds& folds, const ShortNames& names) {
  member(json, "began", decimal_text(Int128(folds.first) + folds.wall_offset));
  member(json, "length", folds.last - folds.first);
  write_probes(json, folds.probes, names);
  write_threads(json, folds.threads);
  write_measures(json, folds);
  write_tops(json, folds);
  write_spans(json, folds);
}

namespace {

std::string_view words_of(CountRole role) {
  switch (role) {
    case CountRole::lost:
      return "lost";
    case CountRole::left_out:
      return "left out";
    case CountRole::part:
      return "of these";
    case CountRole::pairing:
      return "of spans";
    case CountRole::estimate:
      return "estimated";
    case CountRole::all:
    case CountRole::events:
      break;
  }
  return {};
}

}  // namespace

void write_ledger(JsonWriter& json, const SessionSummary& summary, const Question& question, const AttachPlan& plan) {
  constexpr std::size_t kMostSites = 5;
  const Account total = summary.total();
  const std::uint16_t causes = count_causes(question, plan);
  json_key(json, "ledger"), json.StartObject();
  member(json, "hits", total.hits);
  member(json, "events", total.delivered);
  member(json, "lost", total.lost());
  json_key(json, "counts"), json.StartArray();
  for (const CountInfo& count : counts()) {
    const auto told = tell_count(count, total, plan.spans.has_value());
    if (!told || told->role == CountRole::all || told->role == CountRole::events) continue;
    const bool is_there = told->value > 0 && (count.comes_of & kIfAny) != 0;
    if (!is_there && count.comes_of != 0 && (count.comes_of & causes) == 0) continue;
    json.StartArray();
    json_text(json, told->name), json_text(json, words_of(told->role));
    json.Uint64(told->value), json_text(json, count.words);
    json.EndArray();
  }
  json.EndArray();
  if (summary.missed) member(json, "missed", *summary.missed);
  member(json, "skipped", summary.skipped.size());
  json_key(json, "sites"), json.StartArray();
  for (const SkippedSite& site : std::span(summary.skipped).first(std::min(kMostSites, summary.skipped.size()))) {
    json.StartArray();
    json_text(json, io::printable(full_name(plan, plan.probes[site.probe])));
    json_text(json, io::printable(site.reason));
    json.EndArray();
  }
  json.EndArray();
  member(json, "sample", question.limits.sample);
  if (!summary.cut.empty()) member(json, "cut", io::printable(summary.cut));
  json.EndObject();
}

namespace {

std::string shown_key(const ShownTable& shown, std::size_t i, const TableKey& key) {
  constexpr std::size_t kMost = 1000;
  std::string text;
  const auto* stack = std::get_if<TableStack>(&key);
  if (stack == nullptr)
    text = io::printable(key_text(shown.plan, shown.table.keys[i], key));
  else
    text = io::escaped(stack->names ? folded_text(*stack->names) : "[" + stack->why_none + "]");
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);  // of a stack its innermost functions
  return text;
}

void write_row(JsonWriter& json, const ShownTable& shown, const ArrangedRow& row) {
  const View& view = shown.view;
  json.StartArray();
  for (std::size_t i = 0; i < view.shown_keys(shown.table); ++i) json_text(json, shown_key(shown, i, row.keys[i]));
  for (const RowNumber each : view.shown) {
    json_text(json, shown_number(each, view, row));
    const auto real = row.real(each);
    real ? io::json_real(json, *real) : number(json, row.integer(each));
  }
  if (row.per_second) json_text(json, rate_text(*row.per_second)), io::json_real(json, *row.per_second);
  json.EndArray();
}

}  // namespace

namespace {

/// A row's numbers beside its histogram, those that it has.
void write_numbers_of(JsonWriter& json, const View& view, const ArrangedRow& row) {
  member(json, "count", row.count);
  if (!view.latency) return;
  member(json, "sum", row.sum);
  member(json, "max", row.maximum);
  write_percentiles(json, row);
}

/// Whether the numbers of buckets are durations.
bool is_about_durations(const View& view) {
  return view.is_about_durations() || view.value == info_of(HitField::duration).word;
}

}  // namespace

/// A row has a text for each key, then a text and a number to order by for each of its numbers.
void write_report_table(JsonWriter& json, const ShownTable& shown) {
  const View& view = shown.view;
  const std::size_t most = std::min({shown.rows.size(), view.top, kMostRows});
  const bool rates = most > 0 && shown.rows.front().per_second.has_value();
  json.StartObject();
  json_key(json, "columns"), json.StartArray();
  for (std::size_t i = 0; i < view.shown_keys(shown.table); ++i)
    json_text(json, io::printable(shown.table.keys[i].label));
  for (const RowNumber each : view.shown) json_text(json, io::printable(header_of(each, view)));
  if (rates) json_text(json, "PER SECOND");
  json.EndArray();
  member(json, "keys", view.shown_keys(shown.table));
  member(json, "value", view.latency ? "duration" : io::printable(view.value));
  json_key(json, "is_duration"), json.Bool(is_about_durations(view));
  json_key(json, "linear"), json.Bool(view.histogram == Histogram::linear);
  json_key(json, "rows"), json.StartArray();
  for (std::size_t n = 0; n < most; ++n) write_row(json, shown, shown.rows[n]);
  json.EndArray();
  member(json, "more", shown.rows.size() - most);
  json_key(json, "histograms"), json.StartArray();
  for (std::size_t n = 0; n < std::min(most, kMostHistograms) && view.has_buckets(); ++n) {
    json.StartObject();
    write_numbers_of(json, view, shown.rows[n]);
    write_bars(json, shown.rows[n], &view);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void write_slices(JsonWriter& json, const HeatMap& map, const View& view) {
  std::map<std::int64_t, BucketRange> ranges;
  const std::int64_t origin = map.slices().front().from;
  json_key(json, "slices"), json.StartObject();
  member(json, "began", decimal_text(Int128(origin)));
  member(json, "length", map.slices().back().to - origin);
  member(json, "value", io::printable(view.value));
  json_key(json, "is_duration"), json.Bool(is_about_durations(view));
  json_key(json, "columns"), json.StartArray();
  for (const HeatSlice& slice : map.slices()) {
    json.StartArray();
    json.Int64(slice.from - origin), json.Int64(slice.to - origin);
    for (const auto& [key, count] : slice.counts) {
      json.Int64(key), json.Uint64(count);
      ranges.emplace(key, range_of(view, slice.reals, key, key));
    }
    json.EndArray();
  }
  json.EndArray();
  ArrangedRow rows;
  for (const auto& [key, range] : ranges) rows.bars.push_back({key, range, static_cast<std::uint64_t>(0)});
  json_key(json, "keys"), json.StartArray();
  for (const auto& [key, range] : ranges) json.Int64(key);
  json.EndArray();
  write_bars(json, rows, &view);
  json.EndObject();
}

}  // namespace usdt::exports::report
