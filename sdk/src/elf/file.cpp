// SPDX-License-Identifier: BSD-2-Clause
#include "elf/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/read.hpp"
#include "sys/regular_file.hpp"

namespace usdt::elf {
namespace {

bool same_time(const timespec& a, const timespec& b) noexcept { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

Result<File> File::open(const std::filesystem::path& path) {
  sys::RegularFile opened = sys::open_regular(AT_FDCWD, path.c_str());
  if (opened.fd) return File(std::move(opened.fd), opened.st);
  return fail(sys::failure_of(opened, path.string()));
}

Result<File> File::in_memory(ByteView bytes) {
  sys::UniqueFd fd(::memfd_create("usdt", MFD_CLOEXEC));
  const auto failed = [] { return fail(os_failure(ErrorKind::io, "a file in memory", errno)); };
  if (!fd) return failed();
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed();
    done += static_cast<std::size_t>(n);
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return failed();
  return File(std::move(fd), st);
}

std::uint64_t File::stored() const noexcept {
  // A file system that does not say how much it stores says 0; small files can be kept in the inode.
  if (at_open_.st_blocks <= 0) return size();
  constexpr std::uint64_t kBlock = 512;          // stat(2), "st_blocks"
  constexpr std::uint64_t kCompression = 16;     // more than btrfs or ZFS make of code and symbols
  constexpr std::uint64_t kSmall = 64ULL << 20;  // not worth telling from a hole
  const auto blocks = std::min<std::uint64_t>(static_cast<std::uint64_t>(at_open_.st_blocks), size() / kBlock + 1);
  return std::min(size(), std::max(blocks * kBlock * kCompression, kSmall));
}

bool File::is_as_long_and_as_old(const struct stat& now) const noexcept {
  return now.st_size == at_open_.st_size && same_time(now.st_mtim, at_open_.st_mtim);
}

bool File::is_unwritten() const noexcept {
  struct stat now {};
  return ::fstat(fd(), &now) == 0 && is_as_long_and_as_old(now);
}

bool File::unchanged() const noexcept {
  struct stat now {};
  if (::fstat(fd(), &now) != 0 || !is_as_long_and_as_old(now)) return false;
  // To lose a name changes the inode, too: another file takes its place, and nobody wrote to this one.
  return same_time(now.st_ctim, at_open_.st_ctim) || now.st_nlink < at_open_.st_nlink;
}

bool File::is_trusted() const noexcept {
  struct stat st {};
  if (::fstat(fd(), &st) != 0) return false;
  return (st.st_uid == 0 || st.st_uid == ::geteuid()) && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool File::same_inode(const File& other) const noexcept {
  return at_open_.st_dev == other.at_open_.st_dev && at_open_.st_ino == other.at_open_.st_ino;
}

std::size_t File::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  if (offset >= size()) return 0;
  out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size() - offset)));
  return sys::read_at(fd(), offset, std::as_writable_bytes(out));
}

std::uint64_t File::data_from(std::uint64_t offset) const noexcept {
  // This moves the position of the descriptor, which nothing here uses.
  const off_t data = ::lseek(fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return std::min(static_cast<std::uint64_t>(data), size());
  return errno == ENXIO ? size() : offset;
}

Bytes File::bytes(std::uint64_t offset, std::uint64_t size) const {
  if (offset >= this->size()) return {};
  Bytes out(static_cast<std::size_t>(std::min({size, this->size() - offset, stored()})));
  out.resize(read(offset, out));
  return out;
}

}  // namespace usdt::elf
