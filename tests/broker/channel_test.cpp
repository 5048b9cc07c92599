// SPDX-License-Identifier: BSD-2-Clause
// Messages over a socket, and what is no message.
#include "broker/channel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "broker/limits.hpp"

namespace usdt::broker {
namespace {

using ::testing::HasSubstr;

struct Ends {
  Ends() {
    std::array<int, 2> fds{-1, -1};
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()));
    here = std::make_unique<Channel>(sys::UniqueFd(fds[0]));
    there = std::make_unique<Channel>(sys::UniqueFd(fds[1]));
  }
  /// One packet as it is, with so many descriptors.
  void send_raw(std::vector<std::uint8_t> bytes, std::size_t fds = 0) const {
    std::vector<int> descriptors(fds, 0);
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    iovec part{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fds > 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::sendmsg(here->fd(), &header, 0));
  }

  std::unique_ptr<Channel> here, there;
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(Channel, CarriesAMessageOfManyPacketsWithItsDescriptors) {
  const Ends ends;
  std::vector<std::uint8_t> bytes(300'000);
  for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::uint8_t>(n * 7);
  std::vector<int> fds(200, ends.here->fd());
  std::thread sender([&] { EXPECT_TRUE(ends.here->send(Kind::load, bytes, fds)); });
  auto message = ends.there->receive();
  sender.join();
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(Kind::load, message->kind);
  EXPECT_EQ(bytes, message->bytes);
  ASSERT_EQ(200U, message->fds.size());
  struct stat sent {
  }, came{};
  ASSERT_EQ(0, ::fstat(ends.here->fd(), &sent));
  for (const sys::UniqueFd& fd : message->fds) {
    ASSERT_EQ(0, ::fstat(fd.get(), &came));
    EXPECT_EQ(sent.st_ino, came.st_ino);
    EXPECT_NE(0, ::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
  }
}

TEST(Channel, CarriesAnEmptyMessage) {
  const Ends ends;
  ASSERT_TRUE(ends.here->send(Kind::forget, {}));
  const auto message = ends.there->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(Kind::forget, message->kind);
  EXPECT_TRUE(message->bytes.empty());
}

TEST(Channel, SaysThatTheOtherSideHasGone) {
  Ends ends;
  ends.here.reset();
  EXPECT_EQ(ErrorKind::changed, ends.there->receive().error().kind);
  EXPECT_EQ(ErrorKind::changed, ends.there->send(Kind::hello, {}).error().kind);
}

TEST(Channel, SendsNothingThatNobodyTakes) {
  const Ends ends;
  EXPECT_EQ(ErrorKind::limit, ends.here->send(Kind::load, std::vector<std::uint8_t>(kMostBytes + 1)).error().kind);
  EXPECT_EQ(ErrorKind::limit, ends.here->send(Kind::load, {}, std::vector<int>(kMostFds + 1)).error().kind);
}

struct BadPacket {
  const char* name;
  std::vector<std::vector<std::uint8_t>> packets;
  ErrorKind kind;
};

void PrintTo(const BadPacket& bad, std::ostream* out) { *out << bad.name; }

class BadPackets : public ::testing::TestWithParam<BadPacket> {};

TEST_P(BadPackets, AreNoMessage) {
  const Ends ends;
  for (const auto& packet : GetParam().packets) ends.send_raw(packet);
  const auto message = ends.there->receive();
  ASSERT_FALSE(message);
  EXPECT_EQ(GetParam().kind, message.error().kind) << message.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPackets,
    ::testing::Values(BadPacket{"no head", {{4, 0, 0}}, ErrorKind::malformed},
                      BadPacket{"begins amid a message", {{4, 0, 1, 0, 9}}, ErrorKind::malformed},
                      BadPacket{"another kind follows", {{4, 1, 0, 0, 9}, {5, 0, 1, 0, 9}}, ErrorKind::malformed},
                      BadPacket{"a packet is missing", {{4, 1, 0, 0, 9}, {4, 0, 2, 0, 9}}, ErrorKind::malformed},
                      BadPacket{"more is no flag", {{4, 2, 0, 0, 9}}, ErrorKind::malformed},
                      BadPacket{"nothing, and more", {{4, 1, 0, 0}}, ErrorKind::malformed},
                      BadPacket{"too long", {std::vector<std::uint8_t>(kMostOfPacket + 1, 4)}, ErrorKind::limit}));

TEST(Channel, KeepsNoDescriptorOfWhatItRefuses) {
  const Ends ends;
  const std::size_t before = open_descriptors();
  ends.send_raw({4, 0, 1, 0, 9}, 5);
  EXPECT_FALSE(ends.there->receive());
  ends.send_raw({4, 0, 0, 0, 9}, kMostFdsOfPacket + 1);
  EXPECT_EQ(ErrorKind::limit, ends.there->receive().error().kind);
  EXPECT_EQ(before, open_descriptors());
}

TEST(Channel, EndsAMessageThatDoesNotEnd) {
  const Ends ends;
  std::thread sender([&] {
    std::vector<std::uint8_t> packet(kMostOfPacket, 0);
    packet[0] = 4;
    packet[1] = 1;
    for (std::uint16_t number = 0; number <= kMostBytes / (kMostOfPacket - 4); ++number) {
      std::memcpy(packet.data() + 2, &number, sizeof(number));
      if (::send(ends.here->fd(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return;
    }
  });
  const auto message = ends.there->receive();
  sender.join();
  ASSERT_FALSE(message);
  EXPECT_EQ(ErrorKind::limit, message.error().kind);
}

}  // namespace
}  // namespace usdt::broker
