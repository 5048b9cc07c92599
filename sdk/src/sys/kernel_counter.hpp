// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <linux/types.h>

#include <atomic>

namespace usdt::sys {

/// A number in memory shared with the kernel, which goes on writing it. Whatever the kernel wrote before it is seen,
/// too.
inline __u64 load_kernel_counter(const __u64& counter) noexcept {
  if constexpr (sizeof(long) == sizeof(counter)) {
    return std::atomic_ref(const_cast<__u64&>(counter)).load(std::memory_order_acquire);
  } else {
    // 32-bit machines read it in halves: once more when a carry came between them.
    const auto* halves = reinterpret_cast<const volatile __u32*>(&counter);
    __u32 low = 0, high = 0;
    do {
      high = halves[1];
      low = halves[0];
    } while (high != halves[1]);
    std::atomic_thread_fence(std::memory_order_acquire);
    return static_cast<__u64>(high) << 32 | low;
  }
}

/// The same the other way: the kernel reads it, and whatever was done before was done by then.
inline void store_kernel_counter(__u64& counter, __u64 value) noexcept {
  if constexpr (sizeof(long) == sizeof(counter)) {
    std::atomic_ref(counter).store(value, std::memory_order_release);
  } else {
    // Kernels of 32-bit machines place what they write by its low half alone.
    std::atomic_thread_fence(std::memory_order_release);
    auto* halves = reinterpret_cast<volatile __u32*>(&counter);
    halves[1] = static_cast<__u32>(value >> 32);
    halves[0] = static_cast<__u32>(value);
  }
}

}  // namespace usdt::sys
