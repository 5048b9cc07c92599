// SPDX-License-Identifier: BSD-2-Clause
#include "sys/bpf_token.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::sys {
namespace {

/// Where union bpf_attr has the flags and the token of a command.
struct TokenPlace {
  int cmd;
  std::size_t flags, token;
};
constexpr std::array kTokenPlaces = {TokenPlace{kBpfMapCreateCmd, offsetof(MapCreate, map_flags), 76},
                                     TokenPlace{kBpfProgLoadCmd, offsetof(ProgLoad, prog_flags), 144}};

int make_token() {
  const std::string directory = token_directory();
  if (directory.empty()) return -ENOENT;
  const UniqueFd bpffs(::open(directory.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  if (!bpffs) return -errno;
  TokenCreate attr{.flags = 0, .bpffs_fd = static_cast<std::uint32_t>(bpffs.get())};
  const long token = ::syscall(SYS_bpf, kBpfTokenCreateCmd, &attr, sizeof(attr));
  return token < 0 ? -errno : static_cast<int>(token);
}

}  // namespace

std::string token_directory() {
  const char* wanted = ::secure_getenv("LIBBPF_BPF_TOKEN_PATH");
  return wanted != nullptr ? wanted : "/sys/fs/bpf";
}

int bpf_token() {
  static std::mutex mutex;
  static int token = -ENOENT;
  const std::lock_guard lock(mutex);
  if (token < 0) token = make_token();  // it may have been delegated meanwhile
  return token;
}

int bpf_with_token(int cmd, const void* attr, unsigned size) {
  const auto place = std::ranges::find(kTokenPlaces, cmd, &TokenPlace::cmd);
  std::array<std::byte, 256> with{};
  if (place == kTokenPlaces.end() || size > with.size()) return -EPERM;
  const int token = bpf_token();
  if (token < 0) return -EPERM;
  std::memcpy(with.data(), attr, size);
  std::uint32_t flags = 0;
  std::memcpy(&flags, with.data() + place->flags, sizeof(flags));
  flags |= kBpfFTokenFd;
  std::memcpy(with.data() + place->flags, &flags, sizeof(flags));
  std::memcpy(with.data() + place->token, &token, sizeof(token));
  const auto whole = std::max<std::size_t>(size, place->token + sizeof(token));
  const long done = ::syscall(SYS_bpf, cmd, with.data(), whole);
  return done < 0 ? -errno : static_cast<int>(done);
}

}  // namespace usdt::sys
