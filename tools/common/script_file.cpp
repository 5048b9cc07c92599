// SPDX-License-Identifier: BSD-2-Clause
#include "common/script_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "common/script.hpp"

namespace usdt::tools {
namespace {

/// Reads all of an open file. Nothing: errno says why not.
std::optional<std::string> read_all(int fd, std::size_t most) {
  std::string text(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t got = ::read(fd, text.data() + size, most - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

/// Closes a file at the end of a scope.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

}  // namespace

Result<std::string> read_script_file(const std::string& path,
                                     const std::function<std::string(const struct stat&)>& why_not) {
  const auto trouble = [&] { return fail(os_failure(ErrorKind::io, "read " + path, errno)); };
  const OpenFile file(path);
  struct stat what {};
  if (file.fd < 0 || ::fstat(file.fd, &what) != 0) return trouble();
  if (!S_ISREG(what.st_mode)) return fail(ErrorKind::invalid_argument, path + ": it is no regular file");
  if (const std::string why = why_not ? why_not(what) : std::string(); !why.empty())
    return fail(ErrorKind::no_permission, fmt::format("{}: passed over: {}", path, why));
  auto text = read_all(file.fd, kMostScriptBytes + 1);
  if (!text) return trouble();
  if (text->size() > kMostScriptBytes) return fail(ErrorKind::limit, path + ": more than 1 MiB of script");
  return std::move(*text);
}

}  // namespace usdt::tools
