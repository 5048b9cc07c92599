// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/url.hpp"
#include "usdt/result.hpp"

namespace usdt::http {

/// Names and values of headers. Neither has characters that could end a line.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// What is sent by POST.
struct Message {
  std::string_view path;  ///< behind that of the URL: "/v1/traces"
  std::string_view type;  ///< media type
  std::string_view body;
  bool is_gzip = false;  ///< the body is deflated
};

/// What came back.
struct Reply {
  unsigned status = 0;
  std::string reason = {};  ///< "Service Unavailable"
  std::string type = {};    ///< media type of the body; empty: it is not said
  std::string body = {};
  std::string retry_after = {};     ///< that header; empty: there is none
  std::string exception_code = {};  ///< likewise X-ClickHouse-Exception-Code
  /// A connection that was kept ended first, amid the message: the server may have it twice.
  bool was_sent_again = false;
};

/// Sends to one place over one connection, which it keeps while the other end does. For one thread, but for stop().
class Client {
 public:
  /// `headers` are in each message.
  explicit Client(Url url, Headers headers = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends a message and waits for the reply, as long as `patience` in all. No redirect is followed. Errors: not_found
  /// (no connection), io (no whole reply of at most 1 MiB in time: the server may have it).
  [[nodiscard]] Result<Reply> post(const Message& message, std::chrono::milliseconds patience);
  /// Ends a post() that is going on, and all that follow until resume(), at once. From any thread.
  void stop();
  /// Takes stop() back. While no post() is going on.
  void resume();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt::http
