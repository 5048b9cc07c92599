// SPDX-License-Identifier: BSD-2-Clause
#include "listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace usdt_broker {
namespace {

/// The number of an environment variable; 0: it has none.
long number_of(const char* name) {
  const char* const text = std::getenv(name);
  long number = 0;
  if (text == nullptr || std::from_chars(text, text + std::strlen(text), number).ec != std::errc()) return 0;
  return number;
}

bool listens_for_packets(int fd) {
  int type = 0, listens = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) return false;
  size = sizeof(listens);
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

/// Whether a broker listens there already: a socket that nobody listens at is left over from one that was killed.
bool is_answered(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool answered = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return answered;
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), own_path_(std::exchange(other.own_path_, {})) {}

Listener::~Listener() {
  if (!own_path_.empty()) ::unlink(own_path_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

usdt::Result<Listener> Listener::open(const std::string& path) {
  constexpr int first_handed_over = 3;  // SD_LISTEN_FDS_START
  if (number_of("LISTEN_PID") == ::getpid() && number_of("LISTEN_FDS") > 0) {
    if (number_of("LISTEN_FDS") != 1 || !listens_for_packets(first_handed_over))
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        "the service manager hands over something else than one listening SOCK_SEQPACKET socket");
    ::fcntl(first_handed_over, F_SETFD, FD_CLOEXEC);
    ::fcntl(first_handed_over, F_SETFL, ::fcntl(first_handed_over, F_GETFL) | O_NONBLOCK);
    return Listener(first_handed_over);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return usdt::fail(usdt::ErrorKind::invalid_argument, path + ": too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  std::error_code none;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), none);
  struct stat st {};
  if (::lstat(path.c_str(), &st) == 0 && !S_ISSOCK(st.st_mode))
    return usdt::fail(usdt::ErrorKind::invalid_argument, path + ": there is something else than a socket");
  if (is_answered(address)) return usdt::fail(usdt::ErrorKind::io, path + ": another broker listens there");
  ::unlink(path.c_str());
  Listener listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  constexpr int waiting = 64;
  if (listener.fd_ < 0 || ::bind(listener.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(listener.fd_, waiting) != 0)
    return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, "listen at " + path, errno));
  listener.own_path_ = path;
  return listener;
}

void Listener::leave_to_broker() noexcept {
  ::close(std::exchange(fd_, -1));
  own_path_.clear();
}

int Listener::accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

}  // namespace usdt_broker
