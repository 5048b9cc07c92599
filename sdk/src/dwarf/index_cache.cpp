// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/index_cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "elf/crc32.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::dwarf {
namespace {

/// "USDTIDX" and the version of what follows.
constexpr std::uint64_t kMagic = 0x5844'4954'4453'5501;
/// Bytes of one index, and indexes that are kept.
constexpr std::uint64_t kLargest = 1ULL << 30;
constexpr std::size_t kMostKept = 32;
constexpr const char* directory = "usdt";
constexpr std::string_view kSuffix = ".functions";

bool belongs_to_us(const struct stat& st) {
  return st.st_uid == ::geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// A directory that nobody else may write to, opened; nothing: it is not there, or is another's.
sys::UniqueFd own_directory(int in, const char* name) {
  sys::UniqueFd opened(::openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st {};
  if (!opened || ::fstat(opened.get(), &st) != 0 || !belongs_to_us(st)) return sys::UniqueFd();
  return opened;
}

/// secure_getenv(3): the environment of who started a program that has more rights is not to be followed.
sys::UniqueFd caches() {
  if (const char* named = ::secure_getenv("XDG_CACHE_HOME"); named != nullptr && *named == '/')
    return own_directory(AT_FDCWD, named);
  const char* home = ::secure_getenv("HOME");
  if (home == nullptr || *home != '/') return sys::UniqueFd();
  const sys::UniqueFd in = own_directory(AT_FDCWD, home);
  if (!in) return sys::UniqueFd();
  ::mkdirat(in.get(), ".cache", 0700);
  return own_directory(in.get(), ".cache");
}

sys::UniqueFd own_cache() {
  const sys::UniqueFd in = caches();
  if (!in) return sys::UniqueFd();
  ::mkdirat(in.get(), directory, 0700);
  return own_directory(in.get(), directory);
}

/// Which inode it is, and since when its contents are what they are. Nobody but root sets a ctime.
std::array<std::uint64_t, 5> identity_of(const elf::File& file) {
  struct stat st {};
  if (::fstat(file.fd(), &st) != 0) return {};
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  return {st.st_dev, st.st_ino, static_cast<std::uint64_t>(st.st_size), ns(st.st_mtim), ns(st.st_ctim)};
}

std::uint64_t check_of(std::span<const std::uint64_t> words) {
  elf::Crc32 crc;
  crc.add({reinterpret_cast<const std::uint8_t*>(words.data()), words.size_bytes()});
  return crc.value();
}

/// The whole file, which is ours.
std::vector<std::uint64_t> read_words(int in, const std::string& name) {
  // O_NONBLOCK: what is there may be no file at all.
  const sys::UniqueFd file(::openat(in, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || !belongs_to_us(st)) return {};
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size > kLargest || size % sizeof(std::uint64_t) != 0) return {};
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
  const auto bytes = std::as_writable_bytes(std::span(words));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t more = ::pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (more <= 0) return {};
    done += static_cast<std::size_t>(more);
  }
  return words;
}

bool write_words(int file, std::span<const std::uint64_t> words) {
  for (auto rest = std::as_bytes(words); !rest.empty();) {
    const ssize_t done = ::write(file, rest.data(), rest.size());
    if (done <= 0) return false;
    rest = rest.subspan(static_cast<std::size_t>(done));
  }
  return true;
}

/// Removes the oldest, so that debug files that are gone do not fill the cache.
void remove_old(int in) {
  const int copy = ::fcntl(in, F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
  if (!listing) return;
  ::rewinddir(listing.get());
  std::vector<std::pair<std::int64_t, std::string>> all;
  while (const dirent* each = ::readdir(listing.get())) {
    struct stat st {};
    if (std::string_view(each->d_name).find(kSuffix) == std::string_view::npos) continue;
    if (::fstatat(in, each->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) all.emplace_back(st.st_mtim.tv_sec, each->d_name);
  }
  std::ranges::sort(all);
  for (std::size_t i = 0; i + kMostKept < all.size(); ++i) ::unlinkat(in, all[i].second.c_str(), 0);
}

}  // namespace

IndexCache::IndexCache(const elf::File& code, const elf::File& debug, const std::string& build_id)
    : code_(code), debug_(debug) {
  if (!code.is_trusted() || !debug.is_trusted()) return;
  const auto of_code = identity_of(code);
  const auto of_debug = identity_of(debug);
  head_[0] = kMagic;
  std::ranges::copy(of_code, head_.begin() + 1);
  std::ranges::copy(of_debug, head_.begin() + 6);
  // One that is longer than any linker makes it is left out of the name.
  const std::string id = build_id.size() <= 40 ? build_id : std::string();
  name_ = fmt::format("{}{}{:x}-{:x}{}", id, id.empty() ? "" : "-", of_debug[0], of_debug[1], kSuffix);
}

bool IndexCache::is_sound(const std::vector<std::uint64_t>& words) const {
  if (words.size() <= head_.size() ||
      !std::ranges::equal(std::span(words).first(head_.size() - 1), std::span(head_).first(head_.size() - 1)))
    return false;
  return words[head_.size() - 1] == check_of(std::span(words).subspan(head_.size()));
}

std::optional<FunctionIndex> IndexCache::load() const {
  const sys::UniqueFd in = name_.empty() ? sys::UniqueFd() : own_cache();
  if (!in) return std::nullopt;
  const std::vector<std::uint64_t> words = read_words(in.get(), name_);
  if (!is_sound(words)) return std::nullopt;
  return FunctionIndex::from_words(std::span(words).subspan(head_.size()));
}

void IndexCache::save(const FunctionIndex& index) const {
  if (name_.empty() || !code_.unchanged() || !debug_.unchanged()) return;
  const sys::UniqueFd in = own_cache();
  if (!in) return;
  std::vector<std::uint64_t> words = index.words(head_.size());
  std::ranges::copy(head_, words.begin());
  words[head_.size() - 1] = check_of(std::span(words).subspan(head_.size()));
  if (words.size() * sizeof(std::uint64_t) > kLargest) return;
  const std::string temporary = fmt::format(".{}.{}", name_, ::getpid());
  const sys::UniqueFd file(
      ::openat(in.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return;
  const bool kept =
      write_words(file.get(), words) && ::renameat(in.get(), temporary.c_str(), in.get(), name_.c_str()) == 0;
  if (!kept) ::unlinkat(in.get(), temporary.c_str(), 0);
  remove_old(in.get());
}

}  // namespace usdt::dwarf
