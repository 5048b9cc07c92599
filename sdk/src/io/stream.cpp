// SPDX-License-Identifier: BSD-2-Clause
#include "io/stream.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace usdt::io {
namespace {

using Clock = std::chrono::steady_clock;

/// The pipe or terminal behind `fd` opened once more, so that O_NONBLOCK is ours alone: as a flag of `fd` itself the
/// other programs that share it (the shell, the traced command) would have it too. -1 where that is not allowed.
int reopened(int fd) {
  return ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

Stream::Stream(int fd) : fd_(fd), terminal_(Terminal::of(fd)) {
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  if (known && S_ISSOCK(st.st_mode)) kind_ = Kind::socket;
  if (known && S_ISFIFO(st.st_mode)) kind_ = Kind::pipe;
  if (terminal_.interactive) kind_ = Kind::terminal;
  if (kind_ == Kind::file || kind_ == Kind::socket) {
    may_wait_ = false;
    return;
  }
  if (const int again = reopened(fd); again >= 0) {
    fd_ = again;
    ours_ = true;
    may_wait_ = false;
  }
}

Result<Stream> Stream::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return fail(os_failure(ErrorKind::io, path, errno));
  Stream stream(fd);
  if (stream.fd_ != fd) ::close(fd);  // a named pipe or a terminal, reopened
  stream.ours_ = true;
  stream.has_old_ = true;
  return stream;
}

std::optional<std::pair<dev_t, ino_t>> Stream::file() const {
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  return std::pair(st.st_dev, st.st_ino);
}

void Stream::make_empty() {
  // A pipe or a terminal has nothing to drop, and says so.
  if (std::exchange(has_old_, false) && ::ftruncate(fd_, 0) < 0 && errno != EINVAL) error_ = errno;
}

Stream::Stream(Stream&& other) noexcept
    : fd_(other.fd_),
      take_(std::move(other.take_)),
      thrown_(std::move(other.thrown_)),
      ours_(std::exchange(other.ours_, false)),
      has_old_(std::exchange(other.has_old_, false)),
      exact_(other.exact_),
      may_wait_(other.may_wait_),
      kind_(other.kind_),
      terminal_(other.terminal_),
      buffer_(std::move(other.buffer_)),
      done_(std::exchange(other.done_, 0)),
      before_(other.before_),
      error_(other.error_) {
  other.buffer_.clear();
}

Stream::~Stream() {
  if (ours_) ::close(fd_);
}

void Stream::lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    print("{}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void Stream::json(std::string_view object) {
  append_json(buffer_, object);
  buffer_.push_back('\n');
}

void Stream::bytes(std::span<const std::byte> bytes) {
  const auto* start = reinterpret_cast<const char*>(bytes.data());
  buffer_.append(start, start + bytes.size());
}

void Stream::erase_line() { print("\r\x1b[K"); }

void Stream::erase_lines(std::size_t count) { print("\r\x1b[{}A\x1b[J", count); }

void Stream::rise_lines(std::size_t count) {
  print("\r");
  if (count > 0) print("\x1b[{}A", count);
}

void Stream::end_risen_line() { print("\x1b[K\n"); }

void Stream::erase_below() { print("\x1b[J"); }

void Stream::break_line(std::uint64_t at) {
  static constexpr std::string_view kBreak = "\n   ";
  const std::size_t size = buffer_.size();
  const auto from = static_cast<std::size_t>(at - before_);
  buffer_.resize(size + kBreak.size());
  std::copy_backward(buffer_.data() + from, buffer_.data() + size, buffer_.data() + buffer_.size());
  std::copy(kBreak.begin(), kBreak.end(), buffer_.data() + from);
}

void Stream::make_cell(std::uint64_t at) {
  const std::string text(printed_from(at));
  if (text.find_first_of(",\"\n\r") == text.npos) return;
  buffer_.resize(static_cast<std::size_t>(at - before_));
  buffer_.push_back('"');
  for (const char c : text) {
    if (c == '"') buffer_.push_back(c);
    buffer_.push_back(c);
  }
  buffer_.push_back('"');
}

void Stream::fit(std::uint64_t at, std::size_t least, std::size_t most, bool left) {
  const auto from = static_cast<std::size_t>(at - before_);
  std::size_t columns = 0;
  for (std::size_t i = from; i < buffer_.size();) {
    const TextUnit unit = first_unit({buffer_.data() + i, buffer_.size() - i});
    if (columns + unit.columns > most) {
      buffer_.resize(i);
      break;
    }
    columns += unit.columns;
    i += unit.bytes;
  }
  if (columns >= least) return;
  const std::size_t size = buffer_.size();
  const std::size_t spaces = least - columns;
  buffer_.resize(size + spaces);
  if (!left) std::copy_backward(buffer_.data() + from, buffer_.data() + size, buffer_.data() + buffer_.size());
  std::fill_n(buffer_.data() + (left ? size : from), spaces, ' ');
}

std::size_t Stream::cut(std::uint64_t at, std::size_t lines, std::size_t columns) {
  const std::string text(printed_from(at));
  buffer_.resize(static_cast<std::size_t>(at - before_));
  std::size_t left = 0;
  for (std::size_t begin = 0; begin < text.size() && left < lines; ++left) {
    const std::size_t end = text.find('\n', begin);
    print("{}\n", shortened(std::string_view(text).substr(begin, end - begin), columns));
    begin = end + 1;
  }
  return left;
}

/// To a pipe whole lines of at most PIPE_BUF bytes, each of which the kernel takes whole or not at all (pipe(7)): a
/// reader never sees half of one when writing ends.
std::string_view Stream::piece() const {
  const std::string_view rest(buffer_.data() + done_, buffer_.size() - done_);
  if ((kind_ != Kind::pipe && kind_ != Kind::terminal) || rest.size() <= PIPE_BUF) return rest;
  const std::size_t line = rest.rfind('\n', PIPE_BUF - 1);
  return rest.substr(0, line == rest.npos ? PIPE_BUF : line + 1);
}

std::int64_t Stream::hand_over(std::string_view data) {
  try {
    if (take_(data)) return static_cast<std::int64_t>(data.size());
    errno = EPIPE;
  } catch (const std::exception& thrown) {
    thrown_ = thrown.what();
    errno = ECANCELED;
  } catch (const abi::__forced_unwind&) {  // pthread_exit(3) and pthread_cancel(3): glibc aborts if they end here
    throw;
  } catch (...) {
    thrown_ = "no std::exception";
    errno = ECANCELED;
  }
  return -1;
}

std::int64_t Stream::put(std::string_view data) {
  if (kind_ == Kind::call) return hand_over(data);
  if (kind_ == Kind::socket) return ::send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (may_wait_ && !writable(0)) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(fd_, data.data(), data.size());
}

bool Stream::writable(int wait_ms) const {
  pollfd entry{fd_, POLLOUT, 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

Stream::Flushed Stream::flush(const Patience& patience) {
  constexpr int kWaitMs = 50;
  auto moved = Clock::now();
  while (error_ == 0 && done_ < buffer_.size()) {
    const std::int64_t n = put(piece());
    if (n > 0) {
      done_ += static_cast<std::size_t>(n);
      moved = Clock::now();
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      const auto stalled = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - moved);
      if (errno == EAGAIN && patience && !patience(stalled)) {
        forget_written();
        return Flushed::waiting;
      }
      static_cast<void>(writable(kWaitMs));
    } else {
      error_ = n < 0 ? errno : EIO;
    }
  }
  if (error_ != 0) return Flushed::failed;
  forget_written();
  if (terminal_.interactive) terminal_.measure(fd_);
  return Flushed::all;
}

void Stream::forget_written() {
  before_ += done_;
  std::copy(buffer_.data() + done_, buffer_.data() + buffer_.size(), buffer_.data());
  buffer_.resize(buffer_.size() - done_);
  done_ = 0;
}

void reserve_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free descriptor is taken. O_PATH: reads and writes fail with EBADF, as on the closed one.
    if (::open("/", O_PATH | O_CLOEXEC) != fd) return;
  }
}

}  // namespace usdt::io
