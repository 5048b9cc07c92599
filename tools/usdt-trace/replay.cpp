// SPDX-License-Identifier: BSD-2-Clause
#include "replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "common/report.hpp"
#include "ending.hpp"
#include "ledger.hpp"
#include "notice.hpp"
#include "record_output.hpp"
#include "signals.hpp"
#include "sink.hpp"

namespace usdt_trace {
namespace {

/// One run from a recording to its exit code.
class Replay {
 public:
  Replay(const Flags& flags, usdt::Recording recording, Sink sink)
      : flags_(flags), recording_(std::move(recording)), sink_(std::move(sink)) {}

  usdt::Result<int> run() {
    if (auto chosen = choose_probes(); !chosen) return usdt::fail(chosen.error());
    if (auto viewed = choose_view(); !viewed) return usdt::fail(viewed.error());
    if (auto asked = ask(); !asked) return usdt::fail(asked.error());
    sink_->show_by(line_output(plan_, printed_, flags_, around_, sink_->stream()));
    sink_->output().trace(plan_, first_probes());
    notice(flags_, fmt::format("replays {}{}", flags_.question.recording.replay, made_by()));
    for (const usdt::RecordedNotice& each : recording_.notices()) notice(flags_, each.text);
    catch_signals();
    auto shown = show();
    if (!shown) return usdt::fail(shown.error());
    return finish();
  }

 private:
  /// By whom and where; a recording that was cut before it says so has nothing of it.
  [[nodiscard]] std::string made_by() const {
    const usdt::RecordingInfo& info = recording_.info();
    const std::string what = plan_.sites.empty() ? " (nothing was traced by then: it has no probes)" : "";
    if (info.made_by.empty()) return what;
    return fmt::format(": {} on Linux {} ({}){}", info.made_by, info.kernel, info.machine, what);
  }

  /// Those that are named; without a name all.
  usdt::Result<void> choose_probes() {
    if (flags_.question.points.patterns.empty() || plan_.sites.empty()) return {};
    const auto named = [](const std::vector<usdt::PointPattern>& patterns) {
      usdt::Prints prints;
      for (const usdt::PointPattern& pattern : patterns) prints.for_probes.push_back({{}, pattern, {}});
      return prints;
    };
    const usdt::Prints begins = named(flags_.question.points.patterns);
    const usdt::Prints ends = named(flags_.question.points.ends);
    const usdt::PrintChoice at_begin(begins);
    const usdt::PrintChoice at_end(ends);
    chosen_.assign(plan_.probes.size(), false);
    bool any = false;
    for (std::uint32_t n = 0; n < plan_.probes.size(); ++n) {
      const usdt::PlannedProbe& probe = plan_.probes[usdt::Index<usdt::PlannedProbe>(n)];
      if (flags_.question.points.ends.empty() == probe.span.has_value()) continue;
      if (!probe.span) {
        chosen_[n] = at_begin.of(plan_, probe) > 0;
      } else if (at_begin.of(plan_, plan_.probes[probe.span->begin]) > 0 &&
                 at_end.of(plan_, plan_.probes[probe.span->end]) > 0) {
        chosen_[n] = chosen_[probe.span->begin.value] = chosen_[probe.span->end.value] = true;
      }
      any |= chosen_[n];
    }
    if (any) return {};
    return usdt::fail(usdt::ErrorKind::not_found, fmt::format("{} has none of these probes; it has {}",
                                                              flags_.question.recording.replay, recorded_probes()));
  }

  /// The first of them, for people.
  [[nodiscard]] std::string recorded_probes() const {
    constexpr std::uint32_t most = 5;
    const auto count = static_cast<std::uint32_t>(plan_.probes.size());
    std::vector<std::string> names;
    for (std::uint32_t n = 0; n < std::min(count, most); ++n)
      names.push_back(full_name(plan_, plan_.probes[usdt::Index<usdt::PlannedProbe>(n)]));
    return fmt::format("{}{}", fmt::join(names, ", "), count > most ? fmt::format(" and {} more", count - most) : "");
  }

  [[nodiscard]] std::vector<usdt::Index<usdt::PlannedProbe>> chosen_probes() const {
    std::vector<usdt::Index<usdt::PlannedProbe>> probes;
    for (std::uint32_t n = 0; n < chosen_.size(); ++n)
      if (chosen_[n]) probes.emplace_back(n);
    return probes;
  }

