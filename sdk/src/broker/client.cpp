// SPDX-License-Identifier: BSD-2-Clause
#include "broker/client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/try.hpp"
#include "broker/channel.hpp"
#include "broker/limits.hpp"

namespace usdt {
inline namespace v1 {

struct Broker::Impl {
  explicit Impl(broker::Channel open) noexcept : channel(std::move(open)) {}

  broker::Channel channel;
  broker::Welcome welcome;
  std::mutex mutex;  ///< of `channel`: a request and its answer are together
};

namespace {

using broker::Kind;

Result<sys::UniqueFd> connect_socket(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof(address.sun_path))
    return fail(ErrorKind::invalid_argument, fmt::format("{}: too long for a socket", path.string()));
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  sys::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail(os_failure(ErrorKind::io, "make a socket", errno));
  int result = -1;
  do result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  while (result != 0 && errno == EINTR);
  if (result == 0) return socket;
  const bool nobody = errno == ECONNREFUSED;
  return fail(os_failure(nobody ? ErrorKind::not_found : ErrorKind::io,
                         fmt::format("connect to usdt-broker at {}", path.string()), errno));
}

/// Sends a request and waits for the answer of kind `expected`.
template <class Request>
Result<broker::Received> ask(const broker::Channel& channel, Kind kind, const Request& request,
                             std::span<const int> fds, Kind expected) {
  ByteWriter out;
  write(out, request);
  // Who does not serve us may have said why, and gone.
  const auto sent = channel.send(kind, out.bytes(), fds);
  auto answer = channel.receive();
  if (!answer) return fail(sent ? answer.error() : sent.error());
  if (sent && answer->kind == expected) return answer;
  Error error;
  ByteReader in(answer->bytes);
  if (answer->kind != Kind::refused || !broker::read(in, error) || error.message.empty())
    return fail(ErrorKind::malformed, "usdt-broker: an answer that is none");
  return fail(std::move(error));
}

template <class Reply>
Result<Reply> read_reply(const broker::Received& answer) {
  Reply reply;
  ByteReader in(answer.bytes);
  if (!read(in, reply)) return fail(ErrorKind::malformed, "usdt-broker: an answer that cannot be");
  return reply;
}

}  // namespace

Broker::Broker(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Broker::~Broker() = default;

Result<std::shared_ptr<Broker>> Broker::connect(const std::filesystem::path& path) {
  auto socket = TRY(connect_socket(path));
  auto impl = std::make_unique<Impl>(broker::Channel(std::move(socket)));
  const broker::Hello hello{.protocol = broker::kProtocol, .version = USDT_VERSION};
  auto answer = TRY(ask(impl->channel, Kind::hello, hello, {}, Kind::welcome));
  impl->welcome = TRY(read_reply<broker::Welcome>(answer));
  if (impl->welcome.protocol != broker::kProtocol)
    return fail(ErrorKind::not_supported,
                fmt::format("usdt-broker {} speaks protocol {}, this is protocol {}", impl->welcome.version,
                            impl->welcome.protocol, broker::kProtocol));
  return std::shared_ptr<Broker>(new Broker(std::move(impl)));
}

const std::vector<FeatureState>& Broker::features() const noexcept { return impl_->welcome.features; }
const std::string& Broker::version() const noexcept { return impl_->welcome.version; }

}  // namespace v1

namespace broker {

Result<LoadedThere> Inside::load(Broker& broker, const LoadRequest& request) {
  TRY(check_size(request.plan));
  std::vector<int> files;
  for (const PlannedFile& file : request.plan.files) files.push_back(file.elf->fd());
  const std::lock_guard lock(broker.impl_->mutex);
  auto answer = TRY(ask(broker.impl_->channel, Kind::load, request, files, Kind::loaded));
  LoadedThere loaded{.reply = TRY(read_reply<LoadReply>(answer)), .maps = std::move(answer.fds)};
  if (loaded.maps.size() != loaded.reply.maps.size())
    return fail(ErrorKind::malformed, "usdt-broker: not as many maps as names");
  return loaded;
}

Result<AttachedThere> Inside::attach(Broker& broker, const AttachRequest& request) {
  const std::lock_guard lock(broker.impl_->mutex);
  auto answer = TRY(ask(broker.impl_->channel, Kind::attach, request, {}, Kind::attached));
  return AttachedThere{.reply = TRY(read_reply<AttachReply>(answer)), .links = std::move(answer.fds)};
}

namespace {

struct ObjectNumber {
  std::uint32_t value = 0;
};
void write(ByteWriter& out, const ObjectNumber& number) { out.varint(number.value); }

}  // namespace

std::optional<std::uint64_t> Inside::missed(Broker& broker, std::uint32_t object) {
  const std::lock_guard lock(broker.impl_->mutex);
  const auto answer = ask(broker.impl_->channel, Kind::misses, ObjectNumber{object}, {}, Kind::missed);
  if (!answer) return std::nullopt;
  ByteReader in(answer->bytes);
  const bool known = in.u8() == 1;
  const std::uint64_t count = in.varint();
  return known && !in.failed() ? std::optional(count) : std::nullopt;
}

void Inside::forget(Broker& broker, std::uint32_t object) noexcept {
  const std::lock_guard lock(broker.impl_->mutex);
  ByteWriter out;
  write(out, ObjectNumber{object});
  static_cast<void>(broker.impl_->channel.send(Kind::forget, out.bytes()));
}

}  // namespace broker
}  // namespace usdt
