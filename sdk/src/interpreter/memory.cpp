// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/memory.hpp"

namespace usdt::interpreter {

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> room) const {
  return memory_ && memory_->read(ProcessAddr(address), room);
}

}  // namespace usdt::interpreter
