// SPDX-License-Identifier: BSD-2-Clause
// Functions in assembly that tell what the kernel does to a probe: all assembly of this stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "usdt/red_zone.hpp"
#include "usdt/result.hpp"

namespace usdt::features {

/// A leaf function with its locals in the red zone across a nop.
struct RedZoneCode {
  /// The number of 16 locals below %rsp that no longer are `seed` + n behind the nop.
  std::uint64_t (*function)(std::uint64_t seed);
  const unsigned char* nop;  ///< in `function`, within one page
  std::size_t size;          ///< bytes of the nop: 1, 5 or 10
};

/// Whether this machine has a red zone and the nops: x86-64 does.
[[nodiscard]] bool has_red_zone_code() noexcept;

/// May be called only where has_red_zone_code() is true.
[[nodiscard]] RedZoneCode red_zone_code(NopForm form) noexcept;

/// Ways of the kernel to execute the instruction that has the breakpoint.
enum class TrappedInstruction : std::uint8_t {
  nop,          ///< steps over it
  emulated,     ///< does what it would do
  single_step,  ///< runs it elsewhere, which takes a second trap
};
/// A function whose first instruction is one that the kernel handles in this way when it has a breakpoint.
using TrappedFunction = void (*)();
[[nodiscard]] TrappedFunction trapped_function(TrappedInstruction instruction) noexcept;

/// A mapped address as uprobes name it.
struct FilePlace {
  std::string path;
  std::uint64_t offset = 0;
};
/// Returns the file and offset that the code at `address` of this process was loaded from. Errors: not_found.
[[nodiscard]] Result<FilePlace> file_place(const void* address);

}  // namespace usdt::features
