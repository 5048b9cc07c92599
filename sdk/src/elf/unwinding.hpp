// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "elf/file.hpp"
#include "elf/image.hpp"

namespace usdt::elf {

/// Whether functions of the file may be left by exceptions (C++) or caught panics (Rust): it has what tells the
/// unwinder of those languages where to stop ("personality routine", Itanium C++ ABI: Exception Handling, section 2.5),
/// or imports it. A stripped Rust program does not say.
[[nodiscard]] bool may_unwind(const File& file, const Image& image);

/// Whether code of this file may go on, on another stack, before a call that it is in has returned: it calls what does
/// (swapcontext(), Boost's jump_fcontext()), or takes a stack pointer out of memory or of an argument itself, as Ruby's
/// coroutine_transfer() does. Not so a C library, which has those functions for others.
[[nodiscard]] bool may_switch_stacks(const File& file, const Image& image);

}  // namespace usdt::elf
