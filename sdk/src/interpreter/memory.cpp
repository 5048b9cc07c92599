// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "sys/read.hpp"

namespace usdt::interpreter {

ProcessMemory::ProcessMemory(pid_t pid)
    : file_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> room) const {
  // Behind that the offset of a file would be negative.
  constexpr std::uint64_t end = std::uint64_t{1} << 63;
  if (!file_ || address >= end || room.size() > end - address) return false;
  return sys::read_at(file_.get(), address, room) == room.size();
}

}  // namespace usdt::interpreter
