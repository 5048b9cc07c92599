// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as what a client sends to the server of pages (first byte even), and as what a server replies to a batch
// (odd); as an address, a URL, and the time after which a batch may come again.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "http/client.hpp"
#include "http/poster.hpp"
#include "http/server.hpp"
#include "http/url.hpp"

namespace {

using namespace std::chrono_literals;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  return where;
}

/// Takes what the other end sends until it ends, or all is said.
void drain(int socket) {
  std::array<char, 4096> piece;
  while (::recv(socket, piece.data(), piece.size(), 0) > 0) {
  }
}

/// Sends `bytes` to our server and takes what it answers.
void ask(std::string_view bytes) {
  static const auto server = usdt::http::Server::listen("0", [](const usdt::http::Request& request) {
    require(request.path.find('?') == std::string::npos, "a path with a question");
    require(request.path.size() + request.accept.size() <= 8192, "more than the bound of a head");
    return usdt::http::Answer{.type = "text/plain", .body = request.path + request.accept};
  });
  require(server.has_value(), "the server listens");
  const std::string& address = (*server)->address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in where = loopback(port);
  require(::connect(client, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "the server is there");
  static_cast<void>(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ::shutdown(client, SHUT_WR);
  drain(client);
  ::close(client);
}

/// Answers whatever comes with the same bytes.
class Replier {
 public:
  Replier() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where = loopback(0);
    socklen_t size = sizeof where;
    require(::bind(listener_, reinterpret_cast<const sockaddr*>(&where), size) == 0 && ::listen(listener_, 8) == 0,
            "a replier listens");
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  }
  [[nodiscard]] const std::string& url() const { return url_; }

  /// Serves the connections of one post(): a second one where the first ended before anything came.
  void serve(std::string_view bytes, const std::atomic<bool>& ended) const {
    while (!ended) {
      pollfd ready{listener_, POLLIN, 0};
      if (::poll(&ready, 1, 1) <= 0) continue;
      const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      std::array<char, 4096> request;
      static_cast<void>(::recv(peer, request.data(), request.size(), 0));
      static_cast<void>(::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL));
      ::shutdown(peer, SHUT_WR);
      ::close(peer);
    }
  }

 private:
  int listener_;
  std::string url_;
};

/// Posts to a server that replies `bytes`.
void post(std::string_view bytes) {
  static const Replier replier;
  std::atomic<bool> ended = false;
  std::thread server([&] { replier.serve(bytes, ended); });
  usdt::http::Client client(*usdt::http::parse_url(replier.url()));
  const auto reply = client.post({.path = "/v1/traces", .type = "text/plain", .body = "x"}, 100ms);
  ended = true;
  server.join();
  if (!reply) return;
  require(reply->status < 1000, "a status of three digits");
  require(reply->body.size() <= 1 << 20, "a reply of at most 1 MiB");
  static_cast<void>(usdt::http::judge_status(*reply));
  const auto wait = usdt::http::parse_retry_after(reply->retry_after, std::chrono::system_clock::now());
  require(!wait || *wait >= 0ms, "a wait into the past");
}

void read_texts(std::string_view text) {
  static_cast<void>(usdt::http::check_address(text));
  static_cast<void>(usdt::http::parse_url(text));
  const auto wait = usdt::http::parse_retry_after(text, std::chrono::system_clock::now());
  require(!wait || *wait >= 0ms, "a wait into the past");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  read_texts(bytes);
  if (data[0] % 2 == 0)
    ask(bytes);
  else
    post(bytes);
  return 0;
}
