// SPDX-License-Identifier: BSD-2-Clause
#include "http/poster.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/http/temporary_spool.hpp"

namespace usdt::http {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The message of a body in capitals, as of a server that has messages of its own.
std::string said_in_capitals(const Reply& reply) {
  const bool has_message = std::ranges::all_of(reply.body, [](char c) { return c >= 'A' && c <= 'Z'; });
  return has_message && !reply.body.empty() ? "it says " + reply.body + " as " + reply.type : std::string();
}

/// Answers each request with the next of `answers`, and the last one from then on; empty: it closes the connection.
class FakeServer {
 public:
  explicit FakeServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&where), size) != 0 || ::listen(fd_, 8) != 0) throw std::bad_alloc();
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&where), &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(where.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~FakeServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }

  [[nodiscard]] std::unique_ptr<Poster> poster(Rejected (*rejected_by)(const Reply&) = nullptr,
                                               std::optional<Spool> spool = {}) const {
    const auto url = parse_url(url_);
    auto poster =
        Poster::start({.url = *url, .rejected_by = rejected_by, .message_of = said_in_capitals}, std::move(spool));
    if (!poster) throw std::bad_alloc();
    return std::move(*poster);
  }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] const std::string& url() const { return url_; }
  /// Of the requests. Once the poster has their outcomes.
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

 private:
  void run() {
    for (int client = 0; (client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      serve(client);
      ::close(client);
    }
  }
  void serve(int client) {
    std::string got;
    char piece[4096];
    for (ssize_t size = 0; (size = ::recv(client, piece, sizeof piece, 0)) > 0;) {
      got.append(piece, static_cast<std::size_t>(size));
      const std::size_t head = got.find("\r\n\r\n"), field = got.find("Content-Length: ");
      if (head == got.npos || got.size() < head + 4 + std::stoul(got.substr(field + 16))) continue;
      paths_.push_back(got.substr(got.find(' ') + 1, got.find(" HTTP/") - got.find(' ') - 1));
      got.clear();
      const std::string& answer =
          answers_[std::min<std::size_t>(static_cast<std::size_t>(requests_++), answers_.size() - 1)];
      if (answer.empty()) return;
      static_cast<void>(::send(client, answer.data(), answer.size(), MSG_NOSIGNAL));
    }
  }

  std::vector<std::string> answers_;
  std::string url_;
  std::vector<std::string> paths_;
  int fd_ = -1;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

Batch batch_of(std::uint64_t number, std::string body = "body") {
  return {.owner = 0, .number = number, .path = "/p", .type = "text/x", .body = std::move(body)};
}

/// Of the first so many batches.
std::vector<Outcome> outcomes_of(Poster& poster, std::size_t count) {
  std::vector<Outcome> outcomes;
  for (int n = 0; n < 500 && outcomes.size() < count; ++n) {
    poster.wait(20ms);
    for (Outcome& each : poster.take_outcomes(0)) outcomes.push_back(std::move(each));
  }
  outcomes.resize(count);
  return outcomes;
}

Outcome outcome_of(Poster& poster) {
  for (int n = 0; n < 500; ++n) {
    std::vector<Outcome> all = poster.take_outcomes(0);
    if (!all.empty()) return all.front();
    poster.wait(20ms);
  }
  return {.number = 0, .why = "no outcome in ten seconds"};
}

TEST(Backoff, grows_to_half_a_minute_and_is_never_the_same_for_all) {
  EXPECT_EQ(backoff(0, 0), 100ms);
  EXPECT_EQ(backoff(0, 1), 200ms);
  EXPECT_EQ(backoff(3, 1), 1600ms);
  EXPECT_EQ(backoff(20, 1), 30s);
  EXPECT_EQ(backoff(4'000'000'000U, 1), 30s);
}

TEST(ParseRetryAfter, takes_seconds_and_dates_within_a_minute) {
  const auto now = std::chrono::system_clock::from_time_t(1'700'000'000);  // Tue, 14 Nov 2023 22:13:20 GMT
  EXPECT_EQ(parse_retry_after("3", now), 3s);
  EXPECT_EQ(parse_retry_after("4000000000", now), 60s);
  EXPECT_EQ(parse_retry_after("Tue, 14 Nov 2023 22:13:25 GMT", now), 5s);
  EXPECT_EQ(parse_retry_after("Tue, 14 Nov 2023 22:00:00 GMT", now), 0s) << "it is over";
  EXPECT_EQ(parse_retry_after("Tue, 14 Nov 2033 22:00:00 GMT", now), 60s);
  for (const char* wrong : {"", "-1", "3s", "99999999999999999999", "soon", "Tue, 14 Nov 2023"})
    EXPECT_EQ(parse_retry_after(wrong, now), std::nullopt) << wrong;
}

TEST(IsWorthAnotherAttempt, is_what_the_specification_names) {
  std::vector<unsigned> again;
  for (unsigned status = 100; status < 600; ++status)
    if (is_worth_another_attempt(status)) again.push_back(status);
  EXPECT_THAT(again, ElementsAre(429, 502, 503, 504));
}

TEST(Poster, says_of_each_batch_that_it_was_taken) {
  FakeServer server({std::string(kOk)});
  const auto poster = server.poster();
  for (std::uint64_t n = 1; n <= 5; ++n) poster->put(batch_of(n));
  std::vector<std::uint64_t> numbers;
  while (numbers.size() < 5) {
    poster->wait(1s);
    for (const Outcome& each : poster->take_outcomes(0)) {
      EXPECT_TRUE(each.accepted && !each.maybe_twice) << each.why;
      numbers.push_back(each.number);
    }
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5));
}

TEST(Poster, tries_again_where_it_is_asked_to_and_where_a_connection_is_lost) {
  FakeServer server({"HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", "", std::string(kOk)});
  const auto poster = server.poster();
  poster->put(batch_of(7));
  const Outcome outcome = outcome_of(*poster);
  EXPECT_TRUE(outcome.accepted) << outcome.why;
  EXPECT_TRUE(outcome.maybe_twice);
  EXPECT_GE(server.requests(), 3);
}

TEST(Poster, makes_pauses_where_a_server_asks_for_none) {
  FakeServer server({"HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"});
  const auto poster = server.poster();
  poster->put(batch_of(1));
  std::this_thread::sleep_for(1s);
  EXPECT_GE(server.requests(), 2);
  EXPECT_LE(server.requests(), 4) << "after pauses of 100, 200 and 400 ms at the least";
}

TEST(Poster, passes_over_replies_that_come_before_the_one_that_counts) {
  const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  FakeServer server(
      {go_on + std::string(kOk), early + go_on + "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", std::string(kOk)});
  const auto poster = server.poster();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    poster->put(batch_of(n));
    EXPECT_EQ(outcome_of(*poster).accepted, n != 2) << "each has its own reply";
  }
}

TEST(Poster, takes_no_reply_that_nobody_asked_for) {
  const std::string idle = "HTTP/1.1 408 Request Time-out\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  FakeServer server({std::string(kOk) + idle, "HTTP/1.1 101 Switching Protocols\r\n\r\n", std::string(kOk)});
  const auto poster = server.poster();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    poster->put(batch_of(n));
    const Outcome outcome = outcome_of(*poster);
    EXPECT_EQ(outcome.accepted, n != 2) << outcome.why;
    EXPECT_THAT(outcome.why, ::testing::Not(HasSubstr("408")));
  }
}

/// A reply in pieces of one byte, each with so many more that say nothing.
std::string reply_in_pieces(std::size_t pieces, std::size_t more) {
  std::string reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t n = 0; n < pieces; ++n) reply += "1;" + std::string(more, 'x') + "\r\na\r\n";
  return reply + "0\r\n\r\n";
}

