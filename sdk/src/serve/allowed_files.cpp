// SPDX-License-Identifier: BSD-2-Clause
#include "serve/allowed_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "sys/read.hpp"

namespace usdt::serve {
namespace {

// <linux/magic.h> of Debian 12 lacks these, which are out of its kernel's fs/.
constexpr std::uint32_t kBcachefs = 0xca451a4e, kZfs = 0x2fc12fc1, kXfs = 0x58465342;

/// File systems whose pages the kernel reads itself. Breakpoints are put in place, and their instructions read, while
/// nobody on the machine can fork (dup_mmap_sem of kernel/events/uprobes.c): a server that does not answer, of FUSE in
/// some user's hand, or of a network, would hold up all.
constexpr std::array<std::uint32_t, 11> kLocal = {
    EXT4_SUPER_MAGIC,     BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC, SQUASHFS_MAGIC,
    EROFS_SUPER_MAGIC_V1, RAMFS_MAGIC,       kXfs,        kBcachefs,        kZfs,
    OVERLAYFS_SUPER_MAGIC};

/// Whether a file system of this device is mounted where this process is: not only in some user's own namespace, where
/// anybody can lay an overlay over a FUSE.
bool is_mounted_here(dev_t device) {
  const auto mounts = sys::read_text("/proc/self/mountinfo", std::size_t{4} << 20);
  return mounts && mounts->find(fmt::format(" {}:{} ", ::major(device), ::minor(device))) != std::string::npos;
}

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

tl::unexpected<Error> refuse(const std::string& path, std::string_view why) {
  return fail(ErrorKind::no_permission, fmt::format("{}: {}", path, why));
}

}  // namespace

std::string AllowedFile::access() const { return fmt::format("/proc/self/fd/{}", fd.get()); }

Result<AllowedFile> check_file(sys::UniqueFd fd, const BrokerClient& client) {
  AllowedFile file{.fd = std::move(fd), .path = {}};
  file.path = path_of(file.fd.get());
  struct stat st {};
  struct statfs system {};
  const int flags = ::fcntl(file.fd.get(), F_GETFL);
  if (flags < 0 || ::fstat(file.fd.get(), &st) != 0 || ::fstatfs(file.fd.get(), &system) != 0)
    return fail(os_failure(ErrorKind::io, file.path, errno));
  if (!S_ISREG(st.st_mode)) return refuse(file.path, "it is no regular file");
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY)
    return refuse(file.path, "it was not opened for reading");
  const auto type = static_cast<std::uint32_t>(system.f_type);
  if (std::ranges::find(kLocal, type) == kLocal.end() || (type == OVERLAYFS_SUPER_MAGIC && !is_mounted_here(st.st_dev)))
    return refuse(file.path, "it is on a file system for whose server everybody would wait (FUSE, network)");
  if ((st.st_mode & (S_ISUID | S_ISGID)) != 0) return refuse(file.path, "it is a setuid or setgid program");
  file.own = st.st_uid == client.uid;
  if (file.own) return file;
  if (st.st_uid != 0) return refuse(file.path, fmt::format("it is user {}'s, and neither yours nor root's", st.st_uid));
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse(file.path, "it is root's, and others may write to it");
  return file;
}

}  // namespace usdt::serve
