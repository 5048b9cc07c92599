// SPDX-License-Identifier: BSD-2-Clause
// The words of a function's code that tell it from other code in its place, as BPF programs take them at a hit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "interpreter/memory.hpp"
#include "usdt/bpf/interpreter.h"

namespace usdt::interpreter {

using CodeWords = std::array<__u64, USDT_CODE_WORDS>;

/// Reads them from the code at `code`; those behind shape.bytes are 0. Nothing: its memory cannot be read.
[[nodiscard]] std::optional<CodeWords> read_code_words(const Memory& memory, const usdt_code_shape& shape,
                                                       std::uint64_t code);

}  // namespace usdt::interpreter