  /// What is shown of events: what was asked for, else what was asked for when they were recorded.
  usdt::Result<void> choose_view() {
    auto view = recorded_view(recording_);
    if (!view) return usdt::fail(view.error());
    flags_.question.stacks.kernel_depth = view->kernel_stack_depth;
    flags_.question.stacks.user_depth = view->user_stack_depth;
    flags_.question.stacks.kernel_in_lists = view->kernel_stack_in_lists;
    flags_.question.stacks.user_in_lists = view->user_stack_in_lists;
    flags_.question.limits.sample = view->sample;
    flags_.question.limits.max_rate = view->max_rate;
    flags_.question.limits.max_overhead = view->max_overhead;
    flags_.question.recording.last = view->last;
    usdt::begin_question(flags_.question, view->began);
    recorded_where_ = view->where;
    printed_ = std::move(view->printed);
    if (flags_.question.values.print.empty())
      return flags_.question.values.format.empty()
                 ? usdt::Result<void>()
                 : usdt::check_format(flags_.question.values.format, plan_, printed_, kOptionPrefix);
    const usdt::PrintChoice choice(flags_.question.values.print);
    printed_ = {};
    for (usdt::ListNumber n = 0; n < choice.count(); ++n) printed_.lists.push_back(choice.list(n));
    for (const usdt::PlannedProbe& probe : plan_.probes) printed_.of_probe.push_back(choice.of(plan_, probe));
    std::vector<usdt::SessionNotice> none;  // nothing comes
    return usdt::check_printed(flags_.question, plan_, printed_, false, none);
  }

  /// --where. What it was asked for when it was recorded counts in the account alone.
  usdt::Result<void> ask() {
    if (auto sense = usdt::check_durations(flags_.question, plan_, chosen_); !sense) return sense;
    accounts_.resize(plan_.probes.size());
    estimates_.resize(plan_.probes.size());
    if (flags_.question.view.question) {
      if (auto there = check_stacks(); !there) return there;
      auto table =
          usdt::EventTable::make(flags_.question.where.get(), *flags_.question.view.question, plan_, chosen_probes());
      if (!table) return usdt::fail(table.error());
      table_.emplace(std::move(*table));
    } else if (flags_.question.where) {
      auto filter = usdt::EventFilter::make(flags_.question.where, plan_);
      if (!filter) return usdt::fail(filter.error().within("--where"));
      filter_.emplace(std::move(*filter));
    } else if (!recorded_where_.empty()) {
      auto where = usdt::parse_expression(recorded_where_);
      if (!where) return usdt::fail(where.error().within("the recording's --where"));
      where->began = flags_.question.began;
      flags_.question.where = std::make_shared<const usdt::Expression>(std::move(*where));
    }
    return {};
  }

  /// That those were recorded which are keys.
  usdt::Result<void> check_stacks() const {
    for (const auto& [wanted, depth, option] :
         {std::tuple(flags_.question.view.user_stacks, flags_.question.stacks.user_depth, "ustack"),
          std::tuple(flags_.question.view.kernel_stacks, flags_.question.stacks.kernel_depth, "kstack")})
      if (wanted && depth == 0)
        return usdt::fail(
            usdt::ErrorKind::invalid_argument,
            fmt::format("{0}: no such stacks were recorded: a trace with --record and --{0} has them", option));
    return {};
  }

  usdt::Result<void> show() {
    const auto patient = [](std::chrono::milliseconds) { return !end_asked_for(); };
    constexpr std::uint64_t much = 1 << 20;
    while (!end_asked_for()) {
      auto event = recording_.next();
      if (!event) return usdt::fail(event.error().within(flags_.question.recording.replay));
      show_followed();
      if (*event == nullptr) return {};
      take(**event);
      if (sink_->stream().printed() - sink_->stream().written() > much) sink_->flush(patient);
      if (!sink_->is_written()) return {};
    }
    return {};
  }

  /// How many probes of the plan there were when the trace began.
  [[nodiscard]] std::size_t first_probes() const {
    if (recording_.followed().empty()) return plan_.probes.size();
    const usdt::RecordedFollowed& first = recording_.followed().front();
    std::size_t probes = first.probes_by_then;
    for (std::size_t came = first.probes; came > 0 && probes > 0;)  // and their spans, behind them
      if (!plan_.probes[usdt::Index<usdt::PlannedProbe>(--probes)].span) --came;
    return probes;
  }

