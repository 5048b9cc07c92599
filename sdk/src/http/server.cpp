// SPDX-License-Identifier: BSD-2-Clause
#include "http/server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "http/close_on_exec.hpp"
#include "sys/thread.hpp"

namespace usdt::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Response = beast::http::response<beast::http::string_body>;

constexpr std::size_t kMostConnections = 8;
constexpr std::uint32_t kMostHeaderBytes = 8192;
constexpr std::chrono::seconds kPatience{30};  ///< with a client that sends, takes or asks for nothing

/// Answers requests of one client, one after the other; lives as long as something is to come of it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const Server::Handler& handler) : stream_(std::move(socket)), handler_(handler) {}

  void read() {
    since_ = Clock::now();
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(kPatience);
    beast::http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->write();
    });
  }
  /// Since when the client is waited for.
  [[nodiscard]] Clock::time_point since() const noexcept { return since_; }
  /// Ends it, whatever is waited for.
  void close() { stream_.close(); }

 private:
  void write() {
    since_ = Clock::now();
    answer();
    stream_.expires_after(kPatience);
    const auto written = [self = shared_from_this()](error_code error, std::size_t) {
      if (!error && self->response_.keep_alive()) self->read();
    };
    if (!is_head_) return beast::http::async_write(stream_, response_, written);
    head_.emplace(response_);
    beast::http::async_write_header(stream_, *head_, written);
  }

  void answer() {
    const auto& request = parser_->get();
    const auto method = request.method();
    is_head_ = method == beast::http::verb::head;
    response_ = Response();
    response_.version(request.version());
    response_.keep_alive(request.keep_alive());
    Answer answer{.status = 405, .type = "text/plain", .body = "GET and HEAD alone\n"};
    if (is_head_ || method == beast::http::verb::get) answer = ask(request);
    response_.result(answer.status);
    response_.set(beast::http::field::content_type, answer.type);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
  }

  Answer ask(const beast::http::request<beast::http::empty_body>& request) {
    const auto target = request.target();
    const auto accept = request[beast::http::field::accept];
    try {
      return handler_({.path = std::string(target.substr(0, target.find('?'))), .accept = std::string(accept)});
    } catch (const std::exception&) {
      return {.status = 500, .type = "text/plain", .body = "the page could not be made\n"};
    }
  }

  beast::tcp_stream stream_;
  const Server::Handler& handler_;
  Clock::time_point since_;
  beast::flat_buffer buffer_{kMostHeaderBytes};
  std::optional<beast::http::request_parser<beast::http::empty_body>> parser_;
  Response response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> head_;
  bool is_head_ = false;
};

/// An address and a port, numbers both.
Result<tcp::endpoint> endpoint_of(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorKind::invalid_argument,
                "\"" + std::string(text) + "\" is no place to listen at: PORT, ADDRESS:PORT or [ADDRESS]:PORT");
  };
  const std::size_t colon = text.rfind(':');
  const std::string_view digits = colon == text.npos ? text : text.substr(colon + 1);
  std::string_view host = colon == text.npos ? std::string_view() : text.substr(0, colon);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return wrong();
  if (host.empty() || host == "localhost") host = "127.0.0.1";
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  error_code unknown;
  const auto address = asio::ip::make_address(std::string(host), unknown);
  if (unknown || (address.is_v6() && host.size() + 2 > text.size() - digits.size())) return wrong();
  return tcp::endpoint(address, port);
}

/// A socket that listens, which asio would make without O_CLOEXEC.
Result<int> listening_socket(const tcp::endpoint& where, std::string_view text) {
  const auto refused = [&](int fd) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    const ErrorKind kind = error == EACCES ? ErrorKind::no_permission : ErrorKind::io;
    return fail(os_failure(kind, "listen at " + std::string(text), error));
  };
  const int fd = ::socket(where.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return refused(fd);
  const int yes = 1;
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
  if (::bind(fd, where.data(), static_cast<socklen_t>(where.size())) < 0 || ::listen(fd, 16) < 0) return refused(fd);
  return fd;
}

std::string text_of(const tcp::endpoint& where) {
  const std::string host = where.address().to_string();
  return (where.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(where.port());
}

}  // namespace

Result<void> check_address(std::string_view address) {
  TRY(endpoint_of(address));
  return {};
}

struct Server::Impl {
  explicit Impl(Handler asked) : handler(std::move(asked)) {}

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return again();
      serve(std::move(socket));
      accept();
    });
  }

  /// Where there is no room, the client that is waited for longest gives way: others could keep everybody out by asking
  /// for nothing. A client there is no memory for is refused, and others are served on.
  void serve(tcp::socket socket) {
    close_on_exec(socket.native_handle());
    try {
      std::erase_if(connections, [](const auto& each) { return each.expired(); });
      if (connections.size() >= kMostConnections) {
        const auto longest = std::ranges::min_element(connections, {}, [](const auto& each) {
          const auto connection = each.lock();
          return connection ? connection->since() : Clock::time_point();
        });
        if (const auto connection = longest->lock()) connection->close();
        connections.erase(longest);
      }
      const auto connection = std::make_shared<Connection>(std::move(socket), handler);
      connections.push_back(connection);
      connection->read();
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  /// Descriptors may be used up: a moment later there may be some.
  void again() {
    timer.expires_after(std::chrono::milliseconds(100));
    timer.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  Handler handler;
  std::vector<std::weak_ptr<Connection>> connections;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::steady_timer timer{context};
  std::string address;
  std::thread thread;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::listen(std::string_view address, Handler handler) {
  const tcp::endpoint where = TRY(endpoint_of(address));
  auto impl = std::make_unique<Impl>(std::move(handler));
  const int fd = TRY(listening_socket(where, address));
  error_code error;
  impl->acceptor.assign(where.protocol(), fd, error);
  if (error) {
    ::close(fd);
    return fail(ErrorKind::io, "listen at " + std::string(address) + ": " + error.message());
  }
  impl->address = text_of(impl->acceptor.local_endpoint(error));
  impl->accept();
  impl->thread = TRY(sys::start_thread("that serves a page", [raw = impl.get()] { raw->context.run(); }));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  impl_->context.stop();
  impl_->thread.join();
}

const std::string& Server::address() const noexcept { return impl_->address; }

}  // namespace usdt::http
