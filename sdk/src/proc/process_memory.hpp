// SPDX-License-Identifier: BSD-2-Clause
// Reading the memory of a process. What is read is whatever it has put there, perhaps while it is read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sys/unique_fd.hpp"
#include "usdt/address.hpp"
#include "usdt/result.hpp"

namespace usdt::proc {

/// The memory of one process (proc_pid_mem(5)), for as long as it executes the program that it executes now: what comes
/// after an execve(2) has other memory, of which this shows nothing.
class ProcessMemory {
 public:
  /// Errors: not_found, no_permission (PTRACE_MODE_ATTACH is asked for), io.
  [[nodiscard]] static Result<ProcessMemory> open(pid_t pid);

  /// Fills `room`. False: not all of it can be read.
  [[nodiscard]] bool read(ProcessAddr address, std::span<std::byte> room) const noexcept;
  /// Returns a little-endian number of `size` bytes, at most 8; nothing: it cannot be read.
  [[nodiscard]] std::optional<std::uint64_t> word_at(ProcessAddr address, std::size_t size) const noexcept;

 private:
  explicit ProcessMemory(sys::UniqueFd memory) noexcept : memory_(std::move(memory)) {}
  sys::UniqueFd memory_;
};

}  // namespace usdt::proc
