// SPDX-License-Identifier: BSD-2-Clause
// A small server for pages that monitoring systems fetch: GET and HEAD, few connections, nothing that a client sends is
// kept. It has a thread of its own, in which it asks for pages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::http {

/// A request, as far as pages depend on it.
struct Request {
  std::string path;    ///< "/metrics", without what follows '?'
  std::string accept;  ///< the media types that the client takes
};

/// What is sent.
struct Answer {
  unsigned status = 200;
  std::string type;  ///< media type
  std::string body;
};

/// Says whether Server::listen() knows the form of an address. Errors: invalid_argument.
[[nodiscard]] Result<void> check_address(std::string_view address);

/// Serves pages until it is destroyed.
class Server {
 public:
  /// Makes the page of a request. Called in the server's thread; one that throws is answered by status 500.
  using Handler = std::function<Answer(const Request&)>;

  /// Listens on "ADDRESS:PORT", "[ADDRESS]:PORT", or "PORT" of 127.0.0.1; port 0 is any that is free. Errors:
  /// invalid_argument (no such address), io, no_permission (the system refuses it), limit (no thread).
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(std::string_view address, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Returns where it listens: "127.0.0.1:9464".
  [[nodiscard]] const std::string& address() const noexcept;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt::http
