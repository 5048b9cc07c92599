// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_maps.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "sys/read.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::proc {
namespace fs = std::filesystem;

Error process_error(pid_t pid, int os_error) {
  if (os_error == ENOENT || os_error == ESRCH) {
    return {ErrorKind::not_found, fmt::format("no process {}", pid), os_error};
  }
  if (os_error == EACCES || os_error == EPERM) {
    // Root may lack a capability that the process has, or CAP_SYS_PTRACE; a security module may forbid it.
    const std::string_view why = ::geteuid() == 0 ? "may not be looked into by this root, which lacks a capability"
                                                  : "is another user's: run as root or with CAP_SYS_PTRACE";
    return {ErrorKind::no_permission, fmt::format("process {} {}", pid, why), os_error};
  }
  return os_failure(ErrorKind::io, fmt::format("process {}: read its maps", pid), os_error);
}

Result<void> read_maps(const fs::path& path, pid_t pid, const std::function<void(Mapping&)>& take) {
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(process_error(pid, errno));
  std::string text;
  std::array<char, 16384> block;
  while (true) {
    const ssize_t n = sys::read_some(fd.get(), block);
    if (n < 0) return fail(process_error(pid, errno));
    text.append(block.data(), static_cast<std::size_t>(n));
    const std::size_t whole = n == 0 ? text.size() : text.rfind('\n') + 1;  // 0 where there is no line's end
    for (Mapping& mapping : parse_maps(std::string_view(text).substr(0, whole))) take(mapping);
    text.erase(0, whole);
    if (n == 0) return {};
  }
}

std::vector<pid_t> numbers_in(const fs::path& directory) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  if (!dir) return out;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) out.push_back(number);
  }
  return out;
}

namespace {

bool has_program(const fs::path& root) {
  std::error_code ec;
  const fs::path program = fs::read_symlink(root / "exe", ec);
  return !program.empty() || ec != std::errc::no_such_file_or_directory;
}

}  // namespace

fs::path directory_of(pid_t pid) {
  fs::path root = fmt::format("/proc/{}", pid);
  if (has_program(root)) return root;
  for (const pid_t thread : numbers_in(root / "task")) {
    fs::path other = fmt::format("/proc/{}", thread);
    if (has_program(other)) return other;
  }
  return root;
}

}  // namespace usdt::proc
