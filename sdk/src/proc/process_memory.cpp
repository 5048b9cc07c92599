// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "proc/process_maps.hpp"
#include "sys/read.hpp"

namespace usdt::proc {

Result<ProcessMemory> ProcessMemory::open(pid_t pid) {
  const std::string path = directory_of(pid).string() + "/mem";
  sys::UniqueFd memory(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory) return fail(process_error(pid, errno));
  return ProcessMemory(std::move(memory));
}

bool ProcessMemory::read(ProcessAddr address, std::span<std::byte> room) const noexcept {
  return sys::read_at(memory_.get(), address.value, room) == room.size();
}

std::optional<std::uint64_t> ProcessMemory::word_at(ProcessAddr address, std::size_t size) const noexcept {
  std::array<std::byte, sizeof(std::uint64_t)> bytes{};
  if (!read(address, std::span(bytes).first(size))) return std::nullopt;
  std::uint64_t word = 0;
  for (std::size_t n = size; n-- > 0;) word = word << 8 | static_cast<std::uint64_t>(bytes[n]);
  return word;
}

}  // namespace usdt::proc
