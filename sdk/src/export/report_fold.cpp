// SPDX-License-Identifier: BSD-2-Clause
#include "export/report_fold.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace usdt::exports::report {

std::int64_t log2_key(expr::Number number, unsigned sub_bits) {
  const auto key = expr::apply(Operator::log2_bucket, number, {sub_bits, false});
  return key ? static_cast<std::int64_t>(key->bits) : 0;
}

void NumberCounts::add(expr::Number number) {
  const Int128 value = number.is_signed ? Int128(static_cast<std::int64_t>(number.bits)) : Int128(number.bits);
  ++counts_[log2_key(number, kLatencySubBits)];
  minimum_ = count_ == 0 ? value : std::min(minimum_, value);
  maximum_ = count_ == 0 ? value : std::max(maximum_, value);
  sum_ += value;
  ++count_;
}

void NumberCounts::add(const NumberCounts& other) {
  if (other.count_ == 0) return;
  for (const auto& [key, count] : other.counts_) counts_[key] += count;
  minimum_ = count_ == 0 ? other.minimum_ : std::min(minimum_, other.minimum_);
  maximum_ = count_ == 0 ? other.maximum_ : std::max(maximum_, other.maximum_);
  sum_ += other.sum_;
  count_ += other.count_;
}

ArrangedRow NumberCounts::row() const {
  ArrangedRow row;
  row.count = count_;
  row.sum = sum_;
  row.minimum = minimum_;
  row.maximum = maximum_;
  for (const auto& [key, count] : counts_) row.bars.push_back({key, Bucket::log2(key, kLatencySubBits), count});
  return row;
}

void HeatGrid::add(std::uint64_t time, std::int64_t row) {
  std::uint64_t number = time >> shift_;
  if (column_ == nullptr || number != latest_) {
    column_ = &columns_[number];
    while (columns_.rbegin()->first - columns_.begin()->first >= most_) double_step();
    latest_ = time >> shift_;
    column_ = &columns_[latest_];
  }
  ++(*column_)[row];
}

void HeatGrid::double_step() {
  std::map<std::uint64_t, Column> wider;
  for (auto& [number, column] : columns_) {
    Column& into = wider[number >> 1];
    if (into.empty())
      into = std::move(column);
    else
      for (const auto& [row, count] : column) into[row] += count;
  }
  columns_ = std::move(wider);
  ++shift_;
}

void KeptSpans::add(KeptSpan span) {
  ++added_;
  if (spans_.size() >= most_) fold();
  spans_.push_back(std::move(span));
}

std::vector<KeptSpan> KeptSpans::take() {
  if (added_ > spans_.size()) fold();
  std::ranges::sort(spans_, [](const KeptSpan& a, const KeptSpan& b) {
    return std::tie(a.begin, b.duration, a.thread) < std::tie(b.begin, a.duration, b.thread);
  });
  return std::move(spans_);
}

namespace {

/// A span and the group of which the longest are kept.
struct Ranked {
  std::uint64_t group;
  std::uint32_t thread;
  std::uint32_t span;

  [[nodiscard]] bool is_with(const Ranked& other) const { return thread == other.thread && group == other.group; }
  /// An order without a meaning, so that of spans that are equally long some of each part of the time stay.
  [[nodiscard]] std::uint32_t chance() const { return span * 2'654'435'761U; }
};

/// Finds the longest of each group.
class Ranking {
 public:
  explicit Ranking(const std::vector<KeptSpan>& spans) : spans_(spans) {
    ranked_.resize(spans.size());
    for (std::uint32_t n = 0; n < spans.size(); ++n) ranked_[n].span = n;
  }

  /// Makes a group of each thread, stretch of time (so many bits of ns) and power of two of the duration.
  void group(unsigned shift) {
    constexpr unsigned kDurationBits = 6;
    for (Ranked& each : ranked_) {
      const KeptSpan& span = spans_[each.span];
      const auto width = std::min<std::uint64_t>(std::bit_width(span.duration), (1U << kDurationBits) - 1);
      each.thread = span.thread;
      each.group = span.begin >> shift << kDurationBits | width;
    }
    order();
  }
  /// Makes one group of all.
  void group_all() {
    for (Ranked& each : ranked_) each.thread = 0, each.group = 0;
    order();
  }
  /// Returns how many of each group may be kept, so that there are at most `most` in all.
  [[nodiscard]] std::size_t places_within(std::size_t most) const {
    std::vector<std::size_t> at_place;
    for_each_place([&](std::size_t place, std::uint32_t /*span*/) {
      if (place >= at_place.size()) at_place.resize(place + 1);
      ++at_place[place];
    });
    std::size_t places = 0;
    for (std::size_t kept = 0; places < at_place.size() && kept + at_place[places] <= most; ++places)
      kept += at_place[places];
    return places;
  }
  /// Calls `take` with the place that each span has in its group, and its number.
  template <class Take>
  void for_each_place(const Take& take) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      place = i > 0 && ranked_[i].is_with(ranked_[i - 1]) ? place + 1 : 0;
      take(place, ranked_[i].span);
    }
  }

 private:
  void order() {
    std::ranges::sort(ranked_, [&](const Ranked& a, const Ranked& b) {
      return std::tuple(a.thread, a.group, spans_[b.span].duration, a.chance()) <
             std::tuple(b.thread, b.group, spans_[a.span].duration, b.chance());
    });
  }

  const std::vector<KeptSpan>& spans_;
  std::vector<Ranked> ranked_;
};

}  // namespace

void KeptSpans::fold() {
  constexpr std::uint64_t kMostStretches = 1024;
  const std::size_t most = std::max<std::size_t>(most_ / 2, 1);
  const auto [earliest, latest] = std::ranges::minmax_element(spans_, {}, &KeptSpan::begin);
  const std::uint64_t first = earliest->begin, last = latest->begin;
  while ((last >> shift_) - (first >> shift_) >= kMostStretches) ++shift_;
  Ranking ranking(spans_);
  ranking.group(shift_);
  std::size_t places = ranking.places_within(most);
  for (; places == 0 && last >> shift_ != first >> shift_; places = ranking.places_within(most))
    ranking.group(++shift_);
  if (places == 0) {  // there are more threads than room
    ranking.group_all();
    places = most;
  }
  std::vector<KeptSpan> kept;
  kept.reserve(most_);
  ranking.for_each_place([&](std::size_t place, std::uint32_t span) {
    if (place < places) kept.push_back(std::move(spans_[span]));
  });
  spans_ = std::move(kept);
}

void TextCounts::add(std::string_view text, std::uint64_t duration) {
  auto known = counts_.find(text);
  if (known == counts_.end() && counts_.size() < most_) known = counts_.try_emplace(std::string(text)).first;
  Counted& counted = known == counts_.end() ? others_ : known->second;
  ++counted.count;
  counted.duration += duration;
}

std::vector<std::pair<std::string_view, TextCounts::Counted>> TextCounts::ranked() const {
  std::vector<std::pair<std::string_view, Counted>> all(counts_.begin(), counts_.end());
  std::ranges::sort(all, [](const auto& a, const auto& b) {
    return a.second.count != b.second.count ? a.second.count > b.second.count : a.first < b.first;
  });
  return all;
}

}  // namespace usdt::exports::report