TEST(Client, takes_a_reply_in_pieces_but_no_endless_one) {
  // On a connection that was kept it is asked for twice.
  const std::string endless_reply = reply_in_pieces(8000, 1000);
  const FakeServer server({reply_in_pieces(1000, 100), endless_reply, endless_reply, std::string(kOk)});
  Client client(*parse_url(server.url()), {});
  const Message message{.path = "/p", .type = "text/x", .body = "body"};
  const auto whole = client.post(message, 20s), endless = client.post(message, 20s), next = client.post(message, 20s);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->body, std::string(1000, 'a'));
  ASSERT_FALSE(endless) << "8 MB for a body of " << endless->body.size();
  EXPECT_EQ(endless.error().kind, ErrorKind::io);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->body, "ok");
}

TEST(Poster, drops_what_is_refused_with_the_words_of_the_server) {
  FakeServer server({"HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nno\nreason", std::string(kOk)});
  const auto poster = server.poster();
  poster->put(batch_of(1));
  poster->put(batch_of(2));
  EXPECT_EQ(outcome_of(*poster).why, "400 Bad Request: no");
  EXPECT_EQ(server.requests() >= 1, true);
}

TEST(Poster, shows_the_message_that_a_refusal_has) {
  FakeServer server(
      {"HTTP/1.1 413 Too Large\r\nContent-Type: text/y\r\nContent-Length: 4\r\n\r\nLESS", std::string(kOk)});
  const auto poster = server.poster();
  poster->put(batch_of(1));
  EXPECT_EQ(outcome_of(*poster).why, "413 Too Large: it says LESS as text/y");
}

Rejected reject_two(const Reply& reply) { return {.items = 2, .why = "two of " + reply.body}; }

