// SPDX-License-Identifier: BSD-2-Clause
#include "export/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "export/table_words.hpp"

namespace usdt::exports::metrics {
namespace {

constexpr std::string_view kOther = "other";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Numbers are those of the programs traced; durations, which are in nanoseconds there, are in seconds here.
struct Unit {
  std::string_view name;
  double of_program;  ///< how many of the program's are one; 1e-9 could not be exact

  [[nodiscard]] double in(double number) const { return number / of_program; }
  [[nodiscard]] std::variant<Int128, double, Histogram> in(const Int128& number) const {
    if (of_program == 1) return number;
    return static_cast<double>(number) / of_program;
  }
};

Unit unit_of(const View& view) { return view.is_about_durations() ? Unit{"seconds", 1e9} : Unit{"", 1}; }

/// What is counted below the end of a bucket of reals is at most the number before it.
Histogram::Bucket bucket_of(const BucketRange& range, std::uint64_t count) {
  if (const auto* whole = std::get_if<Bucket>(&range))
    return {static_cast<double>(whole->first), static_cast<double>(whole->last), count};
  const auto& reals = std::get<RealBucket>(range);
  if (reals.first == reals.end) return {reals.first, reals.end, count};
  if (reals.end <= 0) return {std::nextafter(reals.first, kInfinity), reals.end, count};
  return {reals.first, std::nextafter(reals.end, -kInfinity), count};
}

std::variant<Int128, double, Histogram> number_of(const ArrangedRow& row, RowNumber which, const Unit& unit) {
  const auto real = row.real(which);
  return real ? unit.in(*real) : unit.in(row.integer(which));
}

/// What is beyond the outermost buckets of equal width is in them.
void open_ends(const View& view, Histogram& histogram) {
  const double divisor = std::pow(10, view.digits);
  Histogram::Bucket& first = histogram.buckets.front();
  Histogram::Bucket& last = histogram.buckets.back();
  if (first.high < static_cast<double>(view.from) / divisor) first.low = -kInfinity;
  if (last.low >= static_cast<double>(view.to) / divisor) last.high = kInfinity;
}

/// Bars of both, in order.
void add_bars(std::vector<ArrangedRow::Bar>& bars, const std::vector<ArrangedRow::Bar>& more) {
  for (const ArrangedRow::Bar& bar : more) {
    const auto at = std::ranges::lower_bound(bars, bar.key, {}, &ArrangedRow::Bar::key);
    if (at != bars.end() && at->key == bar.key)
      at->count += bar.count;
    else
      bars.insert(at, bar);
  }
}

Labels labels_of(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  Labels labels;
  for (std::size_t i = 0; i < names.size(); ++i) labels.emplace_back(names[i], values[i]);
  return labels;
}

/// The columns' names, each once: formats have some of their own.
std::vector<std::string> label_names(const View& view, const PlannedTable& table) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < view.shown_keys(table); ++i) {
    std::string name = name_of(table.keys[i].label);
    if (name == "le" || name == "quantile" || name.starts_with("__")) name.insert(0, "key_");
    const std::string wanted = name;
    for (int n = 2; std::ranges::find(names, name) != names.end(); ++n) name = fmt::format("{}_{}", wanted, n);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> label_values(const AttachPlan& plan, const View& view, const PlannedTable& table,
                                      const ArrangedRow& row) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < view.shown_keys(table); ++i)
    values.push_back(plain_key_text(plan, table.keys[i], row.keys[i]));
  return values;
}

/// Powers of 2, as exponents from the least to the greatest, that bound buckets.
struct Powers {
  void add(int exponent) {
    least = std::min(least, exponent);
    greatest = std::max(greatest, exponent);
  }
  [[nodiscard]] bool any() const noexcept { return least <= greatest; }
  int least = std::numeric_limits<int>::max(), greatest = std::numeric_limits<int>::min();
};

/// The bounds of buckets between powers of 2, by sign.
struct PowerBounds {
  void add(const Histogram::Bucket& bucket, bool whole) {
    if (bucket.high == 0) has_zero = true;
    if (bucket.high == 0 || std::isinf(bucket.high)) return;
    if (bucket.high > 0) positive.add(static_cast<int>(std::ceil(std::log2(bucket.high + (whole ? 1 : 0)))));
    if (bucket.high < 0) negative.add(static_cast<int>(std::floor(std::log2(-bucket.high))));
  }

