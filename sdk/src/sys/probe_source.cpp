// SPDX-License-Identifier: BSD-2-Clause
#include "sys/probe_source.hpp"

#include <cstdlib>
#include <string>

#include "sys/read.hpp"

namespace usdt::sys {
namespace {

constexpr std::size_t kLine = 128;

/// The first bit of a field: "config:32-63" is 32.
unsigned bit_of(const std::string& path, unsigned otherwise) {
  const auto format = read_text(path, kLine);
  const auto colon = format ? format->find(':') : std::string::npos;
  if (colon == std::string::npos) return otherwise;
  return static_cast<unsigned>(std::strtoul(format->c_str() + colon + 1, nullptr, 10));
}

}  // namespace

Result<ProbeSource> probe_source(const std::string& name) {
  const std::string directory = "/sys/bus/event_source/devices/" + name;
  auto type = read_text(directory + "/type", kLine);
  if (!type) return fail(type.error().within("perf " + name + "s"));
  ProbeSource source;
  source.type = static_cast<std::uint32_t>(std::strtoul(type->c_str(), nullptr, 10));
  source.retprobe_bit = bit_of(directory + "/format/retprobe", source.retprobe_bit);
  source.ref_ctr_shift = bit_of(directory + "/format/ref_ctr_offset", source.ref_ctr_shift);
  return source;
}

}  // namespace usdt::sys
