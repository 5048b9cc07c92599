// SPDX-License-Identifier: BSD-2-Clause
#include "sys/probe_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "sys/unique_fd.hpp"

namespace usdt::sys {
namespace {

Result<std::string> read_small_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(os_failure(ErrorKind::io, path, errno));
  char buffer[128];
  const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
  if (n < 0) return fail(os_failure(ErrorKind::io, path, errno));
  return std::string(buffer, static_cast<std::size_t>(n));
}

/// The first bit of a field: "config:32-63" is 32.
unsigned bit_of(const std::string& path, unsigned otherwise) {
  const auto format = read_small_file(path);
  const auto colon = format ? format->find(':') : std::string::npos;
  if (colon == std::string::npos) return otherwise;
  return static_cast<unsigned>(std::strtoul(format->c_str() + colon + 1, nullptr, 10));
}

}  // namespace

Result<ProbeSource> probe_source(const std::string& name) {
  const std::string directory = "/sys/bus/event_source/devices/" + name;
  auto type = read_small_file(directory + "/type");
  if (!type) return fail(type.error().within("perf " + name + "s"));
  ProbeSource source;
  source.type = static_cast<std::uint32_t>(std::strtoul(type->c_str(), nullptr, 10));
  source.retprobe_bit = bit_of(directory + "/format/retprobe", source.retprobe_bit);
  source.ref_ctr_shift = bit_of(directory + "/format/ref_ctr_offset", source.ref_ctr_shift);
  return source;
}

}  // namespace usdt::sys
