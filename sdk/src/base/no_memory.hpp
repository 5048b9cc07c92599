// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cerrno>

#include "usdt/error.hpp"

namespace usdt {

/// What public functions return in the place of std::bad_alloc: nothing throws across the interface. Its text needs no
/// memory.
inline Error no_memory() noexcept { return {.kind = ErrorKind::limit, .message = "out of memory", .os_error = ENOMEM}; }

}  // namespace usdt
