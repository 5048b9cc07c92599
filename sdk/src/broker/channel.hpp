// SPDX-License-Identifier: BSD-2-Clause
// Messages over a socket of packets (SOCK_SEQPACKET), with descriptors beside them. Private to broker/ and serve/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::broker {

/// What a message is. Numbers stay: another version has to understand hello and refused.
enum class Kind : std::uint8_t {
  hello = 1,     ///< Hello; answered by welcome
  welcome = 2,   ///< Welcome
  refused = 3,   ///< in place of any answer: an Error
  load = 4,      ///< LoadRequest, with the files; answered by loaded
  loaded = 5,    ///< LoadReply, with the maps
  attach = 6,    ///< AttachRequest; answered by attached
  attached = 7,  ///< AttachReply, with the links
  forget = 8,    ///< the number of an object; not answered
  misses = 9,    ///< the number of an object; answered by missed
  missed = 10,   ///< how many hits found no program free, or that it is not known
};

/// A message that came, whole and within bounds. What is in it is still anybody's word.
struct Received {
  Kind kind = {};
  std::vector<std::uint8_t> bytes;
  std::vector<sys::UniqueFd> fds;
};

class Channel {
 public:
  explicit Channel(sys::UniqueFd socket) noexcept : socket_(std::move(socket)) {}

  /// Errors: io; changed (nobody is there any more).
  [[nodiscard]] Result<void> send(Kind kind, ByteSpan bytes, std::span<const int> fds = {}) const;
  /// Waits for a message. Errors: changed (nobody is there any more), malformed (it is none), limit (limits.hpp), io.
  [[nodiscard]] Result<Received> receive() const;

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

 private:
  sys::UniqueFd socket_;
};

}  // namespace usdt::broker