  /// All of them: a series of buckets is begun before there is anything in it. The lowest has an empty one below it, by
  /// which readers know where it begins.
  [[nodiscard]] std::set<double> all(bool whole) const {
    std::set<double> bounds;
    if (has_zero) bounds.insert(0);
    for (int e = negative.least; e <= negative.greatest + 1 && negative.any(); ++e) bounds.insert(-std::exp2(e));
    for (int e = positive.least - 1; e <= positive.greatest && positive.any(); ++e) {
      const double power = std::exp2(e);
      bounds.insert(whole ? power - 1 : std::nextafter(power, -kInfinity));
    }
    return bounds;
  }

  Powers positive, negative;
  bool has_zero = false;
};

/// The bounds of buckets of equal width.
struct WidthBounds {
  void add(const Histogram::Bucket& bucket, bool whole) {
    has_negative |= bucket.low < 0;
    if (!std::isinf(bucket.high)) bounds.insert(bucket.high);
    if (!std::isinf(bucket.low)) bounds.insert(whole ? bucket.low - 1 : std::nextafter(bucket.low, -kInfinity));
  }

  /// All of them, also where each bucket begins. (Where nothing is below 0, the lowest begins there for everybody.)
  [[nodiscard]] std::set<double> all() const {
    return {has_negative ? bounds.begin() : bounds.lower_bound(0), bounds.end()};
  }

  std::set<double> bounds;
  bool has_negative = false;
};

std::int32_t index_of(double magnitude, unsigned scale) {
  if (std::isinf(magnitude)) return std::numeric_limits<double>::max_exponent << scale;
  return static_cast<std::int32_t>(std::ceil(std::ldexp(std::log2(magnitude), static_cast<int>(scale)))) - 1;
}

}  // namespace

Histogram histogram_of(const View& view, const PlannedTable& table, const ArrangedRow& row) {
  const Unit unit = unit_of(view);
  Histogram made{.per_unit = unit.of_program, .whole = !table.keys.back().ranges_of, .count = row.count};
  for (const ArrangedRow::Bar& bar : row.bars) made.buckets.push_back(bucket_of(bar.range, bar.count));
  const unsigned sub_bits = view.latency ? kLatencySubBits : view.sub_bits;
  if (view.latency || view.histogram == usdt::Histogram::log2) made.scale = sub_bits == 0 ? 0 : sub_bits - 1;
  if (!made.scale && !made.buckets.empty()) open_ends(view, made);
  if (!table.value) return made;
  const auto real = row.real(RowNumber::sum);
  made.sum = unit.in(real ? *real : static_cast<double>(row.sum));
  return made;
}

std::string name_of(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool goes = is_letter(c) || c == '_' || is_digit(c);
    if (goes && name.empty() && is_digit(c)) name = "_";
    if (goes)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  return name.empty() ? "key" : name;
}

std::vector<std::string> LabelSets::admit(std::vector<std::string> values) {
  constexpr std::size_t kMostRemembered = 100'000;
  if (admitted_.contains(values)) return values;
  if (admitted_.size() < most_) {
    admitted_.insert(values);
    return values;
  }
  std::size_t hash = values.size();
  for (const std::string& value : values) hash = hash * 31 + std::hash<std::string>()(value);
  if (refused_.size() < kMostRemembered)
    refused_.insert(hash);
  else if (!refused_.contains(hash))
    ++uncounted_;
  std::ranges::fill(values, kOther);
  return values;
}

QuestionMetrics::QuestionMetrics(const Question& question)
    : question_(question), rows_(std::min(question.view.top, kMostLabelSets)), probes_(kMostLabelSets) {}

/// "usdt_hits"; of a question with a name "usdt_NAME_hits".
std::string QuestionMetrics::name(std::string_view what, std::string_view unit) const {
  std::string name = "usdt";
  if (!question_.name.empty()) name.append("_").append(name_of(question_.name));
  name.append("_").append(what);
  return unit.empty() ? name : name.append("_").append(unit);
}

