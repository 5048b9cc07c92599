// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "usdt/bpf/spec.h"
#include "usdt/machine.hpp"
#include "usdt/result.hpp"

namespace usdt {
inline namespace v1 {

/// Packs a whole spec, and a site number of `site_bits` bits, into an attach cookie (bpf/cookie.h has the format).
/// nullopt if it does not fit: too long, or something the format has no form for (string captures, register pairs,
/// ...), or a site number of more bits.
[[nodiscard]] std::optional<std::uint64_t> pack_cookie(Machine machine, std::span<const usdt_arg_spec> args,
                                                       std::uint32_t site = 0, unsigned site_bits = 0);

/// What a packed cookie says, as the table would hold it. Errors: malformed (another carrier's, or of an unknown form).
[[nodiscard]] Result<std::vector<usdt_arg_spec>> unpack_cookie(Machine machine, std::uint64_t cookie);

}  // namespace v1
}  // namespace usdt
