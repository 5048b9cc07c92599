// SPDX-License-Identifier: BSD-2-Clause
// A session answers questions about running programs: it finds and plans what they name, waits for what is not there
// yet, attaches, takes in what comes later, and accounts for every hit. It answers questions with
// AskedRecording::replay out of the recording, by the calls of live ones. Each question has AnswerConsumers, which take
// the answers.
//
//     usdt::Session session;
//     session.add(question, {&consumer});
//     if (auto begun = session.begin(); !begun) return complain(begun.error());
//     for (auto more = session.step(100ms); more && *more;) more = session.step(100ms);
//     auto finished = session.finish();
//
// One thread at a time uses a session, request_stop() apart; consumers are called by that thread, within these calls. A
// session may be destroyed at any time between two calls: it detaches all. An exception of a consumer comes out of the
// call that called it, and finish() may be called after that.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/answers.hpp"
#include "usdt/broker.hpp"
#include "usdt/features.hpp"
#include "usdt/question.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// Returns the socket of usdt-broker: what USDT_BROKER of the environment says, or else Broker::kSocket.
[[nodiscard]] std::string usual_broker_socket();
/// Connects to usdt-broker at the usual socket, if this process may not attach itself and the socket is there. Null:
/// else. Errors: those of Broker::connect().
[[nodiscard]] Result<std::shared_ptr<Broker>> find_broker();
/// Says whose processes are traced through the service.
[[nodiscard]] std::string broker_text(const Broker& broker);

/// Options of all questions of a session together. Their AskedProcesses, AskedLimits::seconds and AskedFollowing::wait
/// are those of the first question.
struct SessionOptions {
  /// The process of AskedProcesses::command: a child of the caller that waits until begin() has returned, and then
  /// runs the program. 0: there is no command.
  pid_t command = 0;
  /// Ends the session as request_stop() does.
  StopToken stop = {};
  /// The features that the session takes for granted; nothing: the choice of the thread that makes the session
  /// (FeatureScope::current()). Sessions of one process may have different ones.
  std::optional<FeatureChoice> features = {};
  /// Who attaches in this process's place (TraceOptions::broker); null: itself. `features` should know what it knows.
  std::shared_ptr<Broker> broker = nullptr;
  /// Without `broker`: whether the one of find_broker() is asked, with what it knows. A notice says so.
  bool finds_broker = false;
  /// Called once, before anything is attached or waited for. Until then nothing would be left behind if the process
  /// ended; from then on it should end by request_stop().
  std::function<void()> before_attaching = {};
};

/// Answers one or several questions, all of running programs or all of recordings.
class Session {
 public:
  /// Makes a session that has not been asked anything yet.
  explicit Session(SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Detaches all, where finish() has not.
  ~Session();

  /// Asks `question`, which is complete and checked. `consumers` live as long as the session. `place` stands before the
  /// messages of errors about it, such as "gc.toml:7:1". All questions are asked before begin().
  void add(Question question, std::vector<AnswerConsumer*> consumers, std::string place = {});

  /// Finds, plans and attaches what there is. Questions of which there is nothing yet wait for it
  /// (AskedFollowing::wait). Errors: those of find_subjects(), QuestionPlanner::plan(), Follower and Tracer::start();
  /// what AnswerConsumer::check() says. A session that is asked to stop meanwhile returns, and step() says that it is
  /// over.
  [[nodiscard]] Result<void> begin();
  /// Hands over what has come, and waits for it for at most the shorter of `wait` and 50 ms: what a session does
  /// besides needs to be looked at. In an event loop `wait` is 0. False: it is over, by its time or number of events,
  /// since its processes have ended or it was asked to stop; finish() is next. Errors: those of Tracer::poll().
  /// Questions about recordings are answered one after the other, as fast as possible. Errors: those of
  /// QuestionReplay::open() and step(), behind which the next step() goes on with the next question.
  [[nodiscard]] Result<bool> step(std::chrono::milliseconds wait);
  /// Detaches, hands over what is left, and gives consumers the accounts. Later calls do nothing. Errors: those of
  /// Tracer::table(), which leave the last look at a table out and nothing else.
  [[nodiscard]] Result<void> finish();

  /// Asks the session to end: step() says so within 50 ms. May be called by any thread and by signal handlers, as long
  /// as the session lives.
  void request_stop() noexcept;
  /// Whether it was asked to end, or its time is over. May be called by any thread.
  [[nodiscard]] bool over() const noexcept;
  /// Returns a descriptor for epoll and its like, which is readable when step() has something to do, at least every
  /// 50 ms. It belongs to the session. Errors: limit (descriptors), invalid_argument (begin() was not called).
  [[nodiscard]] Result<int> fd();

  /// Whether anything is or was traced: of a session that waits nothing yet.
  [[nodiscard]] bool traces() const noexcept;
  /// Whether every site of every question was detached, since its file changed or went.
  [[nodiscard]] bool has_nothing_left() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
