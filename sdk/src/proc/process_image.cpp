// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_image.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/try.hpp"
#include "proc/process_maps.hpp"
#include "sys/read.hpp"

namespace usdt::proc {
namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// The fields of /proc/PID/stat from the third one on (proc_pid_stat(5)): the name before them may hold anything.
std::vector<std::string_view> fields_of(std::string_view stat) {
  std::vector<std::string_view> fields;
  const std::size_t close = stat.rfind(") ");
  stat.remove_prefix(close == stat.npos ? stat.size() : close + 2);
  while (!stat.empty()) {
    const std::size_t space = std::min(stat.find(' '), stat.size());
    fields.push_back(stat.substr(0, space));
    stat.remove_prefix(std::min(space + 1, stat.size()));
  }
  return fields;
}

/// A number of kB in /proc/PID/status.
std::optional<std::uint64_t> kilobytes_in(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(fmt::format("\n{}:", name));
  return at == status.npos ? std::nullopt : number_in(status.substr(at + name.size() + 2));
}

}  // namespace

Result<ProcessImage> image_of(pid_t pid) {
  constexpr std::size_t most = 1 << 16;  // of either file
  const std::string directory = directory_of(pid).string();
  const std::string stat = TRY(sys::read_text(directory + "/stat", most));
  const std::string status = TRY(sys::read_text(directory + "/status", most));
  const std::vector<std::string_view> fields = fields_of(stat);
  // Who may not know reads 0 or 1.
  constexpr std::size_t last = 48 - 3;
  const auto program = kilobytes_in(status, "VmExe"), libraries = kilobytes_in(status, "VmLib");
  if (fields.size() <= last || !program || !libraries)
    return fail(ErrorKind::not_found, fmt::format("process {} executes no program", pid));
  ProcessImage image;
  std::size_t n = 0;
  for (const std::size_t field : {26, 27, 28, 48}) {
    const auto number = number_in(fields[field - 3]);
    if (!number || *number <= 1) return fail(process_error(pid, EACCES));
    image.words[n++] = *number;
  }
  image.began = number_in(fields[22 - 3]).value_or(0);
  // They are computed so that their sum is exec_vm, by pages (task_mem() of the kernel's fs/proc/task_mmu.c).
  image.code_pages = (*program + *libraries) * 1024 / static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return image;
}

}  // namespace usdt::proc
