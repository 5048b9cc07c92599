// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace usdt::kernel {

/// True if a return address lies in what the kernel calls between a raw tracepoint and a program, by its symbols.
[[nodiscard]] bool is_tracer_frame(std::uint64_t address);

}  // namespace usdt::kernel
