// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "broker/channel.hpp"
#include "broker/limits.hpp"
#include "broker/messages.hpp"
#include "event/kernel_offsets.hpp"
#include "serve/allowed_processes.hpp"
#include "serve/hidden_addresses.hpp"
#include "serve/objects.hpp"
#include "serve/request_limits.hpp"
#include "usdt/broker_service.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {
namespace serve {
namespace {

using broker::Kind;

/// One connection.
class Conversation {
 public:
  Conversation(int socket, const BrokerClient& client, const BrokerServiceOptions& options)
      : channel_(sys::UniqueFd(socket)), pace_(options.requests_per_second), objects_(client, options) {}

  Result<void> run() {
    auto first = channel_.receive();
    if (!first) return fail(first.error());
    TRY(greet(*first));
    while (true) {
      auto request = channel_.receive();
      // Between two messages it is no error to go; nobody is told of what is amid one.
      if (!request && request.error().kind == ErrorKind::changed) return {};
      if (!request) return refuse_and_end(std::move(request.error()));
      pace_.take_turn();
      TRY(answer(std::move(*request)));
    }
  }

 private:
  /// Says why, to whoever is still there, and ends the connection.
  Result<void> refuse_and_end(Error error) {
    static_cast<void>(refuse(error));
    return fail(std::move(error));
  }

  Result<void> refuse(const Error& error) {
    ByteWriter out;
    broker::write(out, without_addresses(error));
    return channel_.send(Kind::refused, out.bytes());
  }

  template <class Answer>
  Result<void> send(Kind kind, const Result<Granted<Answer>>& granted) {
    if (!granted) return refuse(granted.error());
    ByteWriter out;
    write(out, granted->answer);
    std::vector<int> fds = granted->lent;
    for (const sys::UniqueFd& each : granted->given) fds.push_back(each.get());
    return channel_.send(kind, out.bytes(), fds);
  }

  Result<void> greet(const broker::Received& first) {
    broker::Hello hello;
    ByteReader in(first.bytes);
    if (first.kind != Kind::hello || !read(in, hello) || !first.fds.empty())
      return refuse_and_end({ErrorKind::malformed, "usdt-broker: the first message is no hello"});
    if (hello.protocol != broker::kProtocol)
      return refuse_and_end({ErrorKind::not_supported,
                             fmt::format("usdt-broker {} speaks protocol {}, and you speak {}: one of the two is to be "
                                         "upgraded",
                                         USDT_VERSION, broker::kProtocol, hello.protocol)});
    ByteWriter out;
    broker::write(out, broker::Welcome{broker::kProtocol, USDT_VERSION, probe_features()});
    return channel_.send(Kind::welcome, out.bytes());
  }

  Result<void> answer(broker::Received request) {
    switch (request.kind) {
      case Kind::load:
        return load(std::move(request));
      case Kind::attach:
        return attach(request);
      case Kind::forget:
      case Kind::misses:
        return about_object(request);
      default:
        return refuse_and_end({ErrorKind::malformed, "usdt-broker: there is no such request"});
    }
  }

  Result<void> load(broker::Received request) {
    broker::LoadRequest wanted;
    ByteReader in(request.bytes);
    if (!read(in, wanted)) return refuse_and_end({ErrorKind::malformed, "usdt-broker: a plan that cannot be"});
    return send(Kind::loaded, objects_.load(std::move(wanted), std::move(request.fds)));
  }

  Result<void> attach(const broker::Received& request) {
    broker::AttachRequest wanted;
    ByteReader in(request.bytes);
    if (!read(in, wanted) || !request.fds.empty())
      return refuse_and_end({ErrorKind::malformed, "usdt-broker: a request to attach that cannot be"});
    return send(Kind::attached, objects_.attach(wanted));
  }

  Result<void> about_object(const broker::Received& request) {
    ByteReader in(request.bytes);
    const std::uint32_t object = in.u32();
    if (in.failed() || !request.fds.empty())
      return refuse_and_end({ErrorKind::malformed, "usdt-broker: an object that cannot be"});
    if (request.kind == Kind::forget) {
      objects_.forget(object);
      return {};
    }
    const auto missed = objects_.missed(object);
    ByteWriter out;
    out.u8(missed ? 1 : 0);
    out.varint(missed.value_or(0));
    return channel_.send(Kind::missed, out.bytes());
  }

  broker::Channel channel_;
  Pace pace_;
  Objects objects_;
};

}  // namespace
}  // namespace serve

inline namespace v1 {

Result<BrokerClient> broker_client(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail(os_failure(ErrorKind::io, "who has connected", errno));
  const BrokerClient client{peer.pid, peer.uid, peer.gid};
  TRY(serve::check_namespaces(client));
  return client;
}

void refuse_client(int socket, const Error& why) {
  ByteWriter out;
  broker::write(out, why);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  const broker::Channel channel(sys::UniqueFd(::fcntl(socket, F_DUPFD_CLOEXEC, 0)));
  static_cast<void>(channel.send(broker::Kind::refused, out.bytes()));
  // A socket that is closed with something unread takes from the other side what was said to it.
  ::shutdown(socket, SHUT_RDWR);
  char some = 0;
  while (::recv(socket, &some, sizeof(some), MSG_DONTWAIT) > 0) {
  }
}

Result<void> check_broker_service() {
  TRY(check_privilege(Backend::uprobe_multi));
  for (const Feature feature : {Feature::uprobe_multi, Feature::uprobe_multi_pid}) {
    const FeatureState state = probe_feature(feature);
    if (state.answer == Answer::yes) continue;
    return fail(ErrorKind::not_supported,
                fmt::format("usdt-broker keeps processes apart by uprobe_multi (Linux 6.10), and this kernel: {}: {}",
                            to_string(feature), state.detail));
  }
  TRY(event::count_owner_only(0, 0));
  return {};
}

Result<void> serve_client(int socket, const BrokerClient& client, const BrokerServiceOptions& options) try {
  return serve::Conversation(socket, client, options).run();
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