void QuestionMetrics::take(const AttachPlan& plan, const ArrangedTable& look) {
  std::map<std::vector<std::string>, Row> rows;
  for (const ArrangedRow& row : look.rows) {
    Row& same = rows[rows_.admit(label_values(plan, view_, look.table, row))];
    if (same.rows++ == 0) {
      same.sum = row;
    } else {
      same.sum.add(row);
      add_bars(same.sum.bars, row.bars);
    }
  }
  of_rows_.clear();
  add_rows(look.table, label_names(view_, look.table), rows);
}

void QuestionMetrics::add_rows(const PlannedTable& table, const std::vector<std::string>& labels,
                               const std::map<std::vector<std::string>, Row>& rows) {
  const Unit unit = unit_of(view_);
  const auto add = [&](Family family, const auto& value_of) {
    for (const auto& [values, row] : rows) family.samples.push_back({labels_of(labels, values), value_of(row.sum)});
    of_rows_.push_back(std::move(family));
  };
  const std::string value = view_.value.empty() ? std::string("the key") : view_.value;
  if (view_.has_buckets()) {
    const std::string what = view_.latency ? "duration of calls or spans" : fmt::format("{} of hits", value);
    add({name(unit.of_program == 1 ? "values" : "duration", unit.name), Kind::histogram, unit.name, what, {}},
        [&](const ArrangedRow& row) { return histogram_of(view_, table, row); });
  } else {
    add({name("row_hits"), Kind::counter, "", "hits with these keys", {}},
        [](const ArrangedRow& row) -> decltype(Sample::value) { return Int128(row.count); });
  }
  const auto shows = [this](RowNumber each) { return std::ranges::find(view_.shown, each) != view_.shown.end(); };
  const auto add_number = [&](RowNumber which, std::string_view what, std::string_view help, Kind kind) {
    add({name(what, unit.name), kind, unit.name, fmt::format("{} of {}", help, value), {}},
        [&](const ArrangedRow& row) { return number_of(row, which, unit); });
  };
  const bool only_grows = table.value == ExpressionType::unsigned_integer;
  // Not "sum": names that end in it are those of histograms.
  if (!view_.has_buckets() && (shows(RowNumber::sum) || shows(RowNumber::average)))
    add_number(RowNumber::sum, "summed", "sum", only_grows ? Kind::counter : Kind::gauge);
  if (shows(RowNumber::minimum)) add_number(RowNumber::minimum, "minimum", "minimum", Kind::gauge);
  if (shows(RowNumber::maximum)) add_number(RowNumber::maximum, "maximum", "maximum", Kind::gauge);
  if (shows(RowNumber::distinct)) add_distinct(labels, rows, value);
  of_rows_.push_back({name("label_sets_dropped"),
                      Kind::counter,
                      "",
                      "rows that are counted as \"other\", since a metric has a bounded number of label sets",
                      {{{}, Int128(rows_.refused())}}});
}

/// Nobody knows how many values of several rows together differ. There may be more where texts were cut.
void QuestionMetrics::add_distinct(const std::vector<std::string>& labels,
                                   const std::map<std::vector<std::string>, Row>& rows, const std::string& value) {
  Family family{name("distinct"), Kind::gauge, "", fmt::format("different values of {}, at least", value), {}};
  for (const auto& [values, row] : rows)
    if (row.rows == 1) family.samples.push_back({labels_of(labels, values), Int128(row.sum.distinct)});
  of_rows_.push_back(std::move(family));
}

void QuestionMetrics::take(const AttachPlan& plan, const SessionSummary& summary) {
  of_account_.clear();
  take_probes(plan, summary);
  Family lost{name("lost"), Kind::counter, "", "hits that should have been shown, and why they are not", {}};
  Family left_out{name("left_out"), Kind::counter, "", "hits that were not to be shown, and why", {}};
  const std::uint16_t causes = count_causes(question_, plan);
  const Account total = summary.total();
  for (const CountInfo& count : counts()) {
    const auto told = tell_count(count, total, plan.spans.has_value());
    const bool can_be = (count.comes_of & ~kIfAny) == 0 || (count.comes_of & causes) != 0;
    if (!told || (!can_be && told->value == 0)) continue;
    const Sample sample{{{"reason", std::string(told->name)}}, Int128(told->value)};
    if (told->role == CountRole::lost) lost.samples.push_back(sample);
    if (told->role == CountRole::left_out) left_out.samples.push_back(sample);
  }
  of_account_.push_back(std::move(lost));
  of_account_.push_back(std::move(left_out));
  if (summary.missed)
    of_account_.push_back({name("missed"),
                           Kind::counter,
                           "",
                           "hits that the kernel ran no program for, of all probes; in no other number",
                           {{{}, Int128(*summary.missed)}}});
}

