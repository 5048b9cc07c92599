// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "elf/file.hpp"
#include "elf/image.hpp"

namespace usdt::elf {

/// Whether functions of the file may be left by exceptions (C++) or caught panics (Rust): it has what tells the
/// unwinder of those languages where to stop ("personality routine", Itanium C++ ABI: Exception Handling, section 2.5),
/// or imports it. A stripped Rust program does not say.
[[nodiscard]] bool may_unwind(const File& file, const Image& image);

}  // namespace usdt::elf
