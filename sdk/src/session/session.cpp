// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/session.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <new>
#include <optional>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "session/live_question.hpp"
#include "session/live_run.hpp"
#include "session/replay_run.hpp"

namespace usdt {
inline namespace v1 {

using session::Clock;
using session::LiveQuestion;
using session::LiveRun;
using session::ReplayRun;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLongestWait{50};

/// A question as it was asked.
struct Asked {
  Question question;
  std::vector<AnswerConsumer*> consumers;
  std::string place;
};

/// A descriptor that is readable when there is something to do, or when kLongestWait is over.
class LoopDescriptor {
 public:
  [[nodiscard]] Result<void> open(int arrival) {
    epoll_ = sys::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    timer_ = sys::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!epoll_ || !timer_) return fail(os_failure(ErrorKind::limit, "a descriptor for event loops", errno));
    const timespec again{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kLongestWait).count()};
    const itimerspec both{.it_interval = again, .it_value = again};
    ::timerfd_settime(timer_.get(), 0, &both, nullptr);
    TRY(add(timer_.get()));
    return add(arrival);
  }
  [[nodiscard]] Result<void> add(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
      return fail(os_failure(ErrorKind::limit, "a descriptor for event loops", errno));
    return {};
  }
  void clear_timer() const {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t taken = ::read(timer_.get(), &times, sizeof(times));
  }
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(epoll_); }

 private:
  sys::UniqueFd epoll_;
  sys::UniqueFd timer_;
};

}  // namespace

struct Session::Impl {
  explicit Impl(SessionOptions options)
      : options_(std::move(options)), features_(options_.features.value_or(FeatureScope::current())) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  /// Followers have threads, which wake the first tracer.
  ~Impl() {
    if (run_) run_->arrival().wakes(nullptr);
  }

  Result<void> begin() {
    const FeatureScope scope(features_);
    if (run_ || replay_ || asked_.empty())
      return fail(ErrorKind::invalid_argument, "a session begins once, when it has been asked something");
    if (!asked_.front().question.recording.replay.empty()) return begin_replay();
    if (asked_.front().question.processes.command.empty() != (options_.command <= 0))
      return fail(ErrorKind::invalid_argument,
                  "a question about a command needs its process (SessionOptions::command), and no other has one");
    if (options_.finds_broker && !options_.broker) TRY(ask_broker());
    run_.emplace(asked_.front().question, options_, stop_requested_);
    TRY(run_->arrival().open());
    for (Asked& asked : asked_) {
      if (asked.question.began == 0) begin_question(asked.question, event_clock());
      AskedAttaching& attaching = asked.question.attaching;
      attaching.ring_megabytes = attaching.ring_size(options_.broker != nullptr);
      questions_.emplace_back(asked.question, asked.consumers, *run_);
      if (auto opened = questions_.back().open(); !opened) return about(questions_.back(), opened.error());
    }
    TRY(run_->find_subjects(questions_.front().consumer()));
    if (over()) return {};
    TRY(plan());
    return attach();
  }

  Result<void> ask_broker() {
    options_.broker = TRY(find_broker());
    if (!options_.broker) return {};
    features_.known = options_.broker->features();
    for (AnswerConsumer* consumer : asked_.front().consumers)
      consumer->notice({SessionNotice::Kind::scope, {}, broker_text(*options_.broker)});
    return {};
  }

  /// Each question reads the recording anew, one after the other.
  Result<void> begin_replay() {
    replay_.emplace();
    for (const Asked& asked : asked_) replay_->add(asked.question, asked.consumers, asked.place);
    if (options_.before_attaching) options_.before_attaching();
    return {};
  }

  Result<bool> step(milliseconds wait) {
    const FeatureScope scope(features_);
    if (replay_) return over() ? Result<bool>(false) : replay_->step();
    if (!run_) return fail(ErrorKind::invalid_argument, "the session has not begun");
    if (!run_->released()) {
      run_->set_released();
      run_->begin_time();
    }
    if (loop_.is_open()) loop_.clear_timer();
    if (cut_short_ || over() || !goes_on() || run_->subjects_ended()) return false;
    TRY(attach_what_came());
    const auto left = std::chrono::ceil<milliseconds>(run_->end_of_time() - Clock::now());
    wait = std::clamp(wait, milliseconds(0), std::clamp(left, milliseconds(0), kLongestWait));
    if (!traces_) {
      run_->arrival().wait(wait);
      return true;
    }
    run_->arrival().clear();
    TRY(step_all(wait));
    return true;
  }

  Result<void> finish() {
    const FeatureScope scope(features_);
    if (replay_) replay_->finish();
    for (LiveQuestion& question : questions_) {
      if (question.finished()) continue;
      if (question.waits())
        question.finish_without_trace(cut_short_ ? "ended before everything was attached: nothing was traced"
                                                 : "nothing came that matches");
      else
        finish(question);
    }
    return std::exchange(finished_, {});
  }

  Result<int> fd() {
    if (!run_) return fail(ErrorKind::invalid_argument, "the session has not begun");
    if (!loop_.is_open()) TRY(loop_.open(run_->arrival().fd()));
    for (LiveQuestion& question : questions_) TRY(add_to_loop(question));
    return loop_.fd();
  }

  [[nodiscard]] bool over() const noexcept {
    return stop_requested_ || options_.stop.stop_requested() || (run_ && run_->over());
  }

