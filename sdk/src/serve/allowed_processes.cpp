// SPDX-License-Identifier: BSD-2-Clause
#include "serve/allowed_processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/try.hpp"
#include "sys/read.hpp"

namespace usdt::serve {
namespace {

/// The words behind "NAME:" in /proc/PID/status. (Nothing that a process writes is in front of it but its name, in
/// which a newline is "\n" written out.)
std::vector<std::string_view> words_of(std::string_view status, std::string_view name) {
  const std::string key = fmt::format("\n{}:", name);
  const std::size_t at = status.find(key);
  std::vector<std::string_view> words;
  if (at == status.npos) return words;
  std::string_view line = status.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
}

/// Whether all four (real, effective, saved, of the file system) are `wanted`.
bool are_all(std::string_view status, std::string_view name, unsigned wanted) {
  const auto words = words_of(status, name);
  const std::string text = fmt::format("{}", wanted);
  return words.size() == 4 && words[0] == text && words[1] == text && words[2] == text && words[3] == text;
}

bool has_no_capability(std::string_view status) {
  const auto words = words_of(status, "CapPrm");
  return words.size() == 1 && words.front().find_first_not_of('0') == std::string_view::npos;
}

/// Whether the process has this one's user namespace, as far as anybody may see: the numbers of its users are this
/// one's. Only root of this namespace can give another one all of them.
bool has_own_users(pid_t pid) {
  constexpr std::size_t most = 16384;
  const auto own = sys::read_text("/proc/self/uid_map", most);
  const auto theirs = sys::read_text(fmt::format("/proc/{}/uid_map", pid), most);
  return own && theirs && *own == *theirs;
}

/// Who owns files below /proc/PID is who may look into the process: root where it is not dumpable (proc_pid(5)).
bool is_dumpable(pid_t pid, uid_t uid) {
  struct stat st {};
  return ::stat(fmt::format("/proc/{}/maps", pid).c_str(), &st) == 0 && st.st_uid == uid;
}

}  // namespace

Result<AllowedProcess> AllowedProcess::check(pid_t pid, const BrokerClient& client) {
  sys::UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return fail(os_failure(ErrorKind::not_found, fmt::format("process {}", pid), errno));
  AllowedProcess process(pid, std::move(fd));
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::no_permission, fmt::format("process {}: {}", pid, why));
  };
  constexpr std::size_t most = 16384;
  const auto status = sys::read_text(fmt::format("/proc/{}/status", pid), most);
  if (!status || !process.lives()) return fail(ErrorKind::not_found, fmt::format("no process {}", pid));
  if (!are_all(*status, "Uid", client.uid)) return refuse("it is not (or not only) yours: its user is another");
  if (!are_all(*status, "Gid", client.gid)) return refuse("its group is another than yours");
  if (!has_no_capability(*status)) return refuse("it has capabilities that you do not have");
  if (!has_own_users(pid)) return refuse("it is in another user namespace");
  if (!is_dumpable(pid, client.uid))
    return refuse(
        "it is protected: a program that changes its user, that you may not read, or that says so "
        "(PR_SET_DUMPABLE)");
  if (!process.lives()) return fail(ErrorKind::not_found, fmt::format("no process {}", pid));
  return process;
}

bool AllowedProcess::lives() const noexcept {
  pollfd ended{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 0;
}

Result<void> check_namespaces(const BrokerClient& client) {
  constexpr std::size_t most = 16384;
  const auto refuse = [](std::string_view what) {
    return fail(ErrorKind::not_supported,
                fmt::format("usdt-broker serves the processes of its own {}, and you are in another", what));
  };
  const auto status = sys::read_text(fmt::format("/proc/{}/status", client.pid), most);
  if (client.pid <= 0 || !status || words_of(*status, "NSpid").size() != 1) return refuse("pid namespace");
  if (!has_own_users(client.pid)) return refuse("user namespace");
  return {};
}

}  // namespace usdt::serve