  /// What came before the events from here on.
  void show_followed() {
    const auto& followed = recording_.followed();
    for (; followed_ < recording_.followed_by_now(); ++followed_) {
      sink_->output().know(followed[followed_].probes_by_then);
      sink_->output().followed(followed[followed_]);
    }
  }

  void take(const usdt::Event& event) {
    if (!chosen_.empty() && !chosen_[event.site().probe.value]) return;
    usdt::Account& account = accounts_[usdt::account_of(plan_, event.site().probe.value)];
    ++account.hits;
    if (table_) return add_to_table(event, account);
    if (filter_) {
      const auto holds = (*filter_)(event);
      if (!holds || !*holds) {
        ++(holds ? account.rejected : account.undecided);
        return;
      }
    }
    if (flags_.question.view.count_only) return stands_for(event);
    if (flags_.question.view.slowest > 0) return keep_if_slow(event, account);
    if (shown_ >= flags_.question.limits.max_events) {
      ++account.discarded;
      ++beyond_;
      return;
    }
    ++shown_;
    ++account.delivered;
    stands_for(event);
    around_.begin(event);
    sink_->output().event(event);
  }

  void keep_if_slow(const usdt::Event& event, usdt::Account& account) {
    if (!slowest_.wants(event)) {
      ++account.faster;
      return;
    }
    ++account.delivered;
    around_.begin(event);
    slowest_.add(event, around_.wall_offset(), around_.stacks(flags_.question.stacks, event));
  }

  void add_to_table(const usdt::Event& event, usdt::Account& account) {
    if (flags_.question.view.heat_map) cut_before(event);
    using Added = usdt::TableBuilder::Added;
    usdt::EventStacks stacks;
    if (flags_.question.view.has_stacks()) {
      around_.begin(event);
      stacks = around_.stacks(flags_.question.stacks, event);
    }
    const Added added = table_->add(event, stacks);
    account.delivered += added == Added::row ? 1 : 0;
    if (added == Added::row) stands_for(event);
    account.rejected += added == Added::rejected ? 1 : 0;
    account.undecided += added == Added::undecided ? 1 : 0;
    if (added == Added::undecided) say_why_not(event);
    account.table_full += added == Added::table_full ? 1 : 0;
  }

  /// Its hits, of a trace whose events are more or fewer of them.
  void stands_for(const usdt::Event& event) {
    if (flags_.question.limits.max_overhead > 0)
      estimates_[usdt::account_of(plan_, event.site().probe.value)] += event.weight();
  }

  /// Once of each probe whose events cannot be in the table.
  void say_why_not(const usdt::Event& event) {
    const usdt::Index<usdt::PlannedProbe> probe = event.site().probe;
    const std::string_view why = table_->refusal(usdt::Index<usdt::PlannedSite>(event.site_number()));
    if (why.empty() || !refused_.insert(probe.value).second) return;
    notice(flags_, fmt::format("{} is not in the table: {}", usdt::full_name(plan_, plan_.probes[probe]), why));
  }

  /// With --heatmap: the events so far are shown, should this one be of a later stretch of time.
  void cut_before(const usdt::Event& event) {
    constexpr std::int64_t most = std::int64_t{1} << 60;  // of times a recording claims
    const auto offset = static_cast<std::uint64_t>(around_.wall_offset());
    const auto at = std::clamp(static_cast<std::int64_t>(event.timestamp() + event.duration() + offset),
                               std::int64_t{0}, std::int64_t{2} * most);
    const auto interval =
        static_cast<std::int64_t>(std::clamp(*flags_.question.view.interval * 1e9, 1e6, static_cast<double>(most)));
    if (!slicer_) {
      begin_ = at;
      slicer_.emplace(at);
    }
    latest_ = std::max(latest_, at);
    if (at < end_of_slice(interval)) return;
    sink_->output().heat(slicer_->cut(table_->table(), table_->rows(), end_of_slice(interval)), false);
    slice_ = (at - begin_) / interval;
    slicer_->begin(begin_ + slice_ * interval);
  }
  [[nodiscard]] std::int64_t end_of_slice(std::int64_t interval) const { return begin_ + (slice_ + 1) * interval; }

  void show_rows() {
    const auto rows = usdt::arrange_rows(flags_.question.view, table_->table(), table_->rows());
    const std::optional<usdt::Overhead> overhead;
    sink_->output().table({.table = table_->table(), .rows = rows, .overhead = overhead});
  }
  void show_table() {
    if (!flags_.question.view.heat_map) return show_rows();
    if (!slicer_) slicer_.emplace(0);
    sink_->output().heat(slicer_->cut(table_->table(), table_->rows(), latest_), true);
  }

