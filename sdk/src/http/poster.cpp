// SPDX-License-Identifier: BSD-2-Clause
#include "http/poster.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "http/gzip.hpp"
#include "sys/thread.hpp"

namespace usdt::http {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 8U << 20, kMostBatches = 64;
constexpr milliseconds kAttemptPatience{10'000};  ///< with one attempt
constexpr milliseconds kLongestPause{30'000};     ///< between attempts
constexpr milliseconds kLongestRetryAfter{60'000};
constexpr milliseconds kHopeless{10'000};  ///< is_hopeless()
constexpr const char* kGivenUp = "it was given up";

/// The first line of what a server said, if it is text: of its message, or of the body.
std::string words_of(const Reply& reply, const std::string& message) {
  constexpr std::size_t kMost = 200;
  std::string words = std::to_string(reply.status) + " " + reply.reason;
  const std::string& whole = message.empty() ? reply.body : message;
  const std::string said = whole.substr(0, std::min(whole.find('\n'), kMost));
  const bool is_text = std::ranges::all_of(said, [](char c) { return c >= ' ' && c != '\x7f'; });
  return said.empty() || !is_text ? words : words + ": " + said;
}

}  // namespace

milliseconds backoff(unsigned attempts, double random) {
  constexpr double kFirst = 200;
  const double longest =
      std::min(kFirst * std::exp2(std::min(attempts, 20U)), static_cast<double>(kLongestPause.count()));
  return milliseconds(static_cast<std::int64_t>(longest * (0.5 + random / 2)));
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::chrono::system_clock::time_point now) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size())
    return std::min(milliseconds(std::int64_t{seconds} * 1000), kLongestRetryAfter);
  std::tm date{};
  const std::string terminated(text);
  const char* rest = ::strptime(terminated.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  const auto then = std::chrono::system_clock::from_time_t(::timegm(&date));
  return std::clamp(std::chrono::duration_cast<milliseconds>(then - now), milliseconds(0), kLongestRetryAfter);
}

bool is_worth_another_attempt(unsigned status) noexcept {
  constexpr std::array kAgain{429U, 502U, 503U, 504U};
  return std::ranges::find(kAgain, status) != kAgain.end();
}

Verdict judge_status(const Reply& reply) {
  if (reply.status / 100 == 2) return Verdict::accepted;
  return is_worth_another_attempt(reply.status) ? Verdict::again : Verdict::refused;
}

struct Poster::Impl {
  Impl(const Endpoint& endpoint, std::optional<Spool> kept)
      : server(endpoint), client(endpoint.url, endpoint.headers), spool(std::move(kept)) {}

  /// The thread's: sends what is in the queue. A batch stays there until its outcome is known.
  void run() {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopped || has_any(); });
      if (stopped) return;
      if (spool)
        send_spooled(lock);
      else
        send_queued(lock);
    }
  }

  [[nodiscard]] bool has_any() const { return spool ? !spool->is_empty() : !queue.empty(); }

  void send_queued(std::unique_lock<std::mutex>& lock) {
    const Batch& batch = queue.front();
    is_at_hand = true;
    lock.unlock();
    const std::string deflated = gzip(batch.body, GzipEffort::quick);
    Outcome outcome = deliver({.path = batch.path,
                               .type = batch.type,
                               .body = deflated.empty() ? std::string_view(batch.body) : std::string_view(deflated),
                               .is_gzip = !deflated.empty()});
    lock.lock();
    is_at_hand = false;
    if (stopped && !outcome.accepted) return;  // stop() says what becomes of it
    if (std::exchange(abandoned, false)) client.resume();
    if (!outcome.accepted && outcome.why.empty()) outcome.why = kGivenUp;
    outcome.number = queue.front().number;
    settle(std::move(outcome));
  }

  /// With the lock: the first batch has an outcome.
  void settle(Outcome outcome) {
    bytes -= queue.front().body.size();
    if (outcome.accepted) gave_up.reset();
    outcomes[queue.front().owner].push_back(std::move(outcome));
    queue.pop_front();
    ++settled;
    why.clear();
    changed.notify_all();
  }