TEST(Poster, asks_what_an_accepted_batch_lost) {
  FakeServer server({std::string(kOk)});
  const auto poster = server.poster(reject_two);
  poster->put(batch_of(1));
  const Outcome outcome = outcome_of(*poster);
  EXPECT_TRUE(outcome.accepted);
  EXPECT_EQ(outcome.rejected, 2U);
  EXPECT_EQ(outcome.why, "two of ok");
}

Batch batch_with(std::uint64_t events) {
  Batch batch = batch_of(events);
  batch.events = events;
  return batch;
}

/// Waits until nothing is in the spool.
Backlog emptied(const Poster& poster) {
  for (int n = 0; n < 1000 && poster.backlog()->batches > 0; ++n) std::this_thread::sleep_for(10ms);
  return *poster.backlog();
}

/// The older form of "/new" is "/old".
std::optional<SpooledBatch> older_form(const Message& message) {
  if (message.path != "/new") return std::nullopt;
  return SpooledBatch{.path = "/old", .type = "a/b", .deflated = std::string(message.body)};
}

/// Takes "/new" no more than a server does that knows no such thing.
Endpoint endpoint_of_old_server(const FakeServer& server) {
  return {.url = *parse_url(server.url()),
          .judge = [](const Reply& reply) { return reply.status == 404 ? Verdict::unknown_form : judge_status(reply); },
          .older_form = older_form};
}

TEST(Poster, sends_an_older_form_once_the_server_has_wanted_it) {
  const FakeServer server({"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nwhat", std::string(kOk)});
  auto poster = std::move(*Poster::start(endpoint_of_old_server(server)));
  for (const std::uint64_t number : {1, 2, 3})
    poster->put({.number = number, .path = number == 3 ? "/old" : "/new", .type = "a/b", .body = "x"});
  const auto outcomes = outcomes_of(*poster, 3);
  EXPECT_TRUE(outcomes[0].accepted && outcomes[1].accepted && outcomes[2].accepted);
  EXPECT_EQ(outcomes[0].older_because, "404 No: what");
  EXPECT_EQ(outcomes[1].older_because + outcomes[2].older_because, "") << "it is known";
  EXPECT_THAT(server.paths(), ElementsAre("/new", "/old", "/old", "/old"));
}

TEST(Poster, drops_what_has_no_form_that_the_server_knows) {
  const FakeServer server({"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nwhat"});
  auto poster = std::move(*Poster::start(endpoint_of_old_server(server)));
  poster->put({.number = 1, .path = "/old", .type = "a/b", .body = "x"});
  poster->put({.number = 2, .path = "/new", .type = "a/b", .body = "x"});
  const auto outcomes = outcomes_of(*poster, 2);
  EXPECT_FALSE(outcomes[0].accepted || outcomes[1].accepted);
  EXPECT_EQ(outcomes[1].why, "404 No: what");
  EXPECT_THAT(server.paths(), ElementsAre("/old", "/new", "/old"));
}

TEST(PosterWithSpool, says_with_the_next_batch_that_an_older_form_was_wanted) {
  const TemporaryDirectory directory;
  const FakeServer server({"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nwhat", std::string(kOk)});
  auto poster = std::move(*Poster::start(endpoint_of_old_server(server), spool_at(directory.path())));
  const auto put = [&](std::uint64_t number) {
    poster->put({.number = number, .path = "/new", .type = "a/b", .body = "x"});
    static_cast<void>(emptied(*poster));
    return outcomes_of(*poster, 1).front().older_because;
  };
  EXPECT_EQ(put(1), "") << "it is on disk, and nobody has seen it yet";
  EXPECT_EQ(put(2), "404 No: what");
  EXPECT_EQ(put(3), "") << "it is known";
}

TEST(PosterWithSpool, keeps_what_is_not_taken_for_the_next_one) {
  const TemporaryDirectory directory;
  {
    FakeServer away({"HTTP/1.1 503 No\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"});
    const auto poster = away.poster(nullptr, spool_at(directory.path()));
    for (std::uint64_t n = 1; n <= 3; ++n) poster->put(batch_with(n * 10));
    EXPECT_TRUE(outcome_of(*poster).accepted) << "it is on disk";
    EXPECT_EQ(poster->backlog()->events, 60U);
  }
  FakeServer server({std::string(kOk)});
  const auto poster = server.poster(nullptr, spool_at(directory.path()));
  const Backlog backlog = emptied(*poster);
  EXPECT_EQ(server.requests(), 3);
  EXPECT_EQ(backlog.sent, 60U);
  EXPECT_EQ(backlog.lost + backlog.batches + backlog.bytes, 0U);
}

