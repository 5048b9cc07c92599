// SPDX-License-Identifier: BSD-2-Clause
#include "broker/channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/try.hpp"
#include "broker/limits.hpp"

namespace usdt::broker {
namespace {

/// In front of each packet, in the byte order of the machine: both sides are on it.
struct PacketHead {
  std::uint8_t kind = 0;
  std::uint8_t more = 0;     ///< 1: the message goes on in the next packet
  std::uint16_t number = 0;  ///< from 0 on, within the message
};
static_assert(sizeof(PacketHead) == 4);

constexpr std::size_t kMostContent = kMostOfPacket - sizeof(PacketHead);
static_assert(kMostBytes / kMostContent < UINT16_MAX && kMostFds / kMostFdsOfPacket < UINT16_MAX);

/// Room for the descriptors of a packet, and for some that a sender adds: the kernel closes what has none, and says so.
using Control = std::array<char, CMSG_SPACE(kMostFdsOfPacket * sizeof(int))>;

Error gone(int os_error) {
  return {ErrorKind::changed,
          os_error == 0 ? "the other side has closed the connection"
                        : fmt::format("the connection is lost: {}", std::strerror(os_error)),
          os_error};
}

/// Takes over the descriptors of a packet, whatever else is in it.
std::vector<sys::UniqueFd> take_fds(msghdr& header) {
  std::vector<sys::UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t n = 0; n < count; ++n) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + n * sizeof(int), sizeof(fd));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

struct Packet {
  PacketHead head;
  std::vector<std::uint8_t> content;
  std::vector<sys::UniqueFd> fds;
};

Result<Packet> receive_packet(int socket) {
  Packet packet;
  packet.content.resize(kMostContent);
  alignas(cmsghdr) Control control;
  std::array<iovec, 2> parts{iovec{&packet.head, sizeof(packet.head)},
                             iovec{packet.content.data(), packet.content.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t size = -1;
  do size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < 0) return fail(gone(errno));
  packet.fds = take_fds(header);
  if (size == 0) return fail(gone(0));
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return fail(ErrorKind::limit, "a packet that is longer, or has more descriptors, than there may be");
  if (static_cast<std::size_t>(size) < sizeof(packet.head))
    return fail(ErrorKind::malformed, "a packet without a head");
  packet.content.resize(static_cast<std::size_t>(size) - sizeof(packet.head));
  return packet;
}

Result<void> send_packet(int socket, PacketHead head, ByteSpan content, std::span<const int> fds) {
  std::array<iovec, 2> parts{iovec{&head, sizeof(head)},
                             iovec{const_cast<std::uint8_t*>(content.data()), content.size()}};
  alignas(cmsghdr) Control control{};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ssize_t size = -1;
  do size = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  while (size < 0 && errno == EINTR);
  if (size < 0) return fail(gone(errno));
  return {};
}

}  // namespace

Result<void> Channel::send(Kind kind, ByteSpan bytes, std::span<const int> fds) const {
  if (bytes.size() > kMostBytes || fds.size() > kMostFds)
    return fail(ErrorKind::limit, fmt::format("a message of {} bytes and {} descriptors: usdt-broker takes {} and {}",
                                              bytes.size(), fds.size(), kMostBytes, kMostFds));
  PacketHead head{.kind = static_cast<std::uint8_t>(kind)};
  for (bool more = true; more; ++head.number) {
    const ByteSpan content = bytes.first(std::min(bytes.size(), kMostContent));
    const std::span<const int> with = fds.first(std::min(fds.size(), kMostFdsOfPacket));
    bytes = bytes.subspan(content.size());
    fds = fds.subspan(with.size());
    more = !bytes.empty() || !fds.empty();
    head.more = more ? 1 : 0;
    TRY(send_packet(socket_.get(), head, content, with));
  }
  return {};
}

Result<Received> Channel::receive() const {
  Received message;
  for (std::uint16_t number = 0;; ++number) {
    auto packet = TRY(receive_packet(socket_.get()));
    if (number == 0) message.kind = static_cast<Kind>(packet.head.kind);
    if (packet.head.number != number || static_cast<Kind>(packet.head.kind) != message.kind || packet.head.more > 1)
      return fail(ErrorKind::malformed, "a packet that does not belong to the message before it");
    if (message.bytes.size() + packet.content.size() > kMostBytes || message.fds.size() + packet.fds.size() > kMostFds)
      return fail(ErrorKind::limit, "a message that is longer, or has more descriptors, than there may be");
    if (packet.head.more == 1 && packet.content.empty() && packet.fds.empty())
      return fail(ErrorKind::malformed, "an empty packet amid a message");
    message.bytes.insert(message.bytes.end(), packet.content.begin(), packet.content.end());
    std::move(packet.fds.begin(), packet.fds.end(), std::back_inserter(message.fds));
    if (packet.head.more == 0) return message;
  }
}

}  // namespace usdt::broker
