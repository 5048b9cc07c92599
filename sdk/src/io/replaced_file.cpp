// SPDX-License-Identifier: BSD-2-Clause
#include "io/replaced_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/try.hpp"

namespace usdt::io {
namespace {

/// Writes a new file that only its owner can open; errno says why not.
bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

ReplacedFile::ReplacedFile(const std::string& path) {
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  path_ = unknown ? path : real.native();
}

Result<void> ReplacedFile::replace(std::string_view text) const {
  std::string name = path_ + ".XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return fail(os_failure(ErrorKind::io, "replace " + path_, errno));
  struct stat before {};
  bool done = write_whole(fd, text) && ::stat(path_.c_str(), &before) == 0 && ::fchmod(fd, before.st_mode & 0777) == 0;
  int error = errno;
  if (::close(fd) != 0 && done) error = errno, done = false;
  if (done && ::rename(name.c_str(), path_.c_str()) != 0) error = errno, done = false;
  if (done) return {};
  static_cast<void>(::unlink(name.c_str()));
  return fail(os_failure(ErrorKind::io, "replace " + path_, error));
}

}  // namespace usdt::io
