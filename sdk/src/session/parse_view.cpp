// SPDX-License-Identifier: BSD-2-Clause
// Makes a View of what is asked for, and refuses what does not go together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/try.hpp"
#include "parsers/declared.hpp"
#include "session/option_names.hpp"
#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using session::name_options;
using session::refuse;

/// An option that wants an expression, and the column it makes.
struct Option {
  const char* name;
  std::string ViewText::*text;
  RowNumber shown;
};
constexpr std::array<Option, 4> kOfValue{{{"--sum", &ViewText::sum, RowNumber::sum},
                                          {"--avg", &ViewText::average, RowNumber::average},
                                          {"--min", &ViewText::minimum, RowNumber::minimum},
                                          {"--max", &ViewText::maximum, RowNumber::maximum}}};

/// "-12.5": -125, of which one digit is behind the point. Nothing: it is no such number.
std::optional<std::pair<std::int64_t, unsigned>> read_decimal(std::string_view text, unsigned digits) {
  std::string whole(text);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t behind = text.size() - std::min(point + 1, text.size());
  if (point < text.size()) whole.erase(point, 1);
  const auto own = static_cast<unsigned>(behind);
  if (behind > digits) return read_decimal(text, own);
  whole.append(digits - own, '0');
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (text.empty() || text.back() == '.' || error != std::errc() || end != whole.data() + whole.size())
    return std::nullopt;
  return std::pair(number, digits);
}

bool is_field(const Expression& key, HitField field) {
  return key.root.op == Operator::field && key.root.bits == static_cast<std::uint64_t>(field);
}

/// Makes one view of one text.
class ViewParser {
 public:
  ViewParser(const ViewText& text, std::string_view prefix) : text_(text), prefix_(prefix) {
    question_->max_rows = text.max_rows;
    question_->key_bytes = text.key_bytes;
    view_.shown.push_back(RowNumber::count);
    view_.interval = text.interval;
  }

  Result<View> parse() {
    using Step = Result<void> (ViewParser::*)();
    for (const Step step :
         {&ViewParser::add_keys, &ViewParser::add_value, &ViewParser::add_folded_key, &ViewParser::choose_events,
          &ViewParser::add_growth, &ViewParser::add_error, &ViewParser::choose_rows, &ViewParser::check_folded}) {
      TRY((this->*step)());
    }
    view_.count_only = text_.count && !is_table();
    if (is_table())
      view_.question = std::move(question_);
    else
      view_.shown.clear();
    return std::move(view_);
  }

 private:
  [[nodiscard]] bool is_table() const { return !question_->keys.empty() || question_->value; }

  /// Parses the expression that an option was given, which may have a name: "arg3 as size".
  [[nodiscard]] Result<Expression> expression(const std::string& text, std::string_view option) const {
    auto named = parse_expressions(text);
    auto expression = named && named->size() == 1 ? std::move(named->front()) : parse_expression(text);
    if (!expression) return fail(expression.error().within(name_options(option, prefix_)));
    if (expression->called && parsers::has_meaning(*expression->called))
      return refuse(
          fmt::format("{} {}: it has a name here and no meaning, which keys and listed values have", option, text),
          prefix_);
    return expression;
  }

  Result<void> add_keys() {
    if (text_.by.empty()) return {};
    auto keys = parse_expressions(text_.by);
    if (!keys) return fail(keys.error().within(name_options("--by", prefix_)));
    question_->keys = std::move(*keys);
    return {};
  }

  /// Adds columns over the one expression that all options of that kind have.
  Result<void> add_value() {
    for (const Option& option : kOfValue) {
      const std::string& text = text_.*option.text;
      if (text.empty()) continue;
      auto value = TRY(expression(text, option.name));
      if (question_->value && (question_->value->text != value.text || question_->value->name() != value.name()))
        return fail(ErrorKind::invalid_argument,
                    fmt::format("{} {}: one trace has one value for all columns, here {}",
                                name_options(option.name, prefix_), text, question_->value->text));
      view_.value = value.name();
      question_->value = std::move(value);
      view_.shown.push_back(option.shown);
      question_->extremes |= option.shown == RowNumber::minimum || option.shown == RowNumber::maximum;
    }
    question_->reals = true;
    question_->real_sums = !text_.sum.empty() || !text_.average.empty();
    return {};
  }