/// Where there are more probes than there may be labels, those without a hit have none.
void QuestionMetrics::take_probes(const AttachPlan& plan, const SessionSummary& summary) {
  Family hits{name("hits"), Kind::counter, "", "hits of a probe", {}};
  Family shown{name("events"), Kind::counter, "", "hits of a probe that became what was asked for", {}};
  std::map<std::vector<std::string>, Account> by_name;
  for (std::size_t n = 0; n < summary.probes.size(); ++n) {
    const Account& account = summary.probes[n];
    const PlannedProbe& probe = plan.probes[Index<PlannedProbe>(n)];
    if (probe.span) continue;  // the accounts are those of its ends
    if (account.hits == 0 && summary.probes.size() > kMostLabelSets) continue;
    by_name[probes_.admit({full_name(plan, probe)})].add(account);
  }
  for (const auto& [names, account] : by_name) {
    const Labels labels{{"probe", names[0]}};
    hits.samples.push_back({labels, Int128(account.hits)});
    shown.samples.push_back({labels, Int128(account.delivered)});
  }
  of_account_.push_back(std::move(hits));
  of_account_.push_back(std::move(shown));
  for (const CountInfo& count : counts())
    if (plan.spans) add_pairing(count, by_name);
}

/// How ends and beginnings came together, by probe. What has not ended may do so yet.
void QuestionMetrics::add_pairing(const CountInfo& count, const std::map<std::vector<std::string>, Account>& by_name) {
  const auto told_of = [&](const Account& account) { return tell_count(count, account, true); };
  const auto told = told_of({});
  if (!told || told->role != CountRole::pairing) return;
  const bool comes_and_goes = count.member == &ProbeCounts::unfinished;
  Family family{name(told->name),
                comes_and_goes ? Kind::gauge : Kind::counter,
                "",
                fmt::format("hits of an end of spans: {}", count.words),
                {}};
  for (const auto& [names, account] : by_name)
    family.samples.push_back({{{"probe", names[0]}}, Int128(told_of(account)->value)});
  of_account_.push_back(std::move(family));
}

std::vector<Family> QuestionMetrics::families() const {
  std::vector<Family> all = of_rows_;
  all.insert(all.end(), of_account_.begin(), of_account_.end());
  std::erase_if(all, [](const Family& family) { return family.samples.empty(); });
  return all;
}

EqualRatios put_in_equal_ratios(const Histogram& histogram) {
  EqualRatios made{.scale = histogram.scale.value_or(0)};
  for (const Histogram::Bucket& bucket : histogram.buckets) {
    if (bucket.high > 0)
      made.positive[index_of(bucket.high / histogram.per_unit, made.scale)] += bucket.count;
    else if (bucket.low < 0)
      made.negative[index_of(-bucket.low / histogram.per_unit, made.scale)] += bucket.count;
    else
      made.zeros += bucket.count;
  }
  return made;
}

std::vector<double> bounds_of(const Family& family) {
  WidthBounds widths;
  PowerBounds powers;
  const Histogram* any = nullptr;
  for (const Sample& sample : family.samples) {
    any = &std::get<Histogram>(sample.value);
    for (const Histogram::Bucket& bucket : any->buckets) {
      any->scale ? powers.add(bucket, any->whole) : widths.add(bucket, any->whole);
    }
  }
  if (any == nullptr) return {};
  std::vector<double> bounds;
  for (const double bound : any->scale ? powers.all(any->whole) : widths.all()) bounds.push_back(bound / any->per_unit);
  return bounds;
}

std::vector<std::uint64_t> count_up_to(const std::vector<double>& bounds, const Histogram& histogram) {
  std::vector<std::uint64_t> counts(bounds.size());
  for (const Histogram::Bucket& bucket : histogram.buckets) {
    const auto at = std::ranges::lower_bound(bounds, bucket.high / histogram.per_unit);
    if (at != bounds.end()) counts[static_cast<std::size_t>(at - bounds.begin())] += bucket.count;
  }
  for (std::size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
  return counts;
}

}  // namespace usdt::exports::metrics
