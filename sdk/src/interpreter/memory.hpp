// SPDX-License-Identifier: BSD-2-Clause
// Memory of a process, read while it runs: what is there may be anything, and may change between two readings.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "proc/process_memory.hpp"
#include "usdt/result.hpp"

namespace usdt::interpreter {

/// Memory by its addresses.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  /// Fills `room` from `address` on; false: not all of it could be read.
  [[nodiscard]] virtual bool read(std::uint64_t address, std::span<std::byte> room) const = 0;

  /// Returns the value at `address`; nothing: it could not be read.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::optional<T> value(std::uint64_t address) const {
    T value;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
};

/// Memory of a process, of the program that it runs when this is made: once it runs another one, nothing is read.
class ProcessMemory final : public Memory {
 public:
  explicit ProcessMemory(pid_t pid) : memory_(proc::ProcessMemory::open(pid)) {}
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> room) const override;
  /// Whether it may be read at all.
  [[nodiscard]] bool is_open() const noexcept { return memory_.has_value(); }

 private:
  Result<proc::ProcessMemory> memory_;
};

}  // namespace usdt::interpreter
