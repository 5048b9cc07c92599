// SPDX-License-Identifier: BSD-2-Clause
#include "http/client.hpp"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "http/close_on_exec.hpp"
#include "sys/thread.hpp"

namespace usdt::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using PostRequest = beast::http::request<beast::http::span_body<const char>>;
using ReplyParser = beast::http::response_parser<beast::http::string_body>;

constexpr std::uint32_t kMostReplyHeaderBytes = 16 << 10;
constexpr std::uint64_t kMostReplyBytes = 1 << 20;
/// Bounds also what is around a body's pieces: their lengths may have extensions, no part of it (RFC 9112, 7.1).
constexpr std::uint64_t kMostBytesOnWire = 2 * kMostReplyBytes;

/// Looks a name up in a thread that nobody waits for: the system's resolver is not to be interrupted, and may take
/// half a minute for servers of names that are away.
class NameLookup {
 public:
  using Places = tcp::resolver::results_type;
  using Deadline = std::chrono::steady_clock::time_point;

  /// Returns the places of a name. One that is still looked up since the last time is not looked up twice.
  Places find(const Url& url, Deadline deadline, error_code& error) {
    std::unique_lock lock(state_->mutex);
    if (!std::exchange(state_->is_running, true)) {
      auto thread = sys::start_thread("that looks a name up", [state = state_, url] { look_up(*state, url); });
      state_->is_running = thread.has_value();
      error = asio::error::no_memory;
      if (!thread) return {};
      thread->detach();
    }
    const bool ended = state_->changed.wait_until(lock, deadline, [&] { return stopped_ || !state_->is_running; });
    error = stopped_ ? asio::error::operation_aborted : ended ? state_->error : asio::error::timed_out;
    return error ? Places() : state_->places;
  }
  void set_stopped(bool stopped) {
    const std::lock_guard lock(state_->mutex);
    stopped_ = stopped;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_running = false;
    Places places;
    error_code error;
  };

  static void look_up(State& state, const Url& url) {
    error_code error;
    asio::io_context context{1};
    Places places = tcp::resolver(context).resolve(url.host, url.port, error);
    const std::lock_guard lock(state.mutex);
    state.is_running = false;
    state.places = std::move(places);
    state.error = error;
    state.changed.notify_all();
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();  ///< with the thread
  bool stopped_ = false;                                      ///< under the state's mutex
};

}  // namespace

struct Client::Impl {
  Impl(Url asked, Headers also) : url(std::move(asked)), headers(std::move(also)) {}

  [[nodiscard]] PostRequest request_of(const Message& message) const {
    using beast::http::field;
    PostRequest request{beast::http::verb::post, url.path + std::string(message.path), 11};
    request.set(field::host, url.authority());
    request.set(field::user_agent, "usdt");
    request.set(field::content_type, beast::string_view(message.type.data(), message.type.size()));
    for (const auto& [name, value] : headers) request.set(name, value);
    if (message.is_gzip) request.set(field::content_encoding, "gzip");
    request.body() = {message.body.data(), message.body.size()};
    request.prepare_payload();
    return request;
  }

  /// Runs what was begun until it has ended.
  error_code run(error_code& ended) {
    context.restart();
    if (stopped) context.stop();
    context.run();
    return stopped ? error_code(asio::error::operation_aborted) : ended;
  }

  error_code connect() {
    stream.emplace(context);
    error_code ended;
    const auto places = names.find(url, deadline, ended);
    if (ended) return ended;
    stream->expires_at(deadline);
    stream->async_connect(places, [&](error_code error, const tcp::endpoint&) { ended = error; });
    ended = asio::error::operation_aborted;
    if (const error_code error = run(ended)) return error;
    close_on_exec(stream->socket().native_handle());
    return {};
  }

  error_code write(PostRequest& request) {
    error_code ended = asio::error::operation_aborted;
    stream->expires_at(deadline);
    beast::http::async_write(*stream, request, [&](error_code error, std::size_t) { ended = error; });
    return run(ended);
  }

