// SPDX-License-Identifier: BSD-2-Clause
// Instructions put into the code of a BPF object. Private to attach/program.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::backends {

/// A copy of `object` with `code` in place of each helper call of number `placeholder`, for the memory on the stack
/// that the two loads before the call name (expr::in_frame()); jumps, symbols, relocations and what .BTF.ext says of
/// instructions move along. Errors: malformed (no ELF object of BPF), not_found (no such call), limit (a jump becomes
/// too long), invalid_argument (the loads are not from the program's stack).
[[nodiscard]] Result<std::vector<std::byte>> expand_calls(std::span<const std::byte> object, std::int32_t placeholder,
                                                          std::span<const bpf_insn> code);

}  // namespace usdt::backends
