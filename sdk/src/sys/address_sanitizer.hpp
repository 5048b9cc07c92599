// SPDX-License-Identifier: BSD-2-Clause
// Stacks of our own under AddressSanitizer.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define USDT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define USDT_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef USDT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace usdt::sys {

/// Says that memory is no stack any more. Functions whose task ended mark the places around their variables, and
/// whatever is mapped there later has these marks, too.
inline void forget_stack([[maybe_unused]] const void* start, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef USDT_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(start, bytes);
#endif
}

}  // namespace usdt::sys
