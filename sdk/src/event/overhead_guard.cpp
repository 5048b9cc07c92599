// SPDX-License-Identifier: BSD-2-Clause
#include "event/overhead_guard.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "event/row_map.hpp"
#include "sys/thread.hpp"
#include "usdt/clock.hpp"
#include "usdt/features.hpp"

namespace usdt::event {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// How often the account is looked at; to look takes a hundredth of the time at most.
constexpr nanoseconds kOften = milliseconds(10), kSeldom = milliseconds(200);
constexpr int kShareOfLooks = 100;
/// Before what the kernel refused is tried again.
constexpr nanoseconds kRetry = std::chrono::seconds(1);
/// Prices are not exact: whatever hits are said to cost, something is left for the processes' own work.
constexpr double kLeastWork = 0.02;
/// Of the work that a window is meant to see: events have told of what went before by then, and stand for themselves.
constexpr double kSurelySeen = 0.7;
/// Weights that are remembered, for events that are still in the ring.
constexpr std::size_t kMostWeights = 8192;

nanoseconds now() { return nanoseconds(event_clock()); }

}  // namespace

OverheadGuard::OverheadGuard(const GuardedTrace& trace, HitPrices prices, TracedTime time)
    : trace_(trace), prices_(std::move(prices)), time_(std::move(time)), hits_(trace.sites) {
  before_last_.hits.resize(trace.sites);
  before_current_.hits.resize(trace.sites);
  weights_.push_back({});
}

Result<std::unique_ptr<OverheadGuard>> OverheadGuard::start(const GuardedTrace& trace, HitPrices prices,
                                                            TracedTime time, double share) {
  std::unique_ptr<OverheadGuard> guard(new OverheadGuard(trace, std::move(prices), std::move(time)));
  guard->used_ = guard->time_.read();
  guard->first_ = guard->last_reading_ = guard->read();
  guard->budget_.emplace(share, guard->first_);
  auto thread = sys::start_thread("that keeps the overhead within its limit",
                                  [raw = guard.get(), features = FeatureScope::current()] {
                                    const FeatureScope scope(features);
                                    raw->run();
                                  });
  if (!thread) return fail(thread.error());
  guard->thread_ = std::move(*thread);
  return guard;
}

OverheadGuard::~OverheadGuard() { finish(); }

void OverheadGuard::finish() noexcept {
  std::unique_lock lock(mutex_);
  if (!std::exchange(finished_, true)) {
    if (was_detached_ && looking_) look_at_hits(false);
    advance(read());
  }
  lock.unlock();
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void OverheadGuard::run() {
  std::unique_lock lock(mutex_);
  while (!finished_) {
    step();
    changed_.wait_for(lock, std::clamp(kShareOfLooks * reading_took_, kOften, kSeldom), [this] { return finished_; });
  }
}

void OverheadGuard::step() {
  const nanoseconds began = now();
  advance(read());
  reading_took_ = now() - began;
  if (budget_->wants_attached(last_reading_) == attached_ || began < not_before_) return;
  attached_ ? detach() : attach();
}

void OverheadGuard::detach() {
  look_at_hits(false);
  const Stretch over = std::exchange(current_, {});
  const nanoseconds began = now();
  trace_.link.pause();
  const nanoseconds took = now() - began;
  attached_ = false;
  was_detached_ = true;
  // What has only a little to tell of what went before it tells it together with the stretch before.
  if (last_.seen > 0 && over.seen < last_.seen / 4) {
    last_ = last_ + over;
  } else {
    estimate(before_last_, before_current_, last_.weight());
    last_ = over;
    before_last_ = std::move(before_current_);
  }
  before_current_ = seen_so_far();
  advance(read());
  budget_->switched(last_reading_, false, took);
}

void OverheadGuard::attach() {
  const nanoseconds began = now();
  const auto resumed = trace_.object.resume(trace_.link);
  const nanoseconds took = now() - began;
  advance(read());
  if (!resumed) {
    trouble_ = resumed.error().message;
    not_before_ = now() + kRetry;
    return;
  }
  trouble_.clear();
  attached_ = true;
  ++windows_;
  budget_->switched(last_reading_, true, took);
  look_at_hits(true);
}

void OverheadGuard::look_at_hits(bool wanted) {
  if (wanted) {
    const double rate = seen_time_.count() > 0 ? seen_work_ / static_cast<double>(seen_time_.count()) : 0;
    const double expected = kSurelySeen * rate * static_cast<double>(budget_->window().count());
    const double owed = last_reading_.work - first_.work - told_;
    weigh_events(expected > 0 ? std::max(1 + owed / expected, 1.0) : 1);
  }
  if (auto* flag = static_cast<std::uint32_t*>(trace_.object.global("usdt_paused")))
    std::atomic_ref(*flag).store(wanted ? 0 : 1);
  advance(read());
  looking_ = wanted;
}

OverheadReading OverheadGuard::read() {
  OverheadReading reading{.now = now()};
  hits_so_far_ = 0;
  for (std::uint32_t site = 0; site < trace_.sites; ++site) {
    const std::uint64_t hits = trace_.counts.of(site).hits;
    hits_so_far_ += hits;
    reading.cost += static_cast<double>(hits) * prices_.of_trap(site);
  }
  reading.cost += prices_.of_programs(hits_so_far_);
  const double used = time_.read();
  const double more = std::max(used - used_, 0.0);
  const double paid = std::max(reading.cost - last_reading_.cost, 0.0);
  used_ = used;
  reading.work = last_reading_.work + (time_.is_of_processors() ? std::max(more - paid, kLeastWork * more) : more);
  return reading;
}

void OverheadGuard::advance(const OverheadReading& reading) {
  const double work = reading.work - last_reading_.work;
  if (looking_) {
    current_.seen += work;
    seen_work_ += work;
    if (time_.is_of_processors()) seen_cost_ += reading.cost - last_reading_.cost;
    seen_time_ += reading.now - last_reading_.now;
    const double weight = weights_.back().weight;
    told_ += weight * work;
    if (weight > 1 && told_ >= reading.work - first_.work) weigh_events(1);
  } else {
    current_.unseen += work;
  }
  last_reading_ = reading;
}

OverheadGuard::Seen OverheadGuard::seen_so_far() const {
  Seen seen;
  for (std::uint32_t site = 0; site < trace_.sites; ++site) {
    const usdt_site_stats stats = trace_.counts.of(site);
    seen.hits.push_back(stats.hits - stats.not_sampled - stats.rejected - stats.undecided);
  }
  if (trace_.object.plan().table)
    if (auto rows = read_rows(trace_.object, trace_.object.plan(), {})) seen.rows = std::move(*rows);
  return seen;
}

namespace {

/// Adds what came from one moment to the other, so many times. Rows are never taken away, and both are in the order of
/// their keys.
void add_rows(std::map<std::vector<TableKey>, TableRow>& all, const std::vector<TableRow>& from,
              const std::vector<TableRow>& to, double weight) {
  auto before = from.begin();
  for (const TableRow& row : to) {
    while (before != from.end() && before->keys < row.keys) ++before;
    TableRow more = row;
    if (before != from.end() && before->keys == row.keys) more.subtract(*before);
    if (more.count == 0) continue;
    more.scale(weight);
    TableRow& whole = all[row.keys];
    whole.keys = row.keys;
    whole.add(more);
  }
}

void add_hits(std::vector<double>& all, const std::vector<std::uint64_t>& from, const std::vector<std::uint64_t>& to,
              double weight) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += weight * static_cast<double>(to[i] - from[i]);
}

}  // namespace

