// SPDX-License-Identifier: BSD-2-Clause
// Specs packed into the 64-bit attach cookie (Carrier::cookie): pack_cookie() and its inverse unpack_cookie(). Loading
// does this by itself; call them to see whether a spec fits, or to read a cookie that bpf(2) shows. usdt/bpf/cookie.h
// has the format. Threads: pure functions.
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

/// Packs a whole spec, and a site number of `site_bits` bits, into an attach cookie. nullopt if it does not fit: it is
/// too long, has something the format has no form for (string captures, register pairs, ...), or `site` has more bits.
[[nodiscard]] std::optional<std::uint64_t> pack_cookie(Machine machine, std::span<const usdt_arg_spec> args,
                                                       std::uint32_t site = 0, unsigned site_bits = 0);

/// Returns the spec that a packed cookie holds, as the table would hold it. Errors: malformed (it is another carrier's
/// cookie, or of an unknown form).
[[nodiscard]] Result<std::vector<usdt_arg_spec>> unpack_cookie(Machine machine, std::uint64_t cookie);

}  // namespace v1
}  // namespace usdt