  /// Of the hits of the trace, those that were not recorded have the reason they had then.
  [[nodiscard]] usdt::SessionSummary summary() const {
    usdt::SessionSummary summary{.probes = accounts_, .skipped = plan_.skipped, .missed = {}, .changed = {}};
    summary.cut = recording_.cut();
    if (const auto& ledger = recording_.ledger()) {
      summary.skipped = ledger->skipped;
      summary.changed = ledger->changes;
      summary.missed_hits = ledger->missed_hits;
      summary.undecided = ledger->undecided;
      summary.missed = ledger->missed;
      for (std::size_t n = 0; n < summary.probes.size() && summary.cut.empty(); ++n)
        if (chosen_.empty() || chosen_[n]) summary.probes[n].add_recorded(ledger->probes[n]);
    }
    const auto not_written = usdt::by_account(plan_, sink_->output().not_written());
    for (std::size_t n = 0; n < summary.probes.size(); ++n) {
      usdt::Account& account = summary.probes[n];
      account.estimated = static_cast<std::uint64_t>(std::llround(estimates_[n]));
      account.not_written += not_written[n];
      account.delivered -= not_written[n];
    }
    return summary;
  }
  usdt::Result<int> finish() {
    const auto patient = [](std::chrono::milliseconds) { return !end_asked_for(); };
    sink_->flush(patient);
    const Ledger ledger(
        flags_, plan_,
        {.summary = summary(), .shown = shown_, .not_shown = beyond_, .followed = true, .nothing_left = false});
    if (sink_->is_written()) {
      if (table_) show_table();
      if (flags_.question.view.slowest > 0) sink_->output().slowest(slowest_, true);
      sink_->output().summary(ledger.summary());
      sink_->flush(patient);
    }
    ledger.print();
    if (sink_->failed()) return run_time_failure;
    if (flags_.strict && (ledger.has_losses() || sink_->output().unreadable() > 0)) return strict_failure;
    return recording_.cut().empty() ? success : run_time_failure;
  }

  Flags flags_;
  usdt::Recording recording_;
  std::shared_ptr<const usdt::AttachPlan> shared_plan_ = recording_.plan();
  const usdt::AttachPlan& plan_ = *shared_plan_;
  usdt::RecordedSurroundings around_{recording_};
  usdt::Printed printed_;
  std::string recorded_where_;
  std::optional<usdt::EventFilter> filter_;
  std::optional<usdt::EventTable> table_;
  usdt::SlowestEvents slowest_{flags_.question.view.slowest};
  std::optional<usdt::HeatSlicer> slicer_;  ///< from the first event on,
  std::int64_t begin_ = 0, latest_ = 0;     ///< whose time is `begin_`
  std::int64_t slice_ = 0;                  ///< the one at hand
  std::optional<Sink> sink_;
  std::vector<bool> chosen_;         ///< by probe; empty: all are
  std::set<std::uint32_t> refused_;  ///< probes of which it was said why they are not in the table
  std::vector<usdt::Account> accounts_;
  std::vector<double> estimates_;  ///< Account::estimated, in fractions
  std::size_t followed_ = 0;       ///< of what came, that was shown
  std::uint64_t shown_ = 0;
  std::uint64_t beyond_ = 0;  ///< events after those that were asked for
};

}  // namespace

int replay(const std::vector<Flags>& questions) {
  ignore_write_signals();
  auto sink = Sink::open(questions.front().output.file);
  if (!sink) return complain(sink.error(), questions.front());
  int worst = success;
  for (const Flags& flags : questions) {
    auto recording = usdt::Recording::open(flags.question.recording.replay);
    if (!recording) return complain(recording.error(), flags);
    if (std::error_code unknown;
        !flags.output.file.empty() &&
        std::filesystem::equivalent(flags.output.file, flags.question.recording.replay, unknown))
      return complain(
          {usdt::ErrorKind::invalid_argument, fmt::format("--output {} is the recording itself", flags.output.file)},
          flags);
    Replay replay(flags, std::move(*recording), sink->sibling());
    auto code = replay.run();
    if (!code && !flags.question.name.empty()) code = usdt::fail(code.error().within(flags.script.place));
    worst = std::max(worst, code ? *code : complain(code.error(), flags));
  }
  return worst;
}

}  // namespace usdt_trace
