// SPDX-License-Identifier: BSD-2-Clause
// Per-link programs: the spec patched into the program's instructions. Private to attach/.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// A copy of the BPF object file `object` with the arguments of `spec` written into its instructions: see enum
/// usdt_patch_arg in spec.h. `values_by_site`: bits of the arguments whose displacement differs between the program's
/// sites. Errors: malformed (sections beyond the file, a placeholder without its neighbours).
[[nodiscard]] Result<std::vector<std::byte>> specialise(std::span<const std::byte> object, const EncodedSpec& spec,
                                                        std::uint32_t values_by_site);

/// A copy of `object` whose session programs call the kernel's kfuncs (enum usdt_patch). Errors: not_supported (a
/// kernel without them), malformed.
[[nodiscard]] Result<std::vector<std::byte>> call_session_kfuncs(std::span<const std::byte> object);

/// Text of the section "license".
[[nodiscard]] std::string license_of(std::span<const std::byte> object);

}  // namespace usdt::backends