  /// Adds the last key, over which rows are folded.
  Result<void> add_folded_key() {
    const int wanted = (text_.distinct.empty() ? 0 : 1) + (text_.log2.empty() ? 0 : 1) +
                       (text_.linear.empty() ? 0 : 1) + (text_.latency ? 1 : 0) + (text_.heat_map.empty() ? 0 : 1);
    if (wanted == 0) return {};
    if (wanted > 1 || view_.shown.size() > 1)
      return refuse(
          "--distinct, --hist, --lhist, --heatmap and --latency exclude each other, and --sum, --avg, --min and --max",
          prefix_);
    if (text_.latency) return add_latency();
    if (!text_.heat_map.empty()) return add_heat_map();
    if (!text_.linear.empty()) return add_linear_histogram();
    if (!text_.log2.empty()) return add_log2_histogram(text_.log2, "--hist");
    auto value = TRY(expression(text_.distinct, "--distinct"));
    view_.value = value.name();
    question_->keys.push_back(fingerprint(std::move(value)));
    view_.shown.push_back(RowNumber::distinct);
    return {};
  }

  Result<void> add_latency() {
    view_.latency = true;
    view_.value = "duration";
    view_.shown = {RowNumber::count, RowNumber::p50,     RowNumber::p90, RowNumber::p99,
                   RowNumber::p999,  RowNumber::maximum, RowNumber::sum};
    auto duration = TRY(expression(view_.value, "--latency"));
    question_->value = duration;
    question_->extremes = true;
    question_->keys.push_back(log2_buckets(std::move(duration), kLatencySubBits));
    return {};
  }

  /// Adds a histogram that is looked at again and again.
  Result<void> add_heat_map() {
    if (!question_->keys.empty() || text_.top)
      return refuse("--heatmap is one for all hits: neither --by nor --top goes with it", prefix_);
    view_.heat_map = true;
    view_.interval = text_.interval.value_or(1);
    return add_log2_histogram(text_.heat_map, "--heatmap");
  }

  Result<void> add_log2_histogram(const std::string& text, std::string_view option) {
    auto value = TRY(expression(text, option));
    view_.histogram = Histogram::log2;
    view_.value = value.name();
    view_.sub_bits = text_.sub_bits;
    question_->keys.push_back(log2_buckets(std::move(value), text_.sub_bits));
    return {};
  }

  Result<void> add_linear_histogram() {
    view_.histogram = Histogram::linear;
    TRY(read_linear(text_.linear));
    auto value = TRY(expression(view_.value, "--lhist"));
    view_.value = value.name();
    auto buckets = linear_buckets(std::move(value), view_.from, view_.to, view_.step, view_.digits);
    if (!buckets) return fail(buckets.error().within(name_options("--lhist", prefix_)));
    question_->keys.push_back(std::move(*buckets));
    return {};
  }

  /// Reads "EXPR:FROM:TO:STEP", of which the expression may have colons of its own.
  Result<void> read_linear(std::string_view text) {
    std::array<std::string_view, 3> numbers{};
    for (std::size_t i = numbers.size(); i-- > 0;) {
      const std::size_t colon = text.rfind(':');
      if (colon == text.npos) break;
      numbers[i] = text.substr(colon + 1);
      text = text.substr(0, colon);
    }
    // All with as many digits behind the point as one of them has.
    for (int round = 0; round < 2; ++round) {
      using Number = std::pair<std::string_view, std::int64_t*>;
      for (const auto& [number, to] :
           {Number(numbers[0], &view_.from), Number(numbers[1], &view_.to), Number(numbers[2], &view_.step)}) {
        const auto read = read_decimal(number, view_.digits);
        if (!read)
          return refuse(
              "--lhist: it takes EXPR:FROM:TO:STEP with three numbers up to 9223372036854775807 (without their "
              "point), such as 'size:0:4096:256' or, of reals, 'load:0:1:0.05'",
              prefix_);
        std::tie(*to, view_.digits) = *read;
      }
    }
    view_.value = text;
    return {};
  }

