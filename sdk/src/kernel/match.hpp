// SPDX-License-Identifier: BSD-2-Clause
// Finds what a pattern means in a catalogue of the kernel.
#pragma once

#include <vector>

#include "kernel/catalogue.hpp"
#include "usdt/pattern.hpp"
#include "usdt/result.hpp"

namespace usdt::kernel {

struct Match {
  std::vector<const KernelFunction*> functions;  ///< by module and name
  std::vector<RefusedFunction> refused;
};

/// Returns what a pattern means. For a glob: of functions those that ftrace can trace, as in every other tool, one name
/// for each address; those of them that cannot be attached to, or only by name, are `refused`. A plain name: every
/// function of that name. Errors: not_found, with names like it; no_permission or not_supported if the list it needs is
/// missing.
[[nodiscard]] Result<Match> match(const Catalogue& catalogue, const KernelPattern& pattern);

}  // namespace usdt::kernel