  error_code read(std::optional<ReplyParser>& response) {
    response.emplace();
    response->header_limit(kMostReplyHeaderBytes);
    response->body_limit(kMostReplyBytes);
    stream->expires_at(deadline);
    error_code failure;
    for (std::uint64_t taken = 0; !failure && !response->is_done();) {
      if (taken > kMostBytesOnWire) return beast::http::error::body_limit;
      error_code ended = asio::error::operation_aborted;
      beast::http::async_read_some(*stream, buffer, *response, [&](error_code error, std::size_t bytes) {
        ended = error;
        taken += bytes;
      });
      failure = run(ended);
    }
    return failure;
  }

  /// Replies of the class 1xx come before the one that counts (RFC 9110, 15.2). Nobody has asked for another protocol.
  error_code exchange(PostRequest& request, std::optional<ReplyParser>& response) {
    constexpr unsigned kSwitching = 101;
    constexpr int kMostInterim = 16;
    buffer.clear();
    error_code error = write(request);
    for (int n = 0; !error && n <= kMostInterim; ++n) {
      error = read(response);
      if (error || response->get().result_int() / 100 != 1 || response->get().result_int() == kSwitching) return error;
    }
    return error ? error : error_code(beast::http::error::bad_status);
  }

  /// Whether nothing came on a connection that was kept: what a server says unasked is no answer to what is sent next,
  /// and it may have closed its end.
  [[nodiscard]] bool is_quiet() {
    char byte = 0;
    return ::recv(stream->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  /// A connection that was kept may have been closed meanwhile: another one is tried then.
  Result<Reply> post(const Message& message) {
    PostRequest request = request_of(message);
    const auto failed = [this](ErrorKind kind, const error_code& why) {
      stream.reset();
      return fail(kind, why.message());
    };
    if (stream && !is_quiet()) stream.reset();
    const bool was_kept = stream.has_value();
    error_code error = was_kept ? error_code() : connect();
    if (error) return failed(ErrorKind::not_found, error);
    std::optional<ReplyParser> response;
    error = exchange(request, response);
    const bool again = error && was_kept && !stopped;
    if (again) {
      error = connect();
      if (error) return failed(ErrorKind::not_found, error);
      error = exchange(request, response);
    }
    if (error) return failed(ErrorKind::io, error);
    const bool says_more = buffer.size() > 0 || response->get().result_int() / 100 == 1;
    if (!response->keep_alive() || says_more) stream.reset();
    auto& message_of = response->get();
    const auto text = [](beast::string_view view) { return std::string(view.data(), view.size()); };
    return Reply{.status = message_of.result_int(),
                 .reason = text(message_of.reason()),
                 .type = text(message_of[beast::http::field::content_type]),
                 .body = std::move(message_of.body()),
                 .retry_after = text(message_of[beast::http::field::retry_after]),
                 .exception_code = text(message_of["X-ClickHouse-Exception-Code"]),
                 .was_sent_again = again};
  }

  Url url;
  Headers headers;
  NameLookup names;
  asio::io_context context{1};
  std::optional<beast::tcp_stream> stream;
  beast::flat_buffer buffer{kMostReplyHeaderBytes + kMostReplyBytes};
  std::chrono::steady_clock::time_point deadline;
  std::atomic<bool> stopped = false;
};

Client::Client(Url url, Headers headers) : impl_(std::make_unique<Impl>(std::move(url), std::move(headers))) {}
Client::~Client() = default;

Result<Reply> Client::post(const Message& message, std::chrono::milliseconds patience) {
  impl_->deadline = std::chrono::steady_clock::now() + patience;
  return impl_->post(message);
}

void Client::stop() {
  impl_->stopped = true;
  impl_->names.set_stopped(true);
  impl_->context.stop();
}

void Client::resume() {
  impl_->stopped = false;
  impl_->names.set_stopped(false);
}

}  // namespace usdt::http