  /// Chooses which events are shown, where these are not all.
  Result<void> choose_events() {
    if (is_table() && text_.slowest > 0)
      return refuse(
          "--slowest shows events, and a table has none: --by, --sum, --hist, --latency and their like do "
          "not go with it",
          prefix_);
    if (text_.in_flight > 0 && (view_.heat_map || text_.slowest > 0))
      return refuse("--in-flight shows what has not ended: neither --heatmap nor --slowest goes with it", prefix_);
    view_.in_flight = text_.in_flight > 0;
    if (is_table() && view_.in_flight)
      view_.top = text_.in_flight;
    else
      view_.slowest = std::max(text_.slowest, text_.in_flight);
    return {};
  }

  /// Adds how much rows grew, which is of tables that are made anew again and again.
  Result<void> add_growth() {
    if (!text_.growth) return {};
    if (!is_table() || !view_.in_flight || !view_.interval || view_.folds_last_key())
      return refuse(
          "--growth is of the rows of what is in flight from one look to the next: it goes with --in-flight, "
          "--interval, and --by or --sum",
          prefix_);
    view_.shown.push_back(RowNumber::growth);
    return {};
  }

  /// Adds the error of a sum that is an estimate.
  Result<void> add_error() {
    if (text_.variance.empty()) return {};
    if (text_.sum.empty() || view_.shown[1] != RowNumber::sum || view_.folds_last_key())
      return refuse("--variance is about the sum of each row: it goes with --sum, and with no histogram", prefix_);
    auto variance = TRY(expression(text_.variance, "--variance"));
    view_.variance = std::make_shared<const Expression>(std::move(variance));
    view_.shown.push_back(RowNumber::error);
    return {};
  }

  /// Chooses which rows are shown and in which form. Tables that are shown again and again have hits a second, too.
  Result<void> choose_rows() {
    if (!is_table() && text_.top) return refuse("--top is about a table: see --by, --sum and --hist", prefix_);
    if (text_.by.empty() && text_.key_bytes > TableQuestion::kMostKeyBytes)
      return refuse("--key-size is of the keys of --by", prefix_);
    if (text_.top) view_.top = *text_.top;
    view_.folded = text_.folded;
    const bool rows = is_table() && view_.histogram == Histogram::none && !view_.folded;
    if (text_.rate && (!rows || view_.in_flight))
      return refuse(
          "--rate is of the rows of a table: see --by; histograms, --folded, events and what is in flight have none",
          prefix_);
    if (text_.rate) view_.order = RowOrder::rate;
    view_.rates = text_.rate || (rows && view_.interval && !view_.in_flight);
    for (const Expression& key : question_->keys) {
      view_.user_stacks |= is_field(key, HitField::ustack);
      view_.kernel_stacks |= is_field(key, HitField::kstack);
    }
    return {};
  }

  Result<void> check_folded() {
    if (!view_.folded) return {};
    if (!view_.has_stacks())
      return refuse("--folded: a stack has to be among the keys of --by: ustack, kstack", prefix_);
    const bool adds_up = view_.shown.size() == 1 || (view_.shown.size() == 2 && view_.shown[1] == RowNumber::sum);
    if (!adds_up || view_.has_buckets() || view_.interval)
      return refuse(
          "--folded is a count, or with --sum a sum, for each stack: it goes with neither --avg, --min, "
          "--max, --distinct, --hist, --lhist, --latency nor --interval",
          prefix_);
    return {};
  }

  const ViewText& text_;
  std::string_view prefix_;
  View view_;
  std::shared_ptr<TableQuestion> question_ = std::make_shared<TableQuestion>();
};

}  // namespace

Result<View> parse_view(const ViewText& text, std::string_view prefix) { return ViewParser(text, prefix).parse(); }

}  // namespace v1
}  // namespace usdt
