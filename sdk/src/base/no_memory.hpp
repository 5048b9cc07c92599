// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "usdt/error.hpp"

namespace usdt {

/// Returns the error that public functions have in place of std::bad_alloc: nothing throws across the interface. Its
/// text needs no memory.
inline Error no_memory() noexcept { return {.kind = ErrorKind::limit, .message = "out of memory", .os_error = ENOMEM}; }

/// Whether `size` bytes can be had now: tells what failed for lack of memory from what failed for other reasons, behind
/// libraries that do not say which (libelf, libdw, zlib).
inline bool has_memory_for(std::size_t size) noexcept {
  void* volatile const room = std::malloc(size);  // volatile: compilers leave out what is only allocated and freed
  std::free(room);
  return room != nullptr;
}

}  // namespace usdt
