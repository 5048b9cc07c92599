// SPDX-License-Identifier: BSD-2-Clause
#include "sys/uprobe_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "sys/unique_fd.hpp"

namespace usdt::sys {
namespace {

Result<std::string> read_small_file(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(os_failure(ErrorKind::io, path, errno));
  char buffer[128];
  const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
  if (n < 0) return fail(os_failure(ErrorKind::io, path, errno));
  return std::string(buffer, static_cast<std::size_t>(n));
}

}  // namespace

Result<UprobeSource> uprobe_source() {
  auto type = read_small_file("/sys/bus/event_source/devices/uprobe/type");
  if (!type) return fail(type.error().within("perf uprobes"));
  UprobeSource source;
  source.type = static_cast<std::uint32_t>(std::strtoul(type->c_str(), nullptr, 10));
  if (auto format = read_small_file("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset")) {
    const auto colon = format->find(':');
    if (colon != std::string::npos)
      source.ref_ctr_shift = static_cast<unsigned>(std::strtoul(format->c_str() + colon + 1, nullptr, 10));
  }
  return source;
}

}  // namespace usdt::sys