  void give_up(std::size_t owner) {
    std::unique_lock lock(mutex);
    if (spool) return;
    gave_up = Clock::now();
    const std::string because = why.empty() ? kGivenUp : why;
    const auto first = queue.begin() + (is_at_hand ? 1 : 0);
    const auto dropped =
        std::stable_partition(first, queue.end(), [&](const Batch& each) { return each.owner != owner; });
    for (auto each = dropped; each != queue.end(); ++each) {
      bytes -= each->body.size();
      outcomes[owner].push_back({.number = each->number, .why = because});
    }
    queue.erase(dropped, queue.end());
    if (!is_at_hand || queue.front().owner != owner) return;
    abandoned = true;
    client.stop();
    changed.notify_all();
    changed.wait(lock, [this] { return !abandoned || stopped; });
  }

  /// A batch that was put has its outcome at once: it is on disk, or lost.
  void keep(const Batch& batch) {
    SpooledBatch kept{.path = batch.path, .type = std::string(batch.type), .events = batch.events};
    kept.deflated = gzip(batch.body, GzipEffort::quick);
    const std::lock_guard lock(mutex);
    const auto put = kept.deflated.empty() ? Result<void>(fail(no_memory())) : spool->put(kept);
    outcomes[batch.owner].push_back({.number = batch.number,
                                     .accepted = put.has_value(),
                                     .why = put ? std::string() : put.error().message,
                                     .older_because = std::exchange(spool_older_because, {})});
    changed.notify_all();
  }

  void send_spooled(std::unique_lock<std::mutex>& lock) {
    const auto batch = spool->front();
    lock.unlock();
    Outcome outcome;
    if (batch)
      outcome = deliver(message_of(*batch));
    else
      outcome.why = batch.error().message;
    lock.lock();
    if (!outcome.older_because.empty()) spool_older_because = outcome.older_because;
    if (stopped && !outcome.accepted) return;  // it is sent when the next one starts
    const std::uint64_t before = spool->events();
    spool->pop();
    const std::uint64_t events = before - spool->events();
    const std::uint64_t lost = outcome.accepted ? std::min(outcome.rejected, events) : events;
    sent += events - lost;
    spool_lost += lost;
    if (!outcome.accepted || outcome.rejected > 0) {
      ++spool_lost_batches;
      spool_trouble = outcome.why;
    }
    why.clear();
    ++settled;
    changed.notify_all();
  }

  Outcome deliver(const Message& message) {
    if (!is_older) return send(message);
    const auto older = server.older_form(message);
    return older ? send(message_of(*older)) : send(message);
  }

  static Message message_of(const SpooledBatch& batch) {
    return {.path = batch.path, .type = batch.type, .body = batch.deflated, .is_gzip = true};
  }

  /// Sends the older form of what the server does not know; all that follows has that form, too.
  Outcome send_older(const Message& message, const Reply& reply) {
    const auto older = server.older_form == nullptr || is_older ? std::nullopt : server.older_form(message);
    if (!older) return {.why = why_not(reply)};
    is_older = true;
    Outcome outcome = send(message_of(*older));
    outcome.older_because = why_not(reply);
    return outcome;
  }

  Outcome send(const Message& message) {
    Outcome outcome;
    for (unsigned attempts = 0;; ++attempts) {
      auto reply = client.post(message, kAttemptPatience);
      const Verdict verdict = reply ? server.judge(*reply) : Verdict::again;
      outcome.maybe_twice |= reply ? reply->was_sent_again : reply.error().kind == ErrorKind::io;
      outcome.maybe_twice |= verdict == Verdict::maybe_again;
      if (verdict == Verdict::accepted) {
        outcome.accepted = true;
        outcome.why.clear();
        if (server.rejected_by == nullptr) return outcome;
        const Rejected rejected = server.rejected_by(*reply);
        outcome.rejected = rejected.items;
        outcome.why = rejected.why;
        return outcome;
      }
      if (is_abandoned()) return outcome;
      if (verdict == Verdict::unknown_form) return send_older(message, *reply);
      outcome.why = reply ? why_not(*reply) : reply.error().message;
      if (verdict == Verdict::refused) return outcome;
      const auto asked = reply ? parse_retry_after(reply->retry_after, std::chrono::system_clock::now()) : std::nullopt;
      const auto least = backoff(attempts, random_part(random));  // whatever a server in trouble asks for
      if (!pause(std::max(asked.value_or(least), least), outcome.why)) return outcome;
    }
  }

