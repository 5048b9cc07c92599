// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace usdt::sys {

// GCC says by a macro whether this code is built with ThreadSanitizer, clang by a feature.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace usdt::sys
