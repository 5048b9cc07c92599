// SPDX-License-Identifier: BSD-2-Clause
// Per-link programs: the spec patched into the program's instructions. Private to attach/program.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "usdt/carrier.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// A copy of the BPF object file `object` with the arguments of the program's own spec patched into its instructions:
/// enum usdt_patch_arg in spec.h. Errors: malformed (sections beyond the file, a placeholder without its neighbours).
[[nodiscard]] Result<std::vector<std::byte>> specialise(std::span<const std::byte> object,
                                                        const PlannedProgram& program);

/// A copy of `object` whose session programs call the kernel's kfuncs (enum usdt_patch). Errors: not_supported (a
/// kernel without them), malformed.
[[nodiscard]] Result<std::vector<std::byte>> call_session_kfuncs(std::span<const std::byte> object);

/// Text of the section "license".
[[nodiscard]] std::string license_of(std::span<const std::byte> object);

}  // namespace usdt::backends
