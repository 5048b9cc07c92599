// SPDX-License-Identifier: BSD-2-Clause
#include "features/red_zone_child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "sys/read.hpp"

namespace usdt::features {
namespace {

/// The "[uprobes]" mapping is made at the first hit that is single-stepped (xol_add_vma(), kernel/events/uprobes.c).
/// In the child of a process that may have threads: system calls only.
bool has_step_page() {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  static constexpr std::string_view name = "[uprobes]\n";
  std::array<char, 4096> buffer;
  std::size_t kept = 0;
  bool found = false;
  for (ssize_t n = 0; fd >= 0 && (n = sys::read_some(fd, std::span(buffer).subspan(kept))) > 0;) {
    const std::string_view text(buffer.data(), kept + static_cast<std::size_t>(n));
    found = found || text.find(name) != text.npos;
    kept = std::min(text.size(), name.size() - 1);
    std::memmove(buffer.data(), text.data() + text.size() - kept, kept);
  }
  if (fd >= 0) ::close(fd);
  return found;
}

/// The child's whole life: waits for the word that the probe is attached, calls, tells.
[[noreturn]] void run_child(const RedZoneCode& code, std::uint32_t calls, int from_parent, int to_parent) {
  char word = 0;
  if (::read(from_parent, &word, 1) != 1) ::_exit(1);
  RedZoneOutcome outcome;
  for (std::uint32_t i = 0; i < calls; ++i) {
    if (code.function(std::uint64_t{i} * 0x123456789) != 0) ++outcome.overwritten;
  }
  // The compiler takes the bytes for constants, but the kernel has changed them: hence volatile.
  for (std::size_t i = 0; i < code.size; ++i)
    outcome.bytes[i] = static_cast<const volatile unsigned char*>(code.nop)[i];
  outcome.stepped = has_step_page();
  ::_exit(::write(to_parent, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

}  // namespace

RedZoneChild::RedZoneChild(const RedZoneCode& code, std::uint32_t calls) {
  std::array<int, 2> down{-1, -1}, up{-1, -1};
  if (::pipe2(down.data(), O_CLOEXEC) == 0 && ::pipe2(up.data(), O_CLOEXEC) == 0) pid_ = ::fork();
  if (pid_ == 0) {
    ::close(down[1]);
    run_child(code, calls, down[0], up[1]);
  }
  if (pid_ < 0) os_error_ = errno;
  to_child_.reset(down[1]);
  from_child_.reset(up[0]);
  for (const int end : {down[0], up[1]}) {
    if (end >= 0) ::close(end);
  }
}

RedZoneChild::~RedZoneChild() {
  to_child_.reset();  // one that still waits for the word ends
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

bool RedZoneChild::call(RedZoneOutcome& outcome) {
  ssize_t n = ::write(to_child_.get(), "g", 1);
  while (n == 1 || (n < 0 && errno == EINTR)) n = ::read(from_child_.get(), &outcome, sizeof(outcome));
  return n == sizeof(outcome);
}

}  // namespace usdt::features
