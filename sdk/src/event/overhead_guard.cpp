// SPDX-License-Identifier: BSD-2-Clause
#include "event/overhead_guard.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
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
/// Share of a window's expected work in which events stand for the time before, too; later ones for themselves alone.
constexpr double kSurelySeen = 0.7;

nanoseconds now() { return nanoseconds(event_clock()); }

}  // namespace

OverheadGuard::OverheadGuard(const GuardedTrace& trace, HitPrices prices, TracedTime time, double share)
    : trace_(trace),
      meter_(trace.counts, trace.sites, std::move(prices), std::move(time)),
      budget_(share, meter_.first()),
      estimates_(trace.sites) {}

Result<std::unique_ptr<OverheadGuard>> OverheadGuard::start(const GuardedTrace& trace, HitPrices prices,
                                                            TracedTime time, double share) {
  std::unique_ptr<OverheadGuard> guard(new OverheadGuard(trace, std::move(prices), std::move(time), share));
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
    advance();
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
  advance();
  reading_took_ = now() - began;
  if (budget_.wants_attached(meter_.last()) == attached_ || began < not_before_) return;
  attached_ ? detach() : attach();
}

void OverheadGuard::detach() {
  look_at_hits(false);
  const nanoseconds began = now();
  trace_.link.pause();
  const nanoseconds took = now() - began;
  attached_ = false;
  was_detached_ = true;
  estimates_.end_window(seen_so_far());
  advance();
  budget_.switched(meter_.last(), false, took);
}

void OverheadGuard::attach() {
  const nanoseconds began = now();
  const auto resumed = trace_.object.resume(trace_.link);
  const nanoseconds took = now() - began;
  advance();
  if (!resumed) {
    trouble_ = resumed.error().message;
    not_before_ = now() + kRetry;
    return;
  }
  trouble_.clear();
  attached_ = true;
  ++windows_;
  budget_.switched(meter_.last(), true, took);
  look_at_hits(true);
}

void OverheadGuard::look_at_hits(bool wanted) {
  if (wanted) {
    const double rate = seen_.time.count() > 0 ? seen_.work / static_cast<double>(seen_.time.count()) : 0;
    const double expected = kSurelySeen * rate * static_cast<double>(budget_.window().count());
    const double owed = meter_.last().work - meter_.first().work - told_;
    weights_.weigh(expected > 0 ? std::max(1 + owed / expected, 1.0) : 1);
  }
  if (auto* flag = static_cast<std::uint32_t*>(trace_.object.global("usdt_paused")))
    std::atomic_ref(*flag).store(wanted ? 0 : 1);
  advance();
  looking_ = wanted;
}

void OverheadGuard::advance() {
  const OverheadReading before = meter_.last();
  const OverheadReading& reading = meter_.read();
  const double work = reading.work - before.work;
  estimates_.pass(work, looking_);
  if (!looking_) return;
  seen_.work += work;
  if (meter_.is_of_processors()) seen_.cost += reading.cost - before.cost;
  seen_.time += reading.now - before.now;
  const double weight = weights_.latest();
  told_ += weight * work;
  if (weight > 1 && told_ >= reading.work - meter_.first().work) weights_.weigh(1);
}

std::vector<std::uint64_t> OverheadGuard::seen_hits() const {
  std::vector<std::uint64_t> hits;
  for (std::uint32_t site = 0; site < trace_.sites; ++site) {
    const usdt_site_stats stats = trace_.counts.of(site);
    hits.push_back(stats.hits - stats.not_sampled - stats.rejected - stats.undecided);
  }
  return hits;
}

SeenHits OverheadGuard::seen_so_far() const {
  SeenHits seen{.hits = seen_hits()};
  if (trace_.object.plan().table)
    if (auto rows = read_rows(trace_.object, trace_.object.plan(), {})) seen.rows = std::move(*rows);
  return seen;
}

std::vector<double> OverheadGuard::hits() const {
  const std::lock_guard lock(mutex_);
  return estimates_.hits(seen_hits());
}

Result<std::vector<TableRow>> OverheadGuard::rows() const {
  const std::lock_guard lock(mutex_);
  const auto seen = read_rows(trace_.object, trace_.object.plan(), {});
  if (!seen) return seen;
  return estimates_.rows(*seen);
}

Overhead OverheadGuard::account() const {
  const std::lock_guard lock(mutex_);
  const OverheadReading& first = meter_.first();
  const OverheadReading& last = meter_.last();
  const double work = last.work - first.work, cost = last.cost - first.cost;
  Overhead all{.allowed = budget_.share(), .windows = windows_, .trouble = trouble_};
  all.caused = work > 0 ? cost / work : 0;
  const double less = std::nextafter(1.0, 0.0);
  if (was_detached_) all.looked_at = work > 0 ? std::min(seen_.work / work, less) : less;
  if (seen_.cost > 0) all.own_share = std::max(seen_.work / (seen_.work + seen_.cost), 1e-3);
  all.of_hit = meter_.price_of_hit();
  all.looked_for = seen_.time;
  all.lasted = last.now - first.now;
  all.of_processors = meter_.is_of_processors();
  all.clocked = meter_.has_clocks();
  return all;
}

}  // namespace usdt::event
