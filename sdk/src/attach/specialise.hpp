// SPDX-License-Identifier: BSD-2-Clause
// Per-link programs: the spec written into the program's own instructions. Private to attach/.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// A copy of the BPF object file `object` in which reading a register of `spec` is a load and two shifts: see
/// USDT_MARK_KIND in spec.h. Errors: malformed (sections beyond the file, a mark without its neighbours).
[[nodiscard]] Result<std::vector<std::byte>> specialise(std::span<const std::byte> object, const EncodedSpec& spec);

}  // namespace usdt::backends