  [[nodiscard]] std::string why_not(const Reply& reply) const {
    return words_of(reply, server.message_of == nullptr ? std::string() : server.message_of(reply));
  }

  /// Waits before another attempt. False: there will be none.
  bool pause(milliseconds time, const std::string& because) {
    std::unique_lock lock(mutex);
    why = because;
    return !changed.wait_for(lock, time, [this] { return stopped || abandoned; });
  }

  [[nodiscard]] bool is_abandoned() {
    const std::lock_guard lock(mutex);
    return abandoned;
  }

  Endpoint server;
  Client client;
  bool is_older = false;  ///< the thread's: the server has wanted it
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Spool> spool;
  std::uint64_t sent = 0, spool_lost = 0, spool_lost_batches = 0;  ///< Backlog
  std::string spool_trouble;                                       ///< Backlog::why
  std::string spool_older_because;  ///< Outcome::older_because, for whoever puts the next batch
  std::deque<Batch> queue;
  std::size_t bytes = 0;                                 ///< of the queue
  std::map<std::size_t, std::vector<Outcome>> outcomes;  ///< by owner
  std::uint64_t settled = 0;                             ///< batches with an outcome
  std::string why;                                       ///< the batch at hand was not taken yet
  bool stopped = false;
  bool is_at_hand = false;                   ///< the queue's first batch: the thread is about to send it
  bool abandoned = false;                    ///< and is to end that, since its owner has given up
  std::optional<Clock::time_point> gave_up;  ///< somebody, and nothing was taken since
  std::mt19937_64 random{std::random_device()()};
  std::uniform_real_distribution<double> random_part;
  std::thread thread;
};

Poster::Poster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Poster>> Poster::start(const Endpoint& endpoint, std::optional<Spool> spool) {
  auto impl = std::make_unique<Impl>(endpoint, std::move(spool));
  impl->thread = TRY(sys::start_thread("that sends answers", [raw = impl.get()] { raw->run(); }));
  return std::unique_ptr<Poster>(new Poster(std::move(impl)));
}

Poster::~Poster() { stop(); }

bool Poster::has_room() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->spool) return impl_->spool->has_room();
  return impl_->bytes < kMostBytes && impl_->queue.size() < kMostBatches;
}

void Poster::put(Batch batch) {
  if (impl_->spool) return impl_->keep(batch);
  const std::lock_guard lock(impl_->mutex);
  impl_->bytes += batch.body.size();
  impl_->queue.push_back(std::move(batch));
  if (impl_->stopped) impl_->settle({.number = impl_->queue.front().number, .why = kGivenUp});
  impl_->changed.notify_all();
}

std::vector<Outcome> Poster::take_outcomes(std::size_t owner) {
  const std::lock_guard lock(impl_->mutex);
  auto outcomes = impl_->outcomes.extract(owner);
  return outcomes ? std::move(outcomes.mapped()) : std::vector<Outcome>();
}

bool Poster::wait(milliseconds most) {
  std::unique_lock lock(impl_->mutex);
  const std::uint64_t before = impl_->settled;
  return impl_->changed.wait_for(lock, most, [&] { return impl_->settled != before; });
}

std::string Poster::trouble() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->why;
}

std::optional<Backlog> Poster::backlog() const {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->spool) return std::nullopt;
  const Spool& spool = *impl_->spool;
  return Backlog{.batches = spool.batches(),
                 .events = spool.events(),
                 .bytes = spool.bytes(),
                 .sent = impl_->sent,
                 .lost = impl_->spool_lost,
                 .lost_batches = impl_->spool_lost_batches,
                 .why = impl_->spool_trouble};
}

void Poster::give_up(std::size_t owner) { impl_->give_up(owner); }

bool Poster::is_hopeless() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->gave_up && Clock::now() - *impl_->gave_up < kHopeless;
}

void Poster::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    impl_->changed.notify_all();
  }
  impl_->client.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  const std::lock_guard lock(impl_->mutex);
  const std::string why = impl_->why.empty() ? kGivenUp : impl_->why;
  while (!impl_->queue.empty()) impl_->settle({.number = impl_->queue.front().number, .why = why});
}

}  // namespace usdt::http
