// SPDX-License-Identifier: BSD-2-Clause
// Leaf functions with their locals in the red zone across a nop, and where that nop is in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "usdt/red_zone.hpp"
#include "usdt/result.hpp"

namespace usdt::features {

struct RedZoneCode {
  /// The number of 16 locals below %rsp that no longer are `seed` + n behind the nop.
  std::uint64_t (*function)(std::uint64_t seed);
  const unsigned char* nop;  ///< in `function`, within one page
  std::size_t size;          ///< bytes of the nop: 1, 5 or 10
};

/// True on x86-64, which has a red zone and the nops.
inline constexpr bool has_red_zone_code =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

/// May be called only where has_red_zone_code is true.
[[nodiscard]] RedZoneCode red_zone_code(NopForm form) noexcept;

/// A mapped address as uprobes name it.
struct FilePlace {
  std::string path;
  std::uint64_t offset = 0;
};
/// Where the code at `address` of this process was loaded from. not_found.
[[nodiscard]] Result<FilePlace> file_place(const void* address);

}  // namespace usdt::features