  [[nodiscard]] bool has_nothing_left() const {
    return !questions_.empty() &&
           std::ranges::all_of(questions_, [](const LiveQuestion& each) { return each.nothing_left(); });
  }

  /// Plans all questions: those that have something to trace get ready, others wait.
  Result<void> plan() {
    for (LiveQuestion& question : questions_) {
      auto planned = question.plan();
      if (!planned) return about(question, planned.error());
      if (*planned) ready_.push_back(&question);
    }
    return {};
  }

  Result<void> attach() {
    for (LiveQuestion* question : std::exchange(ready_, {})) {
      const auto attached = question->attach();
      if (!attached && attached.error().kind == ErrorKind::stopped) {
        cut_short_ = true;
        return {};
      }
      if (!attached) return about(*question, attached.error());
      if (!*attached) continue;
      if (!std::exchange(traces_, true)) run_->arrival().wakes(&question->tracer());
      if (auto begun = question->begin_following(); !begun) return about(*question, begun.error());
      question->tell_attached();
      if (loop_.is_open())
        if (auto added = add_to_loop(*question); !added) return about(*question, added.error());
    }
    // From here on only who waits for servers of debug files has to learn when it is over.
    if (std::ranges::none_of(asked_, [](const Asked& each) { return each.question.points.debuginfod; }))
      run_->stop_telling();
    return {};
  }

  /// Time runs from when something is traced.
  Result<void> attach_what_came() {
    for (LiveQuestion& question : questions_)
      if (question.waits() && question.look()) ready_.push_back(&question);
    const bool first = !traces_ && !ready_.empty();
    TRY(attach());
    if (first) run_->begin_time();
    return {};
  }

  /// A command goes on to its end, whether there is anything to see or not.
  [[nodiscard]] bool goes_on() const {
    return std::ranges::any_of(questions_, [](const LiveQuestion& question) { return !question.has_enough(); }) &&
           (run_->command() || !has_nothing_left());
  }

  Result<void> step_all(milliseconds wait) {
    const bool alone = questions_.size() == 1;
    std::size_t events = 0;
    for (LiveQuestion& question : questions_) {
      if (question.finished() || question.waits()) continue;
      auto taken = question.step(alone ? wait : milliseconds(0));
      if (!taken) return about(question, taken.error());
      events += *taken;
      if (!alone && question.has_enough()) finish(question);
    }
    if (!alone && events == 0) wait_for_any(wait);
    return {};
  }

  /// Waits until one of the tracers has something to take, or for a moment if there is no descriptor to wait on.
  void wait_for_any(milliseconds wait) {
    std::vector<pollfd> all = {{.fd = run_->arrival().fd(), .events = POLLIN, .revents = 0}};
    for (LiveQuestion& question : questions_) {
      if (question.finished() || question.waits()) continue;
      const auto fd = question.tracer().fd();
      if (fd)
        all.push_back({.fd = *fd, .events = POLLIN, .revents = 0});
      else
        wait = std::min(wait, milliseconds(1));
    }
    ::poll(all.data(), all.size(), static_cast<int>(wait.count()));
  }

  void finish(LiveQuestion& question) {
    auto finished = question.finish();
    if (!finished && finished_) finished_ = about(question, finished.error());
  }

  Result<void> add_to_loop(LiveQuestion& question) {
    if (question.finished() || question.waits()) return {};
    const auto fd = question.tracer().fd();
    return fd ? loop_.add(*fd) : fail(fd.error());
  }

  /// A script says which of its questions it is.
  tl::unexpected<Error> about(const LiveQuestion& question, const Error& error) const {
    const auto asked =
        std::ranges::find_if(asked_, [&](const Asked& each) { return &each.question == &question.question(); });
    return fail(asked == asked_.end() || asked->place.empty() ? error : error.within(asked->place));
  }

  SessionOptions options_;
  FeatureChoice features_;
  std::atomic<bool> stop_requested_ = false;
  std::deque<Asked> asked_ = {};          ///< where they are, they stay
  std::optional<ReplayRun> replay_ = {};  ///< of recordings; else
  std::optional<LiveRun> run_ = {};
  std::deque<LiveQuestion> questions_ = {};
  std::vector<LiveQuestion*> ready_ = {};  ///< to be attached
  bool traces_ = false;                    ///< some question is traced
  bool cut_short_ = false;                 ///< it was to end while something was being attached
  LoopDescriptor loop_ = {};
  Result<void> finished_ = {};  ///< what went wrong at the end of a question
};

Session::Session(SessionOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

void Session::add(Question question, std::vector<AnswerConsumer*> consumers, std::string place) {
  impl_->asked_.push_back({std::move(question), std::move(consumers), std::move(place)});
}

Result<void> Session::begin() try { return impl_->begin(); } catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<bool> Session::step(milliseconds wait) { return impl_->step(wait); }
Result<void> Session::finish() { return impl_->finish(); }

void Session::request_stop() noexcept { impl_->stop_requested_ = true; }

bool Session::over() const noexcept { return impl_->over(); }
Result<int> Session::fd() { return impl_->fd(); }
bool Session::traces() const noexcept { return impl_->traces_; }
bool Session::has_nothing_left() const noexcept { return impl_->has_nothing_left(); }

}  // namespace v1
}  // namespace usdt