void OverheadGuard::estimate(const Seen& from, const Seen& to, double weight) {
  add_hits(hits_, from.hits, to.hits, weight);
  add_rows(rows_, from.rows, to.rows, weight);
}

std::vector<double> OverheadGuard::hits() const {
  const std::lock_guard lock(mutex_);
  const Seen seen = seen_so_far();
  const StretchWeights weights(last_, current_);
  std::vector<double> all = hits_;
  add_hits(all, before_last_.hits, before_current_.hits, weights.before);
  add_hits(all, before_current_.hits, seen.hits, weights.now);
  return all;
}

Result<std::vector<TableRow>> OverheadGuard::rows() const {
  const std::lock_guard lock(mutex_);
  auto seen = read_rows(trace_.object, trace_.object.plan(), {});
  if (!seen) return seen;
  const StretchWeights weights(last_, current_);
  auto all = rows_;
  add_rows(all, before_last_.rows, before_current_.rows, weights.before);
  add_rows(all, before_current_.rows, *seen, weights.now);
  std::vector<TableRow> rows;
  for (auto& [keys, row] : all) rows.push_back(std::move(row));
  return rows;
}

void OverheadGuard::weigh_events(double weight) {
  const std::lock_guard lock(weights_mutex_);
  weights_.push_back({static_cast<std::uint64_t>(now().count()), weight});
  if (weights_.size() > kMostWeights) weights_.pop_front();
}

double OverheadGuard::weight_at(std::uint64_t timestamp) const {
  const std::lock_guard lock(weights_mutex_);
  const auto later = std::ranges::upper_bound(weights_, timestamp, {}, &Weight::from);
  return later == weights_.begin() ? weights_.front().weight : std::prev(later)->weight;
}

Overhead OverheadGuard::account() const {
  const std::lock_guard lock(mutex_);
  const double work = last_reading_.work - first_.work, cost = last_reading_.cost - first_.cost;
  Overhead all{.allowed = budget_->share(), .windows = windows_, .trouble = trouble_};
  all.caused = work > 0 ? cost / work : 0;
  const double less = std::nextafter(1.0, 0.0);
  if (was_detached_) all.looked_at = work > 0 ? std::min(seen_work_ / work, less) : less;
  if (seen_cost_ > 0) all.own_share = std::max(seen_work_ / (seen_work_ + seen_cost_), 1e-3);
  all.of_hit = hits_so_far_ > 0 ? nanoseconds(std::llround(cost / static_cast<double>(hits_so_far_))) : nanoseconds(0);
  all.looked_for = seen_time_;
  all.lasted = last_reading_.now - first_.now;
  all.of_processors = time_.is_of_processors();
  all.clocked = prices_.has_clocks();
  return all;
}

}  // namespace usdt::event
