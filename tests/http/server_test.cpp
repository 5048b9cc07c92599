// SPDX-License-Identifier: BSD-2-Clause
#include "http/server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace usdt::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<Server> started(Server::Handler handler) {
  auto server = Server::listen("0", std::move(handler));
  if (!server) throw std::runtime_error(server.error().message);
  return std::move(*server);
}

/// A client's end of a connection to a server.
class Client {
 public:
  explicit Client(const Server& server) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    where.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(server.address().substr(server.address().rfind(':') + 1))));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
      throw std::runtime_error("connect");
  }
  ~Client() { ::close(fd_); }

  void send(std::string_view text) const { static_cast<void>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL)); }
  /// What comes until the other end closes.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    char piece[4096];
    for (ssize_t got = 0; (got = ::recv(fd_, piece, sizeof piece, 0)) > 0;)
      all.append(piece, static_cast<std::size_t>(got));
    return all;
  }

 private:
  int fd_;
};

std::string get(const Server& server, std::string_view request) {
  const Client client(server);
  client.send(request);
  return client.read_all();
}

Answer echo(const Request& request) { return {.type = "text/plain", .body = request.path + "|" + request.accept}; }

TEST(Server, gives_the_handler_path_and_media_types) {
  const auto server = started(echo);
  EXPECT_THAT(get(*server, "GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nAccept: text/x\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/plain\r\n"),
                    HasSubstr("\r\n\r\n/a/b|text/x")));
}

TEST(Server, answers_several_requests_of_a_connection) {
  const auto server = started(echo);
  const std::string both =
      get(*server, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(both, AllOf(HasSubstr("/1|"), HasSubstr("/2|")));
}

TEST(Server, sends_no_body_of_what_only_the_head_is_asked) {
  const auto server = started(echo);
  const std::string head = get(*server, "HEAD /abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_EQ(head.find("/abc|"), head.npos);
}

TEST(Server, refuses_what_is_no_question) {
  const auto server = started(echo);
  EXPECT_THAT(get(*server, "DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_EQ(get(*server, "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), "")
      << "a head without an end";
  EXPECT_EQ(get(*server, "POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\nabc"), "") << "a body";
  EXPECT_EQ(get(*server, "\x16\x03\x01 this is TLS\r\n\r\n"), "");
}

TEST(Server, goes_on_after_a_handler_that_throws) {
  bool throws = true;
  const auto server = started([&](const Request& request) {
    if (std::exchange(throws, false)) throw std::runtime_error("no");
    return echo(request);
  });
  constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(get(*server, request), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(get(*server, request), StartsWith("HTTP/1.1 200"));
}

TEST(Server, answers_while_others_ask_for_nothing) {
  const auto server = started(echo);
  std::vector<std::unique_ptr<Client>> idle;
  for (int n = 0; n < 100; ++n) {
    idle.push_back(std::make_unique<Client>(*server));
    if (n % 2 != 0) idle.back()->send("GET /half HTTP");
  }
  EXPECT_THAT(get(*server, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(idle.front()->read_all(), "") << "the first one has given way";
}

TEST(Server, answers_while_others_do_not_read_what_they_asked_for) {
  constexpr std::size_t kLarge = 32U << 20;  // more than sockets take
  const auto server = started([](const Request& request) -> Answer {
    return {.type = "text/plain", .body = std::string(request.path == "/large" ? kLarge : 4, 'x')};
  });
  std::vector<std::unique_ptr<Client>> slow;
  for (int n = 0; n < 20; ++n) {
    slow.push_back(std::make_unique<Client>(*server));
    slow.back()->send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  EXPECT_THAT(get(*server, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_GT(slow.back()->read_all().size(), kLarge) << "the last one has all of it";
  EXPECT_LT(slow.front()->read_all().size(), kLarge) << "the first one has given way";
}

TEST(Server, says_what_is_no_place_and_what_is_taken) {
  const auto server = started(echo);
  EXPECT_THAT(server->address(), StartsWith("127.0.0.1:"));
  const auto taken = Server::listen(server->address(), echo);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::io);
  EXPECT_THAT(taken.error().message, HasSubstr("Address already in use"));
  for (const char* wrong :
       {"", "x", "1.2.3:1", "127.0.0.1:65536", "::1:80", "127.0.0.1:", "127.0.0.1:8 0", "[::1:80", "example.org:80"}) {
    const auto refused = Server::listen(wrong, echo);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_argument) << wrong;
  }
}

TEST(Server, leaves_no_descriptor_to_programs_that_are_started) {
  const auto server = started(echo);
  const Client client(*server);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    std::error_code unknown;
    if (fd <= 2 || !std::filesystem::read_symlink(entry.path(), unknown).string().starts_with("socket:")) continue;
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
  }
}

}  // namespace
}  // namespace usdt::http
