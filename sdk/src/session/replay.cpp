// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/try.hpp"
#include "session/begun_expressions.hpp"
#include "session/event_rows.hpp"
#include "session/option_names.hpp"
#include "session/recorded_texts.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/recorded_question.hpp"
#include "usdt/recording.hpp"

namespace usdt {
inline namespace v1 {

struct QuestionReplay::Impl {
  Impl(Question question, Recording recording) : question_(std::move(question)), recording_(std::move(recording)) {}

  Result<void> prepare() {
    TRY(choose_probes());
    TRY(choose_view());
    TRY(ask());
    using Kind = SessionNotice::Kind;
    notices_.push_back({Kind::recording, question_.recording.replay,
                        fmt::format("replays {}{}", question_.recording.replay, made_by())});
    for (const RecordedNotice& each : recording_.notices()) notices_.push_back({Kind::recording, {}, each.text});
    return {};
  }

  /// By whom and where; a recording that was cut before it says so has nothing of it.
  [[nodiscard]] std::string made_by() const {
    const RecordingInfo& info = recording_.info();
    const std::string what = plan_.sites.empty() ? " (nothing was traced by then: it has no probes)" : "";
    if (info.made_by.empty()) return what;
    return fmt::format(": {} on Linux {} ({}){}", info.made_by, info.kernel, info.machine, what);
  }

  Result<bool> step() {
    auto event = recording_.next();
    if (!event) return fail(event.error().within(question_.recording.replay));
    show_followed();
    if (*event == nullptr) return false;
    take(**event);
    return true;
  }

  void finish() {
    if (table_) show_table();
    if (question_.view.slowest > 0) consumer_->slowest(slowest_, true);
  }

  /// Chooses the probes that the question names; if it names none, all.
  Result<void> choose_probes() {
    if (question_.points.patterns.empty() || plan_.sites.empty()) return {};
    const auto named = [](const std::vector<PointPattern>& patterns) {
      Prints prints;
      for (const PointPattern& pattern : patterns) prints.for_probes.push_back({{}, pattern, {}});
      return prints;
    };
    const Prints begins = named(question_.points.patterns);
    const Prints ends = named(question_.points.ends);
    const PrintChoice at_begin(begins);
    const PrintChoice at_end(ends);
    chosen_.assign(plan_.probes.size(), false);
    bool any = false;
    for (std::uint32_t n = 0; n < plan_.probes.size(); ++n) {
      const PlannedProbe& probe = plan_.probes[Index<PlannedProbe>(n)];
      if (question_.points.ends.empty() == probe.span.has_value()) continue;
      if (!probe.span) {
        chosen_[n] = at_begin.of(plan_, probe) > 0;
      } else if (at_begin.of(plan_, plan_.probes[probe.span->begin]) > 0 &&
                 at_end.of(plan_, plan_.probes[probe.span->end]) > 0) {
        chosen_[n] = chosen_[probe.span->begin.value] = chosen_[probe.span->end.value] = true;
      }
      any |= chosen_[n];
    }
    if (any) return {};
    return fail(ErrorKind::not_found,
                fmt::format("{} has none of these probes; it has {}", question_.recording.replay, recorded_probes()));
  }

  /// Names the recording's first probes, for people.
  [[nodiscard]] std::string recorded_probes() const {
    constexpr std::uint32_t most = 5;
    const auto count = static_cast<std::uint32_t>(plan_.probes.size());
    std::vector<std::string> names;
    for (std::uint32_t n = 0; n < std::min(count, most); ++n)
      names.push_back(full_name(plan_, plan_.probes[Index<PlannedProbe>(n)]));
    return fmt::format("{}{}", fmt::join(names, ", "), count > most ? fmt::format(" and {} more", count - most) : "");
  }

  [[nodiscard]] std::vector<Index<PlannedProbe>> chosen_probes() const {
    std::vector<Index<PlannedProbe>> probes;
    for (std::uint32_t n = 0; n < chosen_.size(); ++n)
      if (chosen_[n]) probes.emplace_back(n);
    return probes;
  }

  /// Chooses the values to show: those that were asked for, else those of the question that was recorded.
  Result<void> choose_view() {
    auto view = TRY(recorded_question(recording_, question_.option_prefix));
    question_.stacks.kernel_depth = view.stacks.kernel_depth;
    question_.stacks.user_depth = view.stacks.user_depth;
    question_.stacks.kernel_in_lists = view.stacks.kernel_in_lists;
    question_.stacks.user_in_lists = view.stacks.user_in_lists;
    question_.limits.sample = view.limits.sample;
    question_.limits.max_rate = view.limits.max_rate;
    question_.limits.max_overhead = view.limits.max_overhead;
    question_.recording.last = view.last;
    begin_question(question_, view.began);
    recorded_where_ = view.where;
    recorded_lists_ = view.printed;
    printed_ = std::move(view.printed);
    for (PrintList& list : printed_.lists) session::begin_list(list, view.began);
    if (question_.values.print.empty())
      return question_.values.format.empty()
                 ? Result<void>()
                 : check_format(question_.values.format, plan_, printed_, question_.option_prefix);
    const PrintChoice choice(question_.values.print);
    printed_ = {};
    for (ListNumber n = 0; n < choice.count(); ++n) printed_.lists.push_back(choice.list(n));
    for (const PlannedProbe& probe : plan_.probes) printed_.of_probe.push_back(choice.of(plan_, probe));
    if (auto read = session::check_recorded_texts(recorded_lists_, printed_); !read)
      return fail(read.error().within(session::name_options("--print", question_.option_prefix)));
    return check_printed(question_, plan_, printed_, false, notices_);
  }

  /// Prepares --where. The recorded one counts in the account alone.
  Result<void> ask() {
    TRY(check_durations(question_, plan_, chosen_));
    accounts_.resize(plan_.probes.size());
    estimates_.resize(plan_.probes.size());
    if (question_.view.question) {
      TRY(check_stacks());
      for (const Expression& key : question_.view.question->keys)
        TRY(session::check_recorded_texts(recorded_lists_, key));
      auto table = TRY(session::EventRows::make(question_, plan_, chosen_probes()));
      table_.emplace(std::move(table));
    } else if (question_.where) {
      auto filter = session::check_recorded_texts(recorded_lists_, *question_.where).and_then([&] {
        return EventFilter::make(question_.where, plan_);
      });
      if (!filter) return fail(filter.error().within(session::name_options("--where", question_.option_prefix)));
      filter_.emplace(std::move(*filter));
    } else if (!recorded_where_.empty()) {
      auto where = parse_expression(recorded_where_);
      if (!where)
        return fail(where.error().within(session::name_options("the recording's --where", question_.option_prefix)));
      where->began = question_.began;
      question_.where = std::make_shared<const Expression>(std::move(*where));
    }
    return {};
  }

  /// Checks that the stacks among the keys were recorded.
  Result<void> check_stacks() const {
    for (const auto& [wanted, depth, option] :
         {std::tuple(question_.view.user_stacks, question_.stacks.user_depth, "ustack"),
          std::tuple(question_.view.kernel_stacks, question_.stacks.kernel_depth, "kstack")})
      if (wanted && depth == 0)
        return fail(ErrorKind::invalid_argument,
                    fmt::format("{0}: no such stacks were recorded: a trace with {1}record and {1}{0} has them", option,
                                question_.option_prefix));
    return {};
  }

  /// Returns how many probes of the plan there were when the trace began.
  [[nodiscard]] std::size_t first_probes() const {
    if (recording_.followed().empty()) return plan_.probes.size();
    const RecordedFollowed& first = recording_.followed().front();
    std::size_t probes = first.probes_by_then;
    for (std::size_t came = first.probes; came > 0 && probes > 0;)  // and their spans, behind them
      if (!plan_.probes[Index<PlannedProbe>(--probes)].span) --came;
    return probes;
  }

  /// Shows the files that came before the next event.
  void show_followed() {
    const auto& followed = recording_.followed();
    for (; followed_ < recording_.followed_by_now(); ++followed_) {
      consumer_->know(followed[followed_].probes_by_then);
      consumer_->followed(followed[followed_]);
    }
  }

  void take(const Event& event) {
    if (!chosen_.empty() && !chosen_[event.site().probe.value]) return;
    Account& account = accounts_[account_of(plan_, event.site().probe.value)];
    ++account.hits;
    if (table_) return add_to_table(event, account);
    if (filter_) {
      const auto holds = (*filter_)(event);
      if (!holds || !*holds) {
        ++(holds ? account.rejected : account.undecided);
        return;
      }
    }
    if (question_.view.count_only) return stands_for(event);
    if (question_.view.slowest > 0) return keep_if_slow(event, account);
    if (shown_ >= question_.limits.max_events) {
      ++account.discarded;
      ++beyond_;
      return;
    }
    ++shown_;
    ++account.delivered;
    stands_for(event);
    around_.begin(event);
    consumer_->event(event);
  }

  void keep_if_slow(const Event& event, Account& account) {
    if (!slowest_.wants(event)) {
      ++account.faster;
      return;
    }
    ++account.delivered;
    around_.begin(event);
    slowest_.add(event, around_.wall_offset(), around_.stacks(question_.stacks, event));
  }

  void add_to_table(const Event& event, Account& account) {
    if (question_.view.heat_map) cut_before(event);
    using Added = TableBuilder::Added;
    EventStacks stacks;
    if (question_.view.has_stacks()) {
      around_.begin(event);
      stacks = around_.stacks(question_.stacks, event);
    }
    const Added added = table_->add(event, stacks);
    account.delivered += added == Added::row ? 1 : 0;
    if (added == Added::row) stands_for(event);
    account.rejected += added == Added::rejected ? 1 : 0;
    account.undecided += added == Added::undecided ? 1 : 0;
    if (added == Added::undecided) say_why_not(event);
    account.table_full += added == Added::table_full ? 1 : 0;
  }

  /// Counts the hits that an event stands for, in a trace with a limit of overhead.
  void stands_for(const Event& event) {
    if (question_.limits.max_overhead > 0) estimates_[account_of(plan_, event.site().probe.value)] += event.weight();
  }

  /// Says why events cannot be in the table, once for each probe.
  void say_why_not(const Event& event) {
    const Index<PlannedProbe> probe = event.site().probe;
    const std::string_view why = table_->refusal(Index<PlannedSite>(event.site_number()));
    if (why.empty() || !refused_.insert(probe.value).second) return;
    notices_.push_back({SessionNotice::Kind::left_out, full_name(plan_, plan_.probes[probe]),
                        fmt::format("{} is not in the table: {}", full_name(plan_, plan_.probes[probe]), why)});
  }

  /// Shows the slice of a heat map so far, if the event is of a later one.
  void cut_before(const Event& event) {
    constexpr std::int64_t most = std::int64_t{1} << 60;  // of times a recording claims
    const auto offset = static_cast<std::uint64_t>(around_.wall_offset());
    const auto at = std::clamp(static_cast<std::int64_t>(event.timestamp() + event.duration() + offset),
                               std::int64_t{0}, std::int64_t{2} * most);
    const auto interval =
        static_cast<std::int64_t>(std::clamp(*question_.view.interval * 1e9, 1e6, static_cast<double>(most)));
    if (!slicer_) {
      begin_ = at;
      slicer_.emplace(at);
    }
    latest_ = std::max(latest_, at);
    if (at < end_of_slice(interval)) return;
    consumer_->heat(slicer_->cut(table_->table(), table_->rows(), end_of_slice(interval)), false);
    slice_ = (at - begin_) / interval;
    slicer_->begin(begin_ + slice_ * interval);
  }
  [[nodiscard]] std::int64_t end_of_slice(std::int64_t interval) const { return begin_ + (slice_ + 1) * interval; }

  void show_rows() {
    const auto rows = arrange_rows(question_.view, table_->table(), table_->rows());
    const std::optional<Overhead> overhead;
    consumer_->table({.table = table_->table(), .rows = rows, .overhead = overhead});
  }
  void show_table() {
    if (!question_.view.heat_map) return show_rows();
    if (!slicer_) slicer_.emplace(0);
    consumer_->heat(slicer_->cut(table_->table(), table_->rows(), latest_), true);
  }

  /// Returns the account. Hits that were not recorded keep the reason that they had in the trace.
  [[nodiscard]] SessionSummary summary() const {
    const auto& ledger = recording_.ledger();
    SessionSummary summary = ledger ? summary_of(*ledger) : SessionSummary{.probes = {}, .skipped = plan_.skipped};
    summary.probes = accounts_;
    summary.cut = recording_.cut();
    if (ledger) {
      for (std::size_t n = 0; n < summary.probes.size() && summary.cut.empty(); ++n)
        if (chosen_.empty() || chosen_[n]) summary.probes[n].add_recorded(ledger->probes[n]);
    }
    using Numbers = std::vector<std::uint64_t>;  // by probe; empty: none
    const auto not_written = by_account(plan_, consumer_ == nullptr ? Numbers() : consumer_->not_written());
    const auto folded_full = by_account(plan_, consumer_ == nullptr ? Numbers() : consumer_->folded_full());
    for (std::size_t n = 0; n < summary.probes.size(); ++n) {
      Account& account = summary.probes[n];
      account.estimated = static_cast<std::uint64_t>(std::llround(estimates_[n]));
      for (const auto& [lost, sum] :
           {std::pair(&not_written, &Account::not_written), {&folded_full, &Account::folded_full}}) {
        if (n >= lost->size()) continue;
        account.*sum += (*lost)[n];
        account.delivered -= (*lost)[n];
      }
    }
    return summary;
  }

  Question question_;
  Recording recording_;
  AnswerConsumer* consumer_ = nullptr;
  std::vector<SessionNotice> notices_;
  std::shared_ptr<const AttachPlan> shared_plan_ = recording_.plan();
  const AttachPlan& plan_ = *shared_plan_;
  RecordedSurroundings around_{recording_};
  Printed printed_;
  Printed recorded_lists_;  ///< by which texts were read
  std::string recorded_where_;
  std::optional<EventFilter> filter_;
  std::optional<session::EventRows> table_;
  SlowestEvents slowest_{question_.view.slowest};
  std::optional<HeatSlicer> slicer_;     ///< from the first event on,
  std::int64_t begin_ = 0, latest_ = 0;  ///< whose time is `begin_`
  std::int64_t slice_ = 0;               ///< the one at hand
  std::vector<bool> chosen_;             ///< by probe; empty: all are
  std::set<std::uint32_t> refused_;      ///< probes of which it was said why they are not in the table
  std::vector<Account> accounts_;
  std::vector<double> estimates_;  ///< Account::estimated, in fractions
  std::size_t followed_ = 0;       ///< of what came, that was shown
  std::uint64_t shown_ = 0;
  std::uint64_t beyond_ = 0;  ///< events after those that were asked for
};

Result<QuestionReplay> QuestionReplay::open(Question question) {
  auto recording = TRY(Recording::open(question.recording.replay));
  auto impl = std::make_unique<Impl>(std::move(question), std::move(recording));
  TRY(impl->prepare());
  return QuestionReplay(std::move(impl));
}

QuestionReplay::QuestionReplay(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
QuestionReplay::QuestionReplay(QuestionReplay&&) noexcept = default;
QuestionReplay& QuestionReplay::operator=(QuestionReplay&&) noexcept = default;
QuestionReplay::~QuestionReplay() = default;

const Question& QuestionReplay::question() const noexcept { return impl_->question_; }
const Recording& QuestionReplay::recording() const noexcept { return impl_->recording_; }
const AttachPlan& QuestionReplay::plan() const noexcept { return impl_->plan_; }
const Printed& QuestionReplay::printed() const noexcept { return impl_->printed_; }
Surroundings& QuestionReplay::surroundings() noexcept { return impl_->around_; }
std::vector<SessionNotice> QuestionReplay::take_notices() { return std::exchange(impl_->notices_, {}); }

void QuestionReplay::begin(AnswerConsumer& consumer) {
  impl_->consumer_ = &consumer;
  consumer.begin({.question = impl_->question_,
                  .plan = impl_->plan_,
                  .layout = nullptr,
                  .printed = impl_->printed_,
                  .around = impl_->around_});
  consumer.trace(impl_->plan_, impl_->first_probes());
}

Result<bool> QuestionReplay::step() { return impl_->step(); }
void QuestionReplay::finish() { impl_->finish(); }
SessionSummary QuestionReplay::summary() const { return impl_->summary(); }
std::uint64_t QuestionReplay::given() const noexcept { return impl_->shown_; }
std::uint64_t QuestionReplay::beyond() const noexcept { return impl_->beyond_; }

}  // namespace v1
}  // namespace usdt
