// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string_view>

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

/// Whether a function of this name is for looking at its caller, in whose place the kernel's return probe puts
/// something else: what keeps a place to go back to, what finds libraries from there (dlsym(RTLD_NEXT)), and what
/// unwinds.
[[nodiscard]] bool is_who_looks_at_caller(std::string_view symbol) noexcept;

/// Whether the file is a program, not a library, and has and imports no such function.
[[nodiscard]] bool is_program_that_looks_at_no_caller(const File& file, const Image& image);

}  // namespace usdt::elf
