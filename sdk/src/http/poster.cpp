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

#include "base/try.hpp"
#include "http/gzip.hpp"
#include "sys/thread.hpp"

namespace usdt::http {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostBytes = 8U << 20, kMostBatches = 64;
constexpr milliseconds kAttemptPatience{10'000};  ///< with one attempt
constexpr milliseconds kLongestPause{30'000};     ///< between attempts
constexpr milliseconds kLongestRetryAfter{60'000};

/// The first line of what a server said, if it is text.
std::string words_of(const Reply& reply) {
  constexpr std::size_t kMost = 200;
  std::string words = std::to_string(reply.status) + " " + reply.reason;
  const std::string said = reply.body.substr(0, std::min(reply.body.find('\n'), kMost));
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
  explicit Impl(Endpoint endpoint)
      : judge(endpoint.judge), client(std::move(endpoint.url), std::move(endpoint.headers)) {}

  /// The thread's: sends what is in the queue. A batch stays there until its outcome is known.
  void run() {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopped || !queue.empty(); });
      if (stopped) return;
      const Batch& batch = queue.front();
      lock.unlock();
      Outcome outcome = deliver(batch);
      lock.lock();
      if (stopped && !outcome.accepted) return;  // stop() says what becomes of it
      settle(std::move(outcome));
    }
  }

  /// With the lock: the first batch has an outcome.
  void settle(Outcome outcome) {
    outcomes[queue.front().owner].push_back(std::move(outcome));
    bytes -= queue.front().body.size();
    queue.pop_front();
    ++settled;
    why.clear();
    changed.notify_all();
  }

  Outcome deliver(const Batch& batch) {
    Outcome outcome{.number = batch.number};
    const std::string deflated = gzip(batch.body, GzipEffort::quick);
    const Message message{.path = batch.path,
                          .type = batch.type,
                          .body = deflated.empty() ? std::string_view(batch.body) : std::string_view(deflated),
                          .is_gzip = !deflated.empty()};
    for (unsigned attempts = 0;; ++attempts) {
      auto reply = client.post(message, kAttemptPatience);
      const Verdict verdict = reply ? judge(*reply) : Verdict::again;
      outcome.maybe_twice |= reply ? reply->was_sent_again : reply.error().kind == ErrorKind::io;
      outcome.maybe_twice |= verdict == Verdict::maybe_again;
      if (verdict == Verdict::accepted) {
        outcome.accepted = true;
        outcome.reply = std::move(reply->body);
        return outcome;
      }
      outcome.why = reply ? words_of(*reply) : reply.error().message;
      if (verdict == Verdict::refused) return outcome;
      const auto asked = reply ? parse_retry_after(reply->retry_after, std::chrono::system_clock::now()) : std::nullopt;
      if (!pause(asked.value_or(backoff(attempts, random_part(random))), outcome.why)) return outcome;
    }
  }

  /// Waits before another attempt. False: there will be none.
  bool pause(milliseconds time, const std::string& because) {
    std::unique_lock lock(mutex);
    why = because;
    return !changed.wait_for(lock, time, [this] { return stopped; });
  }

  Verdict (*judge)(const Reply& reply);
  Client client;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> queue;
  std::size_t bytes = 0;                                 ///< of the queue
  std::map<std::size_t, std::vector<Outcome>> outcomes;  ///< by owner
  std::uint64_t settled = 0;                             ///< batches with an outcome
  std::string why;                                       ///< the batch at hand was not taken yet
  bool stopped = false;
  std::mt19937_64 random{std::random_device()()};
  std::uniform_real_distribution<double> random_part;
  std::thread thread;
};

Poster::Poster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Poster>> Poster::start(Endpoint endpoint) {
  auto impl = std::make_unique<Impl>(std::move(endpoint));
  impl->thread = TRY(sys::start_thread("that sends answers", [raw = impl.get()] { raw->run(); }));
  return std::unique_ptr<Poster>(new Poster(std::move(impl)));
}

Poster::~Poster() { stop(); }

bool Poster::has_room() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bytes < kMostBytes && impl_->queue.size() < kMostBatches;
}

void Poster::put(Batch batch) {
  const std::lock_guard lock(impl_->mutex);
  impl_->bytes += batch.body.size();
  impl_->queue.push_back(std::move(batch));
  if (impl_->stopped) impl_->settle({.number = impl_->queue.front().number, .why = "it was given up"});
  impl_->changed.notify_all();
}

std::vector<Outcome> Poster::take_outcomes(std::size_t owner) {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->outcomes[owner], {});
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

void Poster::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    impl_->changed.notify_all();
  }
  impl_->client.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  const std::lock_guard lock(impl_->mutex);
  const std::string why = impl_->why.empty() ? "it was given up" : impl_->why;
  while (!impl_->queue.empty()) impl_->settle({.number = impl_->queue.front().number, .why = why});
}

}  // namespace usdt::http