TEST(PosterWithSpool, counts_what_a_server_refuses_later) {
  const TemporaryDirectory directory;
  FakeServer server({"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", std::string(kOk)});
  const auto poster = server.poster(reject_two, spool_at(directory.path()));
  poster->put(batch_with(10));
  EXPECT_EQ(emptied(*poster).lost, 10U);
  poster->put(batch_with(7));
  const Backlog backlog = emptied(*poster);
  EXPECT_EQ(backlog.lost, 12U) << "and two of seven";
  EXPECT_EQ(backlog.lost_batches, 2U);
  EXPECT_EQ(backlog.sent, 5U);
  EXPECT_EQ(backlog.why, "two of ok");
}

TEST(PosterWithSpool, counts_batches_without_events_that_a_server_refuses) {
  const TemporaryDirectory directory;
  FakeServer server({"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nold", std::string(kOk)});
  const auto poster = server.poster(nullptr, spool_at(directory.path()));
  poster->put(batch_with(0));
  const Backlog backlog = emptied(*poster);
  EXPECT_EQ(backlog.lost, 0U);
  EXPECT_EQ(backlog.lost_batches, 1U);
  EXPECT_EQ(backlog.why, "400 Bad Request: old");
}

TEST(PosterWithSpool, says_at_once_what_has_no_room) {
  const TemporaryDirectory directory;
  FakeServer away({"HTTP/1.1 503 No\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"});
  const auto poster = away.poster(nullptr, spool_at(directory.path(), 4096));
  poster->put(batch_with(1));
  poster->put(batch_with(1));
  std::vector<Outcome> outcomes = poster->take_outcomes(0);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].accepted);
  EXPECT_FALSE(outcomes[1].accepted);
  EXPECT_THAT(outcomes[1].why, HasSubstr("is full"));
}

TEST(Poster, has_bounded_room_and_ends_at_once_amid_a_pause) {
  FakeServer server({"HTTP/1.1 503 No\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"});
  auto poster = server.poster();
  std::uint64_t put = 0;
  while (poster->has_room()) poster->put(batch_of(++put, std::string(1 << 20, 'x')));
  EXPECT_LE(put, 8U);
  for (int n = 0; n < 500 && poster->trouble().empty(); ++n) std::this_thread::sleep_for(10ms);
  EXPECT_THAT(poster->trouble(), HasSubstr("503 No"));
  const auto began = std::chrono::steady_clock::now();
  poster->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  const std::vector<Outcome> outcomes = poster->take_outcomes(0);
  ASSERT_EQ(outcomes.size(), put);
  for (const Outcome& each : outcomes) EXPECT_FALSE(each.accepted);
  EXPECT_THAT(outcomes.front().why, HasSubstr("503 No"));
  poster->put(batch_of(99));
  EXPECT_EQ(outcome_of(*poster).why, "it was given up");
}

TEST(Poster, gives_up_the_batches_of_one_owner_alone) {
  FakeServer server({"HTTP/1.1 503 No\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n", std::string(kOk)});
  const auto poster = server.poster();
  const auto batch_by = [](std::size_t owner, std::uint64_t number) {
    Batch batch = batch_of(number);
    batch.owner = owner;
    return batch;
  };
  for (std::uint64_t n = 1; n <= 3; ++n) poster->put(batch_by(1, n)), poster->put(batch_by(0, n));
  for (int n = 0; n < 500 && poster->trouble().empty(); ++n) std::this_thread::sleep_for(10ms);
  poster->give_up(1);  // its first batch is at hand, amid a pause of a minute
  const std::vector<Outcome> given_up = poster->take_outcomes(1);
  ASSERT_EQ(given_up.size(), 3U);
  for (const Outcome& each : given_up) EXPECT_THAT(each.why, HasSubstr("503 No"));
  std::size_t taken = 0;
  for (int n = 0; n < 500 && taken < 3; ++n, poster->wait(20ms))
    for (const Outcome& each : poster->take_outcomes(0)) taken += each.accepted ? 1 : 0;
  EXPECT_EQ(taken, 3U) << "those of the other one";
  EXPECT_FALSE(poster->is_hopeless());
  poster->put(batch_by(1, 4));
  for (int n = 0; n < 500 && server.requests() < 5; ++n) poster->wait(20ms);
  EXPECT_EQ(server.requests(), 5) << "one refused, and four taken";
}

TEST(Poster, ends_at_once_while_a_server_says_nothing) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&where), size), 0);
  ASSERT_EQ(::listen(silent, 8), 0);
  ::getsockname(silent, reinterpret_cast<sockaddr*>(&where), &size);
  const auto url = parse_url("http://127.0.0.1:" + std::to_string(ntohs(where.sin_port)));
  auto poster = Poster::start({.url = *url});
  ASSERT_TRUE(poster);
  (*poster)->put(batch_of(1));
  std::this_thread::sleep_for(200ms);
  const auto began = std::chrono::steady_clock::now();
  poster->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  ::close(silent);
}

}  // namespace
}  // namespace usdt::http
